"""Find every benchmark, environment, agent, model and resources server under the roots; none of their code runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blade.errors import BladeError
from blade_eval.config.config_nouns import KINDS, UNSET, Tree
from blade_eval.config.directives import applied, merged
from blade_eval.config.sources import chained, loaded, text_of, tree_of, yaml_files

CATEGORIES = (
    "math & science",
    "coding",
    "knowledge & reasoning",
    "agentic & tool use",
    "instruction following & safety",
    "other",
)
# The domains are the incumbent's closed list; its largest one is "other", so a manifest may say better.
_OF_DOMAIN = {
    "math": 0,
    "science": 0,
    "coding": 1,
    "knowledge": 2,
    "long_context": 2,
    "agent": 3,
    "e2e": 3,
    "games": 3,
    "instruction_following": 4,
    "safety": 4,
    "rlhf": 4,
}
# What to ask before trusting a benchmark, in the order it is asked.
CRITERIA = {
    "task_fit": "Task fit",
    "verifier_fidelity": "Verifier fidelity",
    "model_compatibility": "Model compatibility",
    "harness_fit": "Harness fit",
    "variance": "Variance",
    "reproducibility": "Reproducibility",
}


@dataclass(frozen=True)
class Entry:
    """A benchmark or an environment that can be run."""

    name: str
    kind: str  # benchmark, environment
    path: Path
    status: str | None = "no-manifest"
    domain: str | None = None
    description: str | None = None
    category: str = CATEGORIES[-1]
    agent: str | None = None  # the implementation
    verifier: str | None = None
    num_repeats: int | None = None
    license: str | None = None
    datasets: tuple[str, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    trouble: str | None = None  # why parts of it are not known

    def as_json(self) -> dict[str, Any]:
        """The incumbent's keys in its order, then ours."""
        said = self.manifest
        return {
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "domain": self.domain,
            "description": self.description,
            "version": _text(said.get("version")),
            "integration_profile": _text(said.get("integration_profile")),
            "modality": _text(said.get("modality")),
            "licensing": _text(said.get("licensing")),
            "lifecycle": _text(said.get("lifecycle")),
            "category": self.category,
            "agent": self.agent,
            "verifier": self.verifier,
            "num_repeats": self.num_repeats,
            "license": self.license,
            "choose": self.choose,
        }

    @property
    def choose(self) -> dict[str, str]:
        """How to choose: what is known of the six criteria."""
        said = self.manifest.get("choose")
        if not isinstance(said, dict):
            return {}
        return {key: str(said[key]) for key in CRITERIA if said.get(key) not in (None, "")}

    @property
    def published(self) -> list[dict[str, str]]:
        """The published results to reproduce before trusting it."""
        said = self.manifest.get("published")
        rows = said if isinstance(said, list) else [said]
        return [{str(key): str(value) for key, value in row.items()} for row in rows if isinstance(row, dict)]


def category_of(domain: str | None, said: Any) -> str:
    """One of the six categories: as a manifest says, else by the domain."""
    if isinstance(said, str):
        wanted = _words(said)
        for category in CATEGORIES:
            if wanted and wanted == _words(category):
                return category
    return CATEGORIES[_OF_DOMAIN.get(domain or "", len(CATEGORIES) - 1)]


def _words(text: str) -> frozenset[str]:
    """The words of a category, however it is written: agentic/tool use, agentic_tool_use."""
    plain = "".join(mark if mark.isalnum() else " " for mark in text.lower())
    return frozenset(plain.split()) - {"and"}


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return None if value is None else str(value)


_BENCHMARK = re.compile(r"\btype['\"]?\s*:\s*['\"]?benchmark\b")


def entries(roots: Sequence[Path], only: str | None = None) -> tuple[Entry, ...]:
    """The catalogue, or one kind of it, by name: where two roots have the same name, the first root's."""
    files = _Files()
    found: dict[tuple[str, str], Entry] = {}
    for root in roots:
        for kind, name, path in [*_environments(root), *_benchmarks(root, files)]:
            if only in (None, kind) and (kind, name) not in found:
                found[kind, name] = _entry(kind, name, path, roots, files)
    names = {name for kind, name in found if kind == "environment"}
    for root in roots if only != "benchmark" else ():
        for name, path in _runnable(root, files):
            seen = name in names or name.removeprefix("resources_servers/") in names
            if not seen and ("environment", name) not in found:
                found["environment", name] = _entry("environment", name, path, roots, files)
    return tuple(sorted(found.values(), key=lambda entry: (entry.name.lower(), entry.kind)))


class _Files:
    """Files that many definitions include, read once."""

    def __init__(self) -> None:
        self.texts: dict[Path, str] = {}
        self.trees: dict[Path, Tree] = {}

    def text(self, path: Path) -> str:
        """A file's text."""
        if path not in self.texts:
            self.texts[path] = text_of(path)
        return self.texts[path]

    def tree(self, path: Path) -> Tree:
        """A file's mapping."""
        path = path.resolve()
        if path not in self.trees:
            self.trees[path] = tree_of(self.text(path), path)
        return self.trees[path]


def _environments(root: Path) -> Iterator[tuple[str, str, Path]]:
    for path in sorted((root / "environments").glob("*/config.yaml")):
        yield "environment", path.parent.name, path


def _benchmarks(root: Path, files: _Files) -> Iterator[tuple[str, str, Path]]:
    top = root / "benchmarks"
    for path in yaml_files(top):
        if path.name == "manifest.yaml":
            continue
        parts = path.relative_to(top).with_suffix("").parts
        is_main = parts[1:] == ("config",)  # one that is faulty is told, not passed over
        try:
            if not _BENCHMARK.search(files.text(path)) and not is_main:
                continue
        except BladeError:
            continue  # not UTF-8, too large: no definition that anybody wrote
        yield "benchmark", parts[0] if is_main else "/".join(parts), path


def _runnable(root: Path, files: _Files) -> Iterator[tuple[str, Path]]:
    """Resources servers that come with an agent and data."""
    for path in sorted((root / "resources_servers").glob("*/configs/*.yaml")):
        try:
            text = files.text(path)
            if not all(word in text for word in ("resources_servers:", "responses_api_agents:", "datasets:")):
                continue
            blocks = dict(_blocks(files.tree(path)))
        except BladeError:
            continue
        kinds = {kind for kind, _, _ in blocks.values()}
        data = any(settings.get("datasets") for _, _, settings in blocks.values())
        if data and {"resources_servers", "responses_api_agents"} <= kinds:
            server = path.parent.parent.name
            yield f"resources_servers/{server}" + ("" if path.stem == server else f"/{path.stem}"), path


def _entry(kind: str, name: str, path: Path, roots: Sequence[Path], files: _Files) -> Entry:
    manifest, trouble = _manifest(path, files)
    try:
        documents, _ = chained([path], roots, files.tree)
        tree: Tree = {}
        for _, document in documents:
            tree = merged(tree, document)
        blocks = dict(_blocks(applied(tree).tree))
    except BladeError as error:
        trouble = trouble or error.message
        try:
            blocks = dict(_blocks(files.tree(path)))
        except BladeError:
            blocks = {}
    agent, server, dataset, names = _what_runs(kind, blocks)
    if kind == "benchmark" and not dataset:
        trouble = trouble or "it has no dataset of `type: benchmark`"
    domain = _described("domain", manifest, server, blocks)
    return Entry(
        name=name,
        kind=kind,
        path=path,
        status=_status(manifest),
        domain=domain,
        description=_described("description", manifest, server, blocks),
        category=category_of(domain, manifest.get("category")),
        agent=agent or _string(manifest.get("agent_server")),
        verifier=server[1] if server else _string(manifest.get("resources_server")) or _itself(agent),
        num_repeats=dataset.get("num_repeats") or 1 if dataset else None,
        license=_string(dataset.get("license")) or _string(manifest.get("licensing")),
        datasets=names,
        manifest=manifest,
        trouble=trouble,
    )


def _itself(agent: str | None) -> str | None:
    """An agent without a resources server judges its own work; the simple one never does."""
    return None if agent == "simple_agent" else agent


Block = tuple[str, str, Tree]  # kind, implementation, settings


def _blocks(tree: Tree) -> Iterator[tuple[str, Block]]:
    for name, block in tree.items():
        if not isinstance(block, dict):
            continue
        for kind in KINDS:
            inner = block.get(kind)
            if isinstance(inner, dict) and inner:
                implementation, settings = next(iter(inner.items()))
                if isinstance(settings, dict):
                    yield str(name), (kind, str(implementation), settings)


def _what_runs(kind: str, blocks: dict[str, Block]) -> tuple[str | None, Block | None, Tree, tuple[str, ...]]:
    """The agent, the resources server that judges, the dataset that counts, and the names of all datasets."""
    wanted = "benchmark" if kind == "benchmark" else None
    chosen: tuple[str, Block, Tree] | None = None
    names: list[str] = []
    for instance, block in blocks.items():
        entries_of = block[2].get("datasets")
        for entry in entries_of if isinstance(entries_of, list) else []:
            if isinstance(entry, dict):
                names.append(f"{entry.get('name')} ({entry.get('type')})")
                if chosen is None and entry.get("type") in (wanted or entry.get("type"),):
                    chosen = instance, block, entry
    if chosen is None:
        for instance, block in blocks.items():
            if chosen is None and block[0] == "responses_api_agents":
                chosen = instance, block, {}
    if chosen is None:
        servers = [block for block in blocks.values() if block[0] == "resources_servers"]
        return None, next(iter(servers), None), {}, tuple(names)
    instance, block, dataset = chosen
    if block[0] == "resources_servers":
        users = [one for one in blocks.values() if _refers(one, "resources_server") == instance]
        return (users[0][1] if users else None), block, dataset, tuple(names)
    return block[1], blocks.get(_refers(block, "resources_server") or ""), dataset, tuple(names)


def _refers(block: Block, field: str) -> str | None:
    reference = block[2].get(field)
    name = reference.get("name") if isinstance(reference, dict) else None
    return name if isinstance(name, str) else None


def _described(key: str, manifest: Tree, server: Block | None, blocks: dict[str, Block]) -> str | None:
    """The manifest's word, else the verifier's, else the first block's that has one."""
    for said in (manifest, server[2] if server else {}, *(block[2] for block in blocks.values())):
        if isinstance(said.get(key), str) and said[key] != UNSET:
            return " ".join(said[key].split())
    return None


def _manifest(path: Path, files: _Files) -> tuple[Tree, str | None]:
    """What stands beside a definition: manifest.yaml, or <name>/manifest.yaml of one that has a name."""
    if path.parent.name == "configs":
        folder = path.parent.parent
    else:
        folder = path.parent if path.stem == "config" else path.parent / path.stem
    place = folder / "manifest.yaml"
    if not place.is_file():
        return {}, None
    try:
        return files.tree(place), None
    except BladeError as error:
        return {}, error.message


def _status(manifest: Tree) -> str | None:
    if not manifest:
        return "no-manifest"
    return "experimental" if manifest.get("experimental", True) else None


def _string(value: Any) -> str | None:
    return str(value) if value not in (None, UNSET) else None


FOLDERS = {
    "agents": "responses_api_agents",
    "models": "responses_api_models",
    "resources-servers": "resources_servers",
}


@dataclass(frozen=True)
class Component:
    """One implementation, or of models one flavour of it: what a flag such as --model-type takes."""

    name: str
    kind: str  # agents, models, resources-servers
    path: Path
    variants: tuple[str, ...] = ()
    settings: Tree | None = None  # its block in the configuration of the same name
    trouble: str | None = None

    @property
    def domain(self) -> str | None:
        """As its block says."""
        return self._said("domain")

    @property
    def description(self) -> str | None:
        """As its block says, with what it is good for."""
        said, value = self._said("description"), self._said("value")
        return f"{said or ''}\nValue: {value}".strip() if value else said

    @property
    def self_contained(self) -> bool:
        """It brings its own tasks and verdicts: it refers to no resources server."""
        return "resources_server" not in (self.settings or {})

    def _said(self, key: str) -> str | None:
        value = (self.settings or {}).get(key)
        return " ".join(value.split()) if isinstance(value, str) and value != UNSET else None

    def as_json(self) -> dict[str, Any]:
        """The incumbent's keys for this kind."""
        if self.kind == "models":
            return {"name": self.name, "model": self.name, "model_group": self.name.split("/")[0]}
        if self.kind == "agents":
            pattern = "B (self-contained)" if self.self_contained else "A (composable)"
            return {
                "name": self.name,
                "pattern": pattern,
                "self_contained": self.self_contained,
                "variants": list(self.variants),
                "description": self.description,
            }
        return {"name": self.name, "domain": self.domain, "description": self.description}


def components(kind: str, roots: Sequence[Path]) -> tuple[Component, ...]:
    """The components of a kind, by name; the first root that has a name wins."""
    found: dict[str, Component] = {}
    for root in roots:
        top = root / FOLDERS[kind]
        folders = sorted(path for path in top.iterdir() if path.is_dir()) if top.is_dir() else []
        for folder in folders:
            for one in _of_folder(kind, folder):
                found.setdefault(one.name, one)
    return tuple(sorted(found.values(), key=lambda one: one.name.lower()))


def _of_folder(kind: str, folder: Path) -> list[Component]:
    configs = sorted((folder / "configs").glob("*.yaml"))
    if not configs:
        return []
    stems = [path.stem for path in configs]
    if kind == "models":
        names = [folder.name if stem == folder.name else f"{folder.name}/{stem}" for stem in stems]
        blocks = [_block(kind, folder.name, path) for path in configs]
        return [
            Component(name, kind, path, (), *block)
            for name, path, block in zip(names, configs, blocks, strict=True)
        ]
    main = configs[stems.index(folder.name)] if folder.name in stems else configs[0]
    settings, trouble = _block(kind, folder.name, main)
    return [Component(folder.name, kind, main, tuple(stems), settings, trouble)]


def _block(kind: str, name: str, path: Path) -> tuple[Tree | None, str | None]:
    try:
        tree = loaded(path)
    except BladeError as error:
        return None, error.message
    for block in tree.values():
        inner = block.get(FOLDERS[kind]) if isinstance(block, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get(name), dict):
            return inner[name], None
    return None, None

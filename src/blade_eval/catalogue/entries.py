"""Find every benchmark and environment under the roots, from their files: no code of theirs runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from blade.errors import BladeError
from blade_eval.catalogue.entry import Entry, category_of
from blade_eval.config.directives import applied, merged
from blade_eval.config.nouns import KINDS, UNSET, Tree
from blade_eval.config.sources import chained, text_of, tree_of, yaml_files

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
    domain = _said("domain", manifest, server, blocks)
    return Entry(
        name=name,
        kind=kind,
        path=path,
        status=_status(manifest),
        domain=domain,
        description=_said("description", manifest, server, blocks),
        category=category_of(domain, manifest.get("category")),
        agent=agent or _text(manifest.get("agent_server")),
        verifier=server[1] if server else _text(manifest.get("resources_server")) or _itself(agent),
        num_repeats=dataset.get("num_repeats") or 1 if dataset else None,
        license=_text(dataset.get("license")) or _text(manifest.get("licensing")),
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


def _said(key: str, manifest: Tree, server: Block | None, blocks: dict[str, Block]) -> str | None:
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


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, UNSET) else None

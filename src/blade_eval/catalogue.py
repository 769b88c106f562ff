"""Find every benchmark, environment, agent, model and resources server under the roots, and rank them by a query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from blade.errors import BladeError
from blade_eval.config.config_nouns import UNSET, Server, Tree
from blade_eval.config.directives import Applied, merged
from blade_eval.config.resolve import found_servers
from blade_eval.config.sources import chained, loaded, text_of, tree_of, yaml_files

_WORDS = yaml.safe_load(Path(__file__).with_name("catalogue.yaml").read_text("utf-8"))
CATEGORIES: tuple[str, ...] = tuple(_WORDS["categories"])
# What to ask before trusting a benchmark, in the order it is asked.
CRITERIA = {
    key: key.replace("_", " ").capitalize()
    for key in "task_fit verifier_fidelity model_compatibility harness_fit variance reproducibility".split()
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
        names = ("version", "integration_profile", "modality", "licensing", "lifecycle")
        ours = ("category", "agent", "verifier", "num_repeats", "license", "choose")

        def text(value: Any) -> str | None:
            return ", ".join(map(str, value)) if isinstance(value, list) else _string(value)

        return {
            "name": self.name, "kind": self.kind, "status": self.status, "domain": self.domain,
            "description": self.description, **{name: text(self.manifest.get(name)) for name in names},
            **{name: getattr(self, name) for name in ours},
        }  # fmt: skip

    @property
    def choose(self) -> dict[str, str]:
        """How to choose: what is known of the six criteria."""
        notes = self.manifest.get("choose")
        if not isinstance(notes, dict):
            return {}
        return {key: str(notes[key]) for key in CRITERIA if notes.get(key) not in (None, "")}

    @property
    def published(self) -> list[dict[str, str]]:
        """The published results to reproduce before trusting it."""
        value = self.manifest.get("published")
        rows = value if isinstance(value, list) else [value]
        return [{str(key): str(value) for key, value in row.items()} for row in rows if isinstance(row, dict)]


def category_of(domain: str | None, named: Any) -> str:
    """One of the six categories: as a manifest says, however it is written, else by the domain."""
    words = _words(named) if isinstance(named, str) else frozenset()
    for category in CATEGORIES:
        if words and words == _words(category):
            return category
    return next((name for name, domains in _WORDS["categories"].items() if domain in domains), CATEGORIES[-1])


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W_]+", text.lower())) - {"and"}


_BENCHMARK = re.compile(r"\btype['\"]?\s*:\s*['\"]?benchmark\b")


def entries(roots: Sequence[Path], only: str | None = None) -> tuple[Entry, ...]:
    """The catalogue, or one kind of it, by name: where two roots have the same name, the first root's."""
    files = _Files()
    chosen: dict[tuple[str, str], Entry] = {}
    for root in roots:
        environments = sorted((root / "environments").glob("*/config.yaml"))
        named = [("environment", path.parent.name, path) for path in environments]
        for kind, name, path in [*named, *_benchmarks(root, files)]:
            if only in (None, kind) and (kind, name) not in chosen:
                chosen[kind, name] = _entry(kind, name, path, roots, files)
    names = {name for kind, name in chosen if kind == "environment"}
    for root in roots if only != "benchmark" else ():
        for name, path in _runnable(root, files):
            if not names & {name, name.removeprefix("resources_servers/")}:
                chosen.setdefault(("environment", name), _entry("environment", name, path, roots, files))
    return tuple(sorted(chosen.values(), key=lambda entry: (entry.name.lower(), entry.kind)))


class _Files:
    """Files that many definitions include, read once."""

    def __init__(self) -> None:
        self.text = cache(text_of)
        self._tree = cache(lambda path: tree_of(self.text(path), path))

    def tree(self, path: Path) -> Tree:
        return self._tree(path.resolve())


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
    for path in sorted((root / "resources_servers").glob("*/configs/*.yaml")):
        try:
            text = files.text(path)
            if not all(word in text for word in ("resources_servers:", "responses_api_agents:", "datasets:")):
                continue
            blocks = _servers(files.tree(path)).values()
        except BladeError:
            continue
        kinds = {block.kind for block in blocks}
        data = any(block.settings.get("datasets") for block in blocks)
        if data and {"resources_servers", "responses_api_agents"} <= kinds:
            server = path.parent.parent.name
            yield f"resources_servers/{server}" + ("" if path.stem == server else f"/{path.stem}"), path


def _entry(kind: str, name: str, path: Path, roots: Sequence[Path], files: _Files) -> Entry:
    manifest, trouble = _manifest(path, files)
    blocks: dict[str, Server] = {}
    try:
        trees = [tree for _, tree in chained([path], roots, files.tree)[0]]
        blocks = _servers(Applied(reduce(merged, trees, {})).tree)
    except BladeError as error:
        trouble = trouble or error.message
        with suppress(BladeError):
            blocks = _servers(files.tree(path))
    agent, server, dataset, names = _what_runs(kind, blocks)
    if kind == "benchmark" and not dataset:
        trouble = trouble or "it has no dataset of `type: benchmark`"
    domain = _described("domain", manifest, server, blocks)
    # an agent without a resources server judges its own work; the simple one never does
    itself = None if agent == "simple_agent" else agent
    status = "experimental" if manifest.get("experimental", True) else None
    return Entry(
        name, kind, path, status if manifest else "no-manifest", domain,
        description=_described("description", manifest, server, blocks),
        category=category_of(domain, manifest.get("category")),
        agent=agent or _string(manifest.get("agent_server")),
        verifier=server.implementation if server else _string(manifest.get("resources_server")) or itself,
        num_repeats=dataset.get("num_repeats") or 1 if dataset else None,
        license=_string(dataset.get("license")) or _string(manifest.get("licensing")),
        datasets=names, manifest=manifest, trouble=trouble,
    )  # fmt: skip


def _servers(tree: Tree) -> dict[str, Server]:
    return {server.instance: server for server in found_servers(tree, lambda _: "")[0]}


def _what_runs(kind: str, blocks: dict[str, Server]) -> tuple[str | None, Server | None, Tree, tuple[str, ...]]:
    """The agent, the resources server that judges, the dataset that counts, and the names of all datasets."""
    datasets = [
        (block, dataset)
        for block in blocks.values()
        if isinstance(block.settings.get("datasets"), list)
        for dataset in block.settings["datasets"]
        if isinstance(dataset, dict)
    ]
    names = tuple(f"{dataset.get('name')} ({dataset.get('type')})" for _, dataset in datasets)
    chosen = [row for row in datasets if kind != "benchmark" or row[1].get("type") == "benchmark"]
    chosen += [(block, {}) for block in blocks.values() if block.kind == "responses_api_agents"]
    if not chosen:
        servers = (block for block in blocks.values() if block.kind == "resources_servers")
        return None, next(servers, None), {}, names
    block, dataset = chosen[0]
    if block.kind == "resources_servers":
        users = (user.implementation for user in blocks.values() if user.named("resources_server") == block.instance)
        return next(users, None), block, dataset, names
    return block.implementation, blocks.get(block.named("resources_server") or ""), dataset, names


def _described(key: str, manifest: Tree, server: Server | None, blocks: dict[str, Server]) -> str | None:
    """The manifest's word, else the verifier's, else the first block's that has one."""
    places = (manifest, *(block.settings for block in (server, *blocks.values()) if block))
    return next((text for tree in places if (text := _line(tree.get(key)))), None)


def _line(value: Any) -> str | None:
    return " ".join(value.split()) if isinstance(value, str) and value != UNSET else None


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


def _string(value: Any) -> str | None:
    return str(value) if value not in (None, UNSET) else None


FOLDERS = {"agents": "responses_api_agents", "models": "responses_api_models", "resources-servers": "resources_servers"}


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
        return _line((self.settings or {}).get("domain"))

    @property
    def description(self) -> str | None:
        text, value = (_line((self.settings or {}).get(key)) for key in ("description", "value"))
        return f"{text or ''}\nValue: {value}".strip() if value else text

    @property
    def self_contained(self) -> bool:
        """It brings its own tasks and verdicts: it refers to no resources server."""
        return "resources_server" not in (self.settings or {})

    def as_json(self) -> dict[str, Any]:
        if self.kind == "models":
            return {"name": self.name, "model": self.name, "model_group": self.name.split("/")[0]}
        if self.kind == "agents":
            pattern = "B (self-contained)" if self.self_contained else "A (composable)"
            return {
                "name": self.name, "pattern": pattern, "self_contained": self.self_contained,
                "variants": list(self.variants), "description": self.description,
            }  # fmt: skip
        return {"name": self.name, "domain": self.domain, "description": self.description}


def components(kind: str, roots: Sequence[Path]) -> tuple[Component, ...]:
    """The components of a kind, by name; the first root that has a name wins."""
    chosen: dict[str, Component] = {}
    for root in roots:
        for folder in sorted((root / FOLDERS[kind]).glob("*/")):
            for component in _of_folder(kind, folder):
                chosen.setdefault(component.name, component)
    return tuple(sorted(chosen.values(), key=lambda component: component.name.lower()))


def _of_folder(kind: str, folder: Path) -> Iterator[Component]:
    name, configs = folder.name, {path.stem: path for path in sorted((folder / "configs").glob("*.yaml"))}
    if kind == "models":
        for stem, path in configs.items():
            yield Component(name if stem == name else f"{name}/{stem}", kind, path, (), *_block(kind, name, path))
    elif configs:
        main = configs.get(name) or next(iter(configs.values()))
        yield Component(name, kind, main, tuple(configs), *_block(kind, name, main))


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


# -- search: whole words and their beginnings, never parts from within ----------------------------

_WORD = re.compile(r"[a-z0-9]+")
# Worth of a hit by the field it is in, highest first.
_NAME, _DOMAIN, _CATEGORY, _PART, _TEXT = 100.0, 40.0, 36.0, 24.0, 12.0
# Worth of a hit by how it came about.
_EXACT, _STEM, _BEGINS, _ENDS, _TYPO, _SYNONYM = 1.0, 0.9, 0.7, 0.5, 0.4, 0.45


class Ranked(NamedTuple):
    """What was found, best first, and whether every word of the query was found in each."""

    found: tuple[Entry | Component, ...]
    all_words: bool


def ranked(query: str, among: Sequence[Entry] | Sequence[Component]) -> Ranked:
    """The components that have all words of the query; if none has, those that have some."""
    words = list(dict.fromkeys(_WORD.findall(query.lower())))
    rows: list[tuple[int, float, Entry | Component]] = []
    for part in among:
        fields = _fields(part)
        worths = [_score(word, fields) for word in words]
        # a resources server with examples is rather what benchmarks are made of than what is looked for
        weight = 0.4 if part.name.startswith("resources_servers/") else 1.0
        if n := sum(worth > 0 for worth in worths):
            rows.append((n, sum(worths) * weight, part))
    complete = [row for row in rows if row[0] == len(words)]
    # of two that fit alike, a benchmark comes before an environment
    chosen = sorted(complete or rows, key=lambda row: (-row[0], -row[1], row[2].kind, row[2].name.lower()))
    return Ranked(tuple(part for _, _, part in chosen), bool(complete))


def _fields(part: Entry | Component) -> list[tuple[float, list[str]]]:
    name = part.name.removeprefix("resources_servers/")
    fields = [(_NAME, name), (_DOMAIN, part.domain), (_TEXT, part.description)]
    if isinstance(part, Entry):
        fields += [(_CATEGORY, part.category), (_PART, part.verifier), (_PART, part.agent)]
    else:
        fields += [(_PART, " ".join(part.variants))]
    return [(worth, _searched(text)) for worth, text in fields if text]


def _searched(text: str) -> list[str]:
    lowered = text.lower()
    parts = _WORD.findall(lowered)
    # math-500 is asked for as math500, and aime24 as aime 24
    joined = ["".join(pair) for pair in pairwise(parts)] if len(parts) < 8 else []
    split = [piece for part in parts for piece in re.findall(r"[a-z]{3,}|\d+", part) if piece != part]
    return list(dict.fromkeys([*parts, *joined, *split]))


def _score(word: str, fields: list[tuple[float, list[str]]]) -> float:
    direct = max((worth * _fit(word, words, worth == _NAME) for worth, words in fields), default=0.0)
    if len(word) < 3:
        return direct
    stems = {stem(other) for other in _WORDS["synonyms"].get(word, "").split()}
    meant = (worth * _SYNONYM for worth, words in fields if stems & set(map(stem, words)))
    return max(direct, *meant, 0.0)


def _fit(word: str, words: list[str], in_name: bool) -> float:
    if word in words:
        return _EXACT
    if any(stem(word) == stem(other) for other in words):
        return _STEM
    if len(word) >= (2 if in_name else 4) and any(other.startswith(word) for other in words):
        return _BEGINS
    if in_name and len(word) >= 4 and any(other.endswith(word) for other in words):
        return _ENDS  # birdbench for bench, ifeval for eval
    if any(_mistyped(word, other) for other in words):
        return _TYPO
    return 0.0


def stem(word: str) -> str:
    """A word without its ending, so that coding, codes and code are one."""
    for ending in ("ings", "ing", "ies", "ers", "es", "ed", "er", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


def _mistyped(word: str, other: str) -> bool:
    """One slip in a word of five letters or more, two from nine on; never in a number or the initial."""
    if min(len(word), len(other)) < 5 or abs(len(word) - len(other)) > 2 or word[0] != other[0]:
        return False
    if re.sub(r"\D", "", word) != re.sub(r"\D", "", other):
        return False  # aime24 is not aime25
    return _slips(word, other) <= (2 if len(word) >= 9 else 1)


def _slips(word: str, two: str) -> int:
    """Letters left out, put in, changed, or exchanged with their neighbour."""
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, other in enumerate(two, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and word[i - 2] == other:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]

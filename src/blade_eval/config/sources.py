"""Read YAML files as omegaconf reads them, find them under the roots, and follow what they include."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.config.config_nouns import Problem, Tree, meant

# Aliases can make a small file mean billions of values; no configuration comes near this.
MOST_VALUES = 200_000
MOST_BYTES = 5_000_000
MOST_LEVELS = 100

KeyPath = tuple[Any, ...]

# The expression is YAML 1.2's, as omegaconf has it; YAML 1.1 takes 1e-3 for text.
_FLOAT = re.compile(
    r"^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?(?:[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)"
    r"|\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_NOT_SO = ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:float")


def _as_omegaconf(parser: Any) -> Any:
    """A loader whose scalars are omegaconf's: 1e-3 is a number, and a date is text."""
    loader: Any = type("Loader", (parser,), {})
    loader.yaml_implicit_resolvers = {
        start: [pair for pair in pairs if pair[0] not in _NOT_SO]
        for start, pairs in parser.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
    return loader


_Exact = _as_omegaconf(yaml.SafeLoader)
_Quick = _as_omegaconf(getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def loaded(path: Path) -> Tree:
    """The mapping in a file; what is broken is told with its line and column."""
    return tree_of(text_of(path), path)


def text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:  # a device has no size, and no end
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise _broken(path, f"is larger than {MOST_BYTES:,} bytes")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _broken(path, f"is not UTF-8 at byte {error.start:,}") from error
    except OSError as error:
        raise _broken(path, f"cannot be read: {error.strerror or error}") from error


def tree_of(text: str, path: Path) -> dict[str, Any]:
    loader, node = _composed(text, path)
    if node is None:
        return {}
    try:
        with _broken_yaml(path):
            _refuse_odd(node, path)
            if not isinstance(node, yaml.MappingNode):
                raise _broken(path, "holds no mapping at its top level", node.start_mark)
            tree: dict[str, Any] = loader.construct_document(node)
            return tree
    finally:
        loader.dispose()


@contextmanager
def _broken_yaml(path: Path) -> Iterator[None]:
    """What is wrong with a file, with its line and column where they are known."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        why = error.problem or error.context or "broken YAML"
        raise _broken(path, f"is not valid YAML: {why}", error.problem_mark or error.context_mark) from error
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise _broken(path, f"is not valid YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise _broken(path, "nests too deep") from error


def _composed(text: str, path: Path) -> tuple[Any, Any]:
    """The nodes of a text. What the quick parser refuses the exact one may read, such as `{a:}`."""
    _refuse_deep(text, path)
    with suppress(yaml.YAMLError, RecursionError):
        loader = _Quick(text)
        return loader, loader.get_single_node()
    with _broken_yaml(path):
        loader = _Exact(text)
        return loader, loader.get_single_node()


def _refuse_deep(text: str, path: Path) -> None:
    """The quick parser descends without a bound, and would take the process with it."""
    openers = sum(text.count(mark) for mark in ("[", "{", "- ", "? "))
    if openers < 10 * MOST_LEVELS and " " * MOST_LEVELS not in text:
        return
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_Quick):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MOST_LEVELS:
                raise _broken(path, f"nests more than {MOST_LEVELS} levels", event.start_mark)
    except yaml.YAMLError:
        pass  # told by who reads it


def lines_of(path: Path) -> dict[KeyPath, int]:
    """The line (from 1) of every key and list element of a file that loads."""
    loader, node = _composed(text_of(path), path)
    loader.dispose()
    lines: dict[KeyPath, int] = {}
    waiting: list[tuple[KeyPath, Any]] = [((), node)]
    while waiting:
        above, node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                lines[*above, key.value] = key.start_mark.line + 1
                waiting.append(((*above, key.value), value))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                lines[*above, str(number)] = value.start_mark.line + 1
                waiting.append(((*above, str(number)), value))
    return lines


def _refuse_odd(top: Any, path: Path) -> None:
    """Aliases that mean too much or themselves, and a key that stands twice: the second would win without a word."""
    counts: dict[int, int] = {}  # what a node means once its aliases are spelled out

    def count(node: Any, above: frozenset[int]) -> int:
        if id(node) in above:
            raise _broken(path, "refers to itself through an alias", node.start_mark)
        if id(node) not in counts:
            inner: list[Any] = node.value if isinstance(node, yaml.SequenceNode) else []
            if isinstance(node, yaml.MappingNode):
                refuse_twice(node)
                inner = [part for pair in node.value for part in pair]
            counts[id(node)] = 1 + sum(count(part, above | {id(node)}) for part in inner)
        return counts[id(node)]

    def refuse_twice(mapping: Any) -> None:
        lines: dict[str, int] = {}
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in lines:
                    why = f"has the key {key.value} twice, first in line {lines[key.value]}"
                    raise _broken(path, why, key.start_mark)
                lines[key.value] = key.start_mark.line + 1

    if count(top, frozenset()) > MOST_VALUES:
        raise _broken(path, f"means more than {MOST_VALUES:,} values, through aliases or by its size")


def _broken(path: Path, why: str, mark: Any = None) -> Unreadable:
    place = f", line {mark.line + 1}, column {mark.column + 1}," if mark is not None else ""
    return Unreadable(f"{path}{place} {why}", "correct the file; nothing was merged", "broken-config")


FOLDERS = {
    "benchmark": "benchmarks", "environment": "environments", "resources server": "resources_servers",
    "model type": "responses_api_models",
}  # fmt: skip
EXTRA_ROOTS = "NEMO_GYM_EXTRA_ROOTS"


def installed() -> Path:
    """Where the definitions that come with BLADE stand: the repository, or beside the installed modules."""
    package = Path(__file__).resolve().parents[1]
    repository = package.parent.parent
    if (repository / "resources_servers").is_dir() and (repository / "pyproject.toml").is_file():
        return repository
    return package / "shipped"


def roots(
    search_dirs: Sequence[str] = (), environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> tuple[Path, ...]:
    """The folders in which names and relative paths are looked up, first to last, each once."""
    environ = os.environ if environ is None else environ
    folder = Path.cwd() if folder is None else folder
    extra = [part for part in environ.get(EXTRA_ROOTS, "").split(os.pathsep) if part]
    for name in search_dirs:
        if not (folder / name).expanduser().is_dir():
            hint = "name the folder that holds benchmarks/ and resources_servers/"
            raise UsageError(f"--search-dir {name} is not a folder", hint, "no-search-dir")
    paths = [*(folder / Path(name).expanduser() for name in (*search_dirs, *extra)), folder, installed()]
    return tuple(dict.fromkeys(path.resolve() for path in paths if path.is_dir()))


def candidates(relative: str | Path, under: Sequence[Path]) -> list[Path]:
    """Every root's file of that relative path, first to last; an absolute path stands for itself."""
    path = Path(relative).expanduser()
    places = [path] if path.is_absolute() else [root / path for root in under]
    return [place for place in places if place.exists()]


def not_found(what: str | Path, under: Sequence[Path], hint: str) -> UsageError:
    looked = ", ".join(str(root) for root in under)
    return UsageError(f"{what} was not found under {looked}", hint, "no-config-file")


def found(relative: str | Path, under: Sequence[Path]) -> Path:
    paths = candidates(relative, under)
    if not paths:
        hint = "check the spelling, run from the folder it is relative to, or add --search-dir"
        raise not_found(relative, under, hint)
    return paths[0]


def component_file(kind: str, name: str, under: Sequence[Path]) -> Path:
    """The file of a component's name, such as NAME or NAME/FLAVOUR, in the first root that has it."""
    folder, clean = FOLDERS[kind], name.strip("/").removesuffix(".yaml")
    first, _, flavour = clean.partition("/")
    relative = [f"{folder}/{first}/configs/{flavour or first}.yaml"]
    if kind in ("benchmark", "environment"):
        relative = [f"{folder}/{clean}/config.yaml", f"{folder}/{clean}.yaml"]
    for path in (path for text in relative for path in candidates(text, under) if path.is_file()):
        return path
    known = sorted(set(names(kind, under)))
    command = {"model type": "models"}.get(kind, kind.replace(" ", "-") + "s")
    hint = f"`blade list {command}` prints what there is; --search-dir adds a folder"
    if near := meant(name, known, 3, 0.5):
        hint = near
    elif below := [other for other in known if other.startswith(f"{name}/")][:3]:
        hint = f"did you mean {', '.join(below)}?"
    elif 0 < len(known) <= 12:
        hint = f"there are {', '.join(known)}"
    raise UsageError(f"there is no {kind} {name}", hint, "no-such-component")


def names(kind: str, under: Sequence[Path]) -> Iterator[str]:
    folder = FOLDERS[kind]
    for root in under:
        for path in yaml_files(root / folder):
            parts = path.relative_to(root / folder).with_suffix("").parts
            if kind in ("benchmark", "environment"):
                if parts[-1] not in ("manifest", "prompt") and "prompts" not in parts:
                    yield "/".join(parts[:-1] if parts[-1] == "config" and len(parts) > 1 else parts)
            elif len(parts) == 3 and parts[1] == "configs":
                yield parts[0] if parts[0] == parts[2] else f"{parts[0]}/{parts[2]}"


def yaml_files(folder: Path) -> Iterator[Path]:
    """The YAML files below a folder, in a fixed order; data and hidden folders are left out."""
    for place, inner, files in os.walk(folder):
        inner[:] = sorted(n for n in inner if n[0] not in "._" and n not in ("data", "node_modules", "tests"))
        for name in sorted(files):
            if name.endswith((".yaml", ".yml")) and name[0] != ".":
                yield Path(place) / name


Load = Callable[[Path], Tree]
Document = tuple[Path, Tree]


def chained(
    starts: Sequence[Path], roots: Sequence[Path], load: Load = loaded
) -> tuple[list[Document], list[Problem]]:
    """The files and all they include, an earlier one to be overridden by a later one.

    Whoever includes a file overrides it; of two that stand side by side the later one overrides the earlier
    one, together with all it pulled in. A file counts once: where it is met first, breadth first.
    """
    files = list(dict.fromkeys(path.resolve() for path in starts))
    above: dict[Path, Path | None] = dict.fromkeys(files)
    below: dict[Path, list[Path]] = {path: [] for path in files}
    trees: dict[Path, Tree] = {}
    problems: list[Problem] = []
    broken: list[BladeError] = []
    for path in files:  # grows while it is walked
        try:
            trees[path] = load(path)
            entries = included(path, trees[path])
        except BladeError as error:
            broken.append(error)
            continue
        for number, entry in enumerate(entries):
            try:
                inner = _entry_file(entry, number, path, roots, problems)
            except BladeError as error:
                broken.append(error)
                continue
            if inner in below:
                problems.append(_again(inner, number, path, above))
            else:
                files.append(inner)
                above[inner], below[inner] = path, []
                below[path].append(inner)
    if broken:
        raise _together(broken)
    order: list[Path] = []  # every file after those it pulled in, which stand together and as they were listed
    waiting = [(path, False) for path in reversed(files) if above[path] is None]
    while waiting:
        path, is_ready = waiting.pop()
        if is_ready:
            order.append(path)
        else:
            waiting += [(path, True), *((inner, False) for inner in reversed(below[path]))]
    return [(path, trees[path]) for path in order], problems


def included(path: Path, tree: Tree) -> list[str]:
    entries = tree.get("config_paths") or []
    if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
        return entries
    what = f"{_place(path, ('config_paths',))}: config_paths is no list of paths but {entries!r}"
    raise UsageError(what, "write one `- path` per line below config_paths", "bad-config-paths")


def _entry_file(entry: str, number: int, path: Path, roots: Sequence[Path], problems: list[Problem]) -> Path:
    place = _place(path, ("config_paths", str(number)))
    if (inner := first_file(entry, roots, problems, place)) is not None:
        return inner
    beside = (path.parent / entry).resolve()
    hint = _near(entry, roots)
    if beside.is_file():
        inside = [root for root in roots if beside.is_relative_to(root)]
        hint = f"it stands beside the file: write {beside.relative_to(inside[0]) if inside else beside}"
    raise not_found(f"{place}: config_paths names {entry}, which", roots, hint)


def first_file(entry: str | Path, roots: Sequence[Path], problems: list[Problem], place: str = "") -> Path | None:
    """The file of the first root that has it; that others have one of the same name is told."""
    paths = list(dict.fromkeys(path.resolve() for path in candidates(entry, roots) if path.is_file()))
    if len(paths) > 1:
        message = f"{entry} is taken from {paths[0]}, not from {', '.join(map(str, paths[1:]))}"
        problems.append(Problem("warning", message, "config_paths", place))
    return paths[0] if paths else None


def _near(entry: str, roots: Sequence[Path]) -> str:
    if Path(entry).name:
        paths = [path.relative_to(root) for root in roots for path in yaml_files(root / Path(entry).parts[0])]
        known = {_telling(path): path for path in paths}
        if near := get_close_matches(_telling(Path(entry)), known, 1, 0.7):
            return f"did you mean {known[near[0]]}?"
    return "paths are relative to a root; --search-dir adds one"


def _telling(path: Path) -> str:
    """The part of a path that tells it from others: they all stand in some folder's configs/."""
    return "/".join(part for part in path.with_suffix("").parts[1:] if part not in ("configs", "config"))


def _again(inner: Path, number: int, path: Path, above: dict[Path, Path | None]) -> Problem:
    place = _place(path, ("config_paths", str(number)))
    circle = [path]
    while circle[-1] != inner and (up := above[circle[-1]]) is not None:
        circle.append(up)
    if circle[-1] == inner:
        ring = [*reversed(circle), inner]
        way = " → ".join(str(step) if step.name == "config.yaml" else step.name for step in ring)
        message = f"config_paths goes in a circle, which ends here: {way}"
        return Problem("warning", message, "config_paths", place, "take one of the entries out")
    message = f"{inner} is included already; it is merged once, where it was met first"
    return Problem("notice", message, "config_paths", place)


def _place(path: Path, key: tuple[str, ...]) -> str:
    with suppress(BladeError):
        if line := lines_of(path).get(key):
            return f"{path}:{line}"
    return str(path)


def _together(broken: list[BladeError]) -> BladeError:
    if len(broken) == 1:
        return broken[0]
    message = f"{len(broken)} files cannot be used:\n" + "\n".join(f"  {error.message}" for error in broken)
    kind = Unreadable if any(isinstance(error, Unreadable) for error in broken) else UsageError
    return kind(message, broken[0].hint, broken[0].slug)

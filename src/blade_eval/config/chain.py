"""Follow `config_paths` from file to file, into the order in which the files are merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from blade.errors import BladeError, Unreadable, UsageError
from blade_eval.config.documents import lines_of, loaded
from blade_eval.config.nouns import Problem, Tree
from blade_eval.config.places import candidates, yaml_files

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
            wanted = included(path, trees[path])
        except BladeError as error:
            broken.append(error)
            continue
        for number, entry in enumerate(wanted):
            try:
                inner = _one(entry, number, path, roots, problems)
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
        raise _all(broken)
    return [(path, trees[path]) for path in _merge_order(files, above, below)], problems


def included(path: Path, tree: Tree) -> list[str]:
    """The entries of a file's `config_paths`."""
    wanted = tree.get("config_paths") or []
    if isinstance(wanted, list) and all(isinstance(entry, str) for entry in wanted):
        return wanted
    place = _place(path, ("config_paths",))
    raise UsageError(
        f"{place}: config_paths is no list of paths but {wanted!r}",
        "write one `- path` per line below config_paths",
        "bad-config-paths",
    )


def _merge_order(
    files: list[Path], above: dict[Path, Path | None], below: dict[Path, list[Path]]
) -> list[Path]:
    """Every file after those it pulled in, the ones below it together and in the order they were listed."""
    order: list[Path] = []
    waiting = [(path, False) for path in reversed(files) if above[path] is None]
    while waiting:
        path, ready = waiting.pop()
        if ready:
            order.append(path)
            continue
        waiting.append((path, True))
        waiting += [(inner, False) for inner in reversed(below[path])]
    return order


def _one(entry: str, number: int, path: Path, roots: Sequence[Path], problems: list[Problem]) -> Path:
    there = list(dict.fromkeys(one.resolve() for one in candidates(entry, roots) if one.is_file()))
    key = ("config_paths", str(number))
    if not there:
        beside = path.parent / entry
        hint = (
            f"it stands beside the file: write {_under(beside, roots)}"
            if beside.is_file()
            else _near(entry, roots)
        )
        looked = ", ".join(str(root) for root in roots)
        raise UsageError(
            f"{_place(path, key)}: config_paths names {entry}, which was not found under {looked}",
            hint,
            "no-config-file",
        )
    if len(there) > 1:
        problems.append(shadowed(entry, there, _place(path, key)))
    return there[0]


def shadowed(entry: str, there: Sequence[Path], place: str = "") -> Problem:
    """Two roots have the same file: which of them is taken."""
    others = ", ".join(str(one) for one in there[1:])
    return Problem("warning", f"{entry} is taken from {there[0]}, not from {others}", "config_paths", place)


def _under(path: Path, roots: Sequence[Path]) -> str:
    inside = [root for root in roots if path.resolve().is_relative_to(root)]
    return str(path.resolve().relative_to(inside[0]) if inside else path.resolve())


def _near(entry: str, roots: Sequence[Path]) -> str:
    top = Path(entry).parts[0] if Path(entry).parts else ""
    paths = [path.relative_to(root) for root in roots for path in yaml_files(root / top)] if top else []
    known = {_telling(path): path for path in paths}
    near = get_close_matches(_telling(Path(entry)), known, 1, 0.7)
    return (
        f"did you mean {known[near[0]]}?" if near else "paths are relative to a root; --search-dir adds one"
    )


def _telling(path: Path) -> str:
    """The part of a path that tells it from others: they all stand in some folder's configs/."""
    return "/".join(part for part in path.with_suffix("").parts[1:] if part not in ("configs", "config"))


def _again(inner: Path, number: int, path: Path, above: dict[Path, Path | None]) -> Problem:
    place = _place(path, ("config_paths", str(number)))
    circle = [path]
    while circle[-1] != inner and (up := above[circle[-1]]) is not None:
        circle.append(up)
    if circle[-1] == inner:
        way = " → ".join(
            one.name if one.name != "config.yaml" else str(one) for one in [*reversed(circle), inner]
        )
        message = f"config_paths goes in a circle, which ends here: {way}"
        return Problem("warning", message, "config_paths", place, "take one of the entries out")
    message = f"{inner} is included already; it is merged once, where it was met first"
    return Problem("notice", message, "config_paths", place)


def _place(path: Path, key: tuple[str, ...]) -> str:
    try:
        line = lines_of(path).get(key)
    except BladeError:
        line = None
    return f"{path}:{line}" if line else str(path)


def _all(broken: list[BladeError]) -> BladeError:
    """Every file that cannot be used, in one message."""
    if len(broken) == 1:
        return broken[0]
    message = f"{len(broken)} files cannot be used:\n" + "\n".join(f"  {error.message}" for error in broken)
    kind = Unreadable if any(isinstance(error, Unreadable) for error in broken) else UsageError
    return kind(message, broken[0].hint, broken[0].slug)

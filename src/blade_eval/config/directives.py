"""Carry out `_inherit_from`, `_copy` and `_delete_key` on a merged configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from blade.errors import BladeError, UsageError
from blade_eval.config.config_nouns import KINDS, OPEN, RESERVED, RUN, UNSET, Keys, Problem, Tree, walk
from blade_eval.config.secret import without
from blade_eval.config.sources import MOST_LEVELS, tree_of

Merge = Callable[[Tree, Tree], Tree]


@dataclass
class Applied:
    """What the directives did: problems, and for every target the path its values come from."""

    tree: Tree
    problems: list[Problem] = field(default_factory=list)
    sources: dict[Keys, Keys] = field(default_factory=dict)


def merged(under: Tree, over: Tree) -> Tree:
    """Two mappings as one: mappings are merged, all else is replaced; an unset value replaces nothing."""
    result = dict(under)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            result[key] = merged(below, value)
        elif key not in result or value != UNSET:
            result[key] = value
    return result


def applied(tree: Tree, merge: Merge = merged) -> Applied:
    """The tree with its directives carried out.

    A source is looked up in the tree as it was before any directive, so a source that inherits itself is
    not expanded: that is the incumbent's rule, and whether a file relies on it cannot be seen.
    """
    done = Applied(deepcopy(tree))
    left: list[tuple[Keys, str]] = []
    _walk(done.tree, (), done, left, tree, merge)
    for path, name in left:
        _delete_inherited(path, name, done)
    return done


def _walk(
    holder: Tree | list[Any],
    above: Keys,
    done: Applied,
    left: list[tuple[Keys, str]],
    before: Tree,
    merge: Merge,
) -> None:
    inside: Any = holder
    for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
        if isinstance(holder, dict) and key not in holder:  # taken away meanwhile, as somebody's source
            continue
        path = (*above, str(key))
        value = inside[key]
        if isinstance(value, dict):
            left += [(path, name) for name in _delete(value)]
        if isinstance(value, dict | list):
            _walk(value, path, done, left, before, merge)
        wanted = _wanted(value)
        if wanted is not None:
            _take(inside, key, path, wanted, done, before, merge)


def _delete(value: Tree) -> list[str]:
    """Take away the keys that are there; those that are not may come with what is inherited."""
    wanted = value.pop("_delete_key", None)
    names = [part.strip() for part in str(wanted).split(",")] if wanted else []
    return [name for name in names if name and value.pop(name, _wanted) is _wanted]


def _delete_inherited(path: Keys, name: str, done: Applied) -> None:
    """Take away a key that came with what was inherited, be it by a block further up."""
    value = _at(done.tree, path)
    if isinstance(value, dict) and name in value:
        value.pop(name)
    elif value not in (UNSET, _Absent):
        hint = _mean(name, [str(one) for one in value] if isinstance(value, dict) else [])
        message = f"_delete_key names {name}, which {'.'.join(path)} does not have"
        done.problems.append(Problem("error", message, ".".join((*path, "_delete_key")), hint=hint))


def _wanted(value: Any) -> tuple[str, bool, bool] | None:
    """The path to take a value from, whether the source goes, and whether own keys are merged over it."""
    if isinstance(value, dict):
        for name, moves in (("_inherit_from", True), ("_copy", False)):
            if name in value:
                return str(value.pop(name)), moves, True
    if isinstance(value, str) and value.endswith("}"):
        for start, moves in (("${inherit_from:", True), ("${copy:", False)):
            if value.startswith(start):
                return value.removeprefix(start).removesuffix("}").strip(), moves, False
    return None


def _take(
    mapping: Any,  # or a list, and the place in it
    key: str | int,
    path: Keys,
    wanted: tuple[str, bool, bool],
    done: Applied,
    before: Tree,
    merge: Merge,
) -> None:
    source, moves, merges = wanted
    keys = tuple(source.split("."))
    taken = _at(before, keys)
    if taken is _Absent:
        word = "_inherit_from" if moves else "_copy"
        name = ".".join(path)
        hint = _mean(keys[-1], _siblings(before, keys))
        message = f"{name} takes its values from {source}, which is nowhere in the merged config"
        done.problems.append(Problem("error", message, f"{name}.{word}" if merges else name, hint=hint))
        if not merges:
            mapping[key] = UNSET
        return
    if moves:
        holder = _at(done.tree, keys[:-1])
        if isinstance(holder, dict) and path[: len(keys)] != keys:
            holder.pop(keys[-1], None)
    if taken == UNSET:
        mapping[key] = UNSET
        return
    done.sources[path] = keys
    taken = deepcopy(taken)
    if merges and isinstance(taken, dict):
        mapping[key] = merge(taken, mapping[key])
    elif not merges:
        mapping[key] = taken
    else:
        message = f"{'.'.join(path)} inherits from {source}, which is no mapping"
        done.problems.append(Problem("error", message, ".".join(path)))


class _Absent:
    """No such path."""


def _at(tree: Any, keys: Keys) -> Any:
    for key in keys:
        if tree == UNSET:
            return UNSET
        if isinstance(tree, dict) and key in tree:
            tree = tree[key]
        elif isinstance(tree, list) and key.isdigit() and int(key) < len(tree):
            tree = tree[int(key)]
        else:
            return _Absent
    return tree


def _siblings(tree: Tree, keys: Keys) -> list[str]:
    holder = _at(tree, keys[:-1])
    return [str(key) for key in holder] if isinstance(holder, dict) else [str(key) for key in tree]


def _mean(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 3, 0.6)
    return f"did you mean {', '.join(near)}?" if near else ""


_INDEX = re.compile(r"\[(\d+)\]")
_FLOW_KEY = re.compile(r"([{,]\s*[\w.+-]+):(?!\s)")  # {a:1} is written without the space that YAML wants


@dataclass(frozen=True)
class Override:
    """One change: where, to what, and whether the key was said to be new."""

    keys: tuple[str, ...]
    value: Any
    new: bool  # + or ++: the key may be missing so far
    removes: bool = False

    @property
    def deep(self) -> bool:
        """It reaches into a list, which is there only after everything was inherited."""
        return any(key.isdigit() for key in self.keys)

    @property
    def known(self) -> bool:
        """It is a setting of the run as a whole, which no definition has to have."""
        return ".".join(self.keys) in RUN or self.keys[0] in RESERVED or self.keys[0] in OPEN


def parsed(given: str) -> Override:
    """One argument of the command line as a change."""
    key, equals, text = given.partition("=")
    removes = key.startswith("~")
    name = key.lstrip("~") if removes else key.removeprefix("+").removeprefix("+")
    keys = tuple(_INDEX.sub(r".\1", name.strip()).split("."))
    if (
        len(keys) > MOST_LEVELS
        or not all(keys)
        or not (equals or removes)
        or any(set(key) & set(" \t\"'{}") for key in keys)
    ):
        shown = f"{key[:80]}=…" if equals else without(given[:200], ())  # what was to be set may be a key
        raise UsageError(
            f"{shown!r} is no override",
            "overrides are key=value, such as ++num_repeats=4 or ++a.b.c=x; ~a.b takes a key away",
            "bad-override",
        )
    return Override(keys, None if removes else value_of(text, name), key.startswith("+"), removes)


def value_of(text: str, name: str) -> Any:
    """A value as YAML reads it; text that YAML would read as more than a plain value stays text."""
    bare = text.strip()
    if not bare:
        return ""
    nested = bare[0] in "[{"
    if bare[0] in "&*!|>%@`#" or (not nested and bare[0] not in "\"'" and re.search(r":\s|\s#|:$", bare)):
        return bare
    source = _FLOW_KEY.sub(r"\1: ", bare) if nested else bare
    try:
        return tree_of(f"value: {source}\n", Path("override"))["value"]
    except BladeError as error:
        if not nested and bare[0] not in "\"'":
            return bare
        raise UsageError(
            f"the value of {name!r} cannot be read", "quote it, or balance its brackets", "bad-override"
        ) from error


def as_tree(override: Override) -> Tree:
    """The change as a mapping that can be merged."""
    tree: Any = override.value
    for key in reversed(override.keys):
        tree = {key: tree}
    made: Tree = tree
    return made


def there(tree: Any, keys: tuple[str, ...]) -> bool:
    """Whether a path exists."""
    for key in keys:
        if isinstance(tree, dict) and key in tree:
            tree = tree[key]
        elif isinstance(tree, list) and key.isdigit() and int(key) < len(tree):
            tree = tree[int(key)]
        else:
            return False
    return True


def change(tree: Tree, override: Override) -> bool:
    """Carry out a change in place; False when there is no such place."""
    holder: Any = tree
    for key in override.keys[:-1]:
        if isinstance(holder, list) and key.isdigit() and int(key) < len(holder):
            holder = holder[int(key)]
        elif isinstance(holder, dict) and key in holder:
            holder = holder[key]
        elif isinstance(holder, dict) and not override.removes:
            holder = holder.setdefault(key, {})
        else:
            return False
    last = override.keys[-1]
    if isinstance(holder, list) and last.isdigit() and int(last) < len(holder):
        if override.removes:
            holder.pop(int(last))
        else:
            holder[int(last)] = override.value
        return True
    if not isinstance(holder, dict) or (override.removes and last not in holder):
        return False
    if override.removes:
        holder.pop(last)
    else:
        holder[last] = override.value
    return True


# -- keys that nobody knows -----------------------------------------------------------------------


def nowhere(override: Override, tree: Tree) -> Problem:
    """That a change has no place."""
    return _unplaced(override, tree, "is nowhere in the config")


def new(override: Override, tree: Tree) -> Problem:
    """That a change would make a key, and nobody said so."""
    return _unplaced(override, tree, "is not in the config; write + before it if it is meant to be new")


def _unplaced(override: Override, tree: Tree, why: str) -> Problem:
    key = ".".join(override.keys)
    return Problem("error", f"{key} {why}", key, "command line", _guess(override.keys, tree))


def _guess(keys: Sequence[str], tree: Tree) -> str:
    known = {".".join(path) for path, _ in walk(tree) if len(path) == len(keys)}
    settings = [name for name in sorted(RUN | RESERVED) if name.count(".") == len(keys) - 1]
    near = get_close_matches(".".join(keys), [*sorted(known), *settings], 1, 0.8)
    return f"did you mean {near[0]}?" if near else ""


def unread(overrides: Iterable[Override], written: Tree, tree: Tree) -> list[Problem]:
    """Top-level keys that were said to be new and that nothing reads: no server, no setting, no reference."""
    problems = []
    for override in overrides:
        name = override.keys[0]
        block = tree.get(name)
        is_server = isinstance(block, dict) and any(kind in block for kind in KINDS)
        if not override.new or override.known or is_server or name not in tree:
            continue
        if _is_named(name, {key: value for key, value in written.items() if key != name}):
            continue
        key = ".".join(override.keys)
        others = {other: value for other, value in tree.items() if other != name}
        problems.append(
            Problem("warning", f"nothing reads {key}", key, "command line", _guess(override.keys, others))
        )
    return problems


def _is_named(name: str, tree: Tree) -> bool:
    """Whether some value refers to a top-level key: ${name…}, or as the source of a directive."""
    refers = re.compile(rf"\$\{{[^}}]*\b{re.escape(name)}\b")
    texts = (value for _, value in walk(tree) if isinstance(value, str))
    return any(text.split(".")[0] == name or refers.search(text) for text in texts)

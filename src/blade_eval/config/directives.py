"""Carry out `_inherit_from`, `_copy` and `_delete_key` on a merged configuration."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from blade_eval.config.nouns import Problem, Tree

UNSET = "???"
Keys = tuple[str, ...]
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

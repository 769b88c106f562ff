"""Carry out `_inherit_from`, `_copy`, `_delete_key` and the overrides of the command line on a merged configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from blade.errors import BladeError, UsageError
from blade_eval.config.config_nouns import (
    KINDS,
    OPEN,
    RESERVED,
    RUN,
    UNSET,
    Keys,
    Level,
    Problem,
    Tree,
    meant,
    walk,
)
from blade_eval.config.secret import without
from blade_eval.config.sources import MOST_LEVELS, tree_of

Merge = Callable[[Tree, Tree], Tree]


class _Absent:
    """No such path."""


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


def _step(holder: Any, key: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(key, _Absent)
    is_place = isinstance(holder, list) and key.isdigit() and int(key) < len(holder)
    return holder[int(key)] if is_place else _Absent


def there(tree: Any, keys: Keys) -> bool:
    return reduce(_step, keys, tree) is not _Absent


def _value(tree: Any, keys: Keys) -> Any:
    return reduce(lambda value, key: UNSET if value == UNSET else _step(value, key), keys, tree)


class Applied:
    """A tree with its directives carried out; problems, and for every target the path its values come from.

    A source is looked up in the tree as it was before any directive, so a source that inherits itself is
    not expanded: that is the incumbent's rule, and whether a file relies on it cannot be seen.
    """

    def __init__(self, before: Tree, merge: Merge = merged) -> None:
        self.tree = deepcopy(before)
        self.problems: list[Problem] = []
        self.sources: dict[Keys, Keys] = {}
        self._before, self._merge = before, merge
        self._deletions: list[tuple[Keys, str]] = []
        self._walk(self.tree, ())
        for path, name in self._deletions:  # keys that came with what was inherited, be it by a block further up
            value = _value(self.tree, path)
            if isinstance(value, dict) and name in value:
                value.pop(name)
            elif value not in (UNSET, _Absent):
                message = f"_delete_key names {name}, which {'.'.join(path)} does not have"
                place = ".".join((*path, "_delete_key"))
                near = meant(name, map(str, value)) if isinstance(value, dict) else ""
                self.problems.append(Problem("error", message, place, hint=near))

    def _walk(self, holder: Tree | list[Any], above: Keys) -> None:
        inside: Any = holder
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            if isinstance(holder, dict) and key not in holder:  # taken away meanwhile, as somebody's source
                continue
            path, value = (*above, str(key)), inside[key]
            if isinstance(value, dict):
                names = str(value.pop("_delete_key", None) or "").split(",")
                # keys that are not there may come with what is inherited
                absent = [name for name in map(str.strip, names) if name and value.pop(name, _Absent) is _Absent]
                self._deletions += [(path, name) for name in absent]
            if isinstance(value, dict | list):
                self._walk(value, path)
            if isinstance(value, dict):
                for name in ("_inherit_from", "_copy"):
                    if name in value:
                        self._merge_source(inside, key, path, name, str(value.pop(name)))
                        break
            elif isinstance(value, str) and (match := _DIRECTIVE.fullmatch(value)):
                taken = self._source(path, f"_{match[1]}", match[2].strip(), ".".join(path))
                inside[key] = UNSET if taken is _Absent else taken

    def _merge_source(self, holder: Any, key: str | int, path: Keys, word: str, source: str) -> None:
        name = ".".join(path)
        value = self._source(path, word, source, f"{name}.{word}")
        if value == UNSET:
            holder[key] = UNSET
        elif isinstance(value, dict):
            holder[key] = self._merge(value, holder[key])
        elif value is not _Absent:
            message = f"{name} inherits from {source}, which is no mapping"
            self.problems.append(Problem("error", message, name))

    def _source(self, path: Keys, word: str, source: str, place: str) -> Any:
        """A copy of what stands at the source, which goes unless it is only copied."""
        keys = tuple(source.split("."))
        value = _value(self._before, keys)
        if value is _Absent:
            siblings = _value(self._before, keys[:-1])
            hint = meant(keys[-1], map(str, siblings if isinstance(siblings, dict) else self._before))
            message = f"{'.'.join(path)} takes its values from {source}, which is nowhere in the merged config"
            self.problems.append(Problem("error", message, place, hint=hint))
            return _Absent
        if word == "_inherit_from":
            holder = _value(self.tree, keys[:-1])
            if isinstance(holder, dict) and path[: len(keys)] != keys:
                holder.pop(keys[-1], None)
        if value != UNSET:
            self.sources[path] = keys
        return deepcopy(value)


_DIRECTIVE = re.compile(r"\$\{(inherit_from|copy):(.*)\}", re.DOTALL)
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
    def tree(self) -> Tree:
        tree: Tree = reduce(lambda value, key: {key: value}, reversed(self.keys), self.value)
        return tree

    @property
    def whose(self) -> str:
        return f"the override of {'.'.join(self.keys)}"

    @property
    def deep(self) -> bool:
        """It reaches into a list, which is there only after everything was inherited."""
        return any(key.isdigit() for key in self.keys)

    @property
    def known(self) -> bool:
        """It is a setting of the run as a whole, which no definition has to have."""
        return ".".join(self.keys) in RUN or self.keys[0] in RESERVED or self.keys[0] in OPEN


def parsed(text: str) -> Override:
    key, equals, value = text.partition("=")
    removes = key.startswith("~")
    name = key.lstrip("~") if removes else key.removeprefix("+").removeprefix("+")
    keys = tuple(_INDEX.sub(r".\1", name.strip()).split("."))
    is_broken = not all(keys) or not (equals or removes) or any(set(key) & set(" \t\"'{}") for key in keys)
    if is_broken or len(keys) > MOST_LEVELS:
        shown = f"{key[:80]}=…" if equals else without(text[:200], ())  # what was to be set may be a key
        raise UsageError(
            f"{shown!r} is no override",
            "overrides are key=value, such as ++num_repeats=4 or ++a.b.c=x; ~a.b takes a key away", "bad-override",
        )  # fmt: skip
    return Override(keys, None if removes else value_of(value, name), key.startswith("+"), removes)


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
        hint = "quote it, or balance its brackets"
        raise UsageError(f"the value of {name!r} cannot be read", hint, "bad-override") from error


def change(tree: Tree, override: Override) -> bool:
    """Carry out a change in place; False when there is no such place."""
    holder: Any = tree
    *above, last = override.keys
    for key in above:
        inner = _step(holder, key)
        if inner is _Absent:
            if override.removes or not isinstance(holder, dict):
                return False
            inner = holder[key] = {}
        holder = inner
    if _step(holder, last) is _Absent and (override.removes or not isinstance(holder, dict)):
        return False
    place = int(last) if isinstance(holder, list) else last
    if override.removes:
        del holder[place]
    else:
        holder[place] = override.value
    return True


NOWHERE = "{} is nowhere in the config"
NOT_NEW = "{} is not in the config; write + before it if it is meant to be new"  # it would be made, and nobody said so


def unplaced(override: Override, tree: Tree, what: str = NOT_NEW, level: Level = "error") -> Problem:
    key, depth = ".".join(override.keys), len(override.keys)
    names = sorted({".".join(path) for path, _ in walk(tree) if len(path) == depth})
    names += [name for name in sorted(RUN | RESERVED) if name.count(".") == depth - 1]
    return Problem(level, what.format(key), key, "command line", meant(key, names, 1, 0.8))


def unread(overrides: Iterable[Override], written: Tree, tree: Tree) -> list[Problem]:
    """Top-level keys that were said to be new and that nothing reads: no server, no setting, no reference."""
    problems = []
    for override in overrides:
        name = override.keys[0]
        block = tree.get(name)
        is_server = isinstance(block, dict) and any(kind in block for kind in KINDS)
        if not override.new or override.known or is_server or name not in tree or _is_named(name, written):
            continue
        others = {other: value for other, value in tree.items() if other != name}
        problems.append(unplaced(override, others, "nothing reads {}", "warning"))
    return problems


def _is_named(name: str, tree: Tree) -> bool:
    """Whether some value elsewhere refers to a top-level key: ${name…}, or as the source of a directive."""
    refers = re.compile(rf"\$\{{[^}}]*\b{re.escape(name)}\b")
    others = (value for key, value in tree.items() if key != name)
    texts = (text for value in others for _, text in walk(value) if isinstance(text, str))
    return any(text.split(".")[0] == name or refers.search(text) for text in texts)

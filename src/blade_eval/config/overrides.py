"""Turn `key=value`, `+key=value`, `++key=value` and `~key` of a command line into changes of a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from blade.errors import BladeError, UsageError
from blade_eval.config.documents import tree_of
from blade_eval.config.nouns import KINDS, OPEN, RESERVED, RUN, Problem, Tree
from blade_eval.config.secret import without

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
    if not all(keys) or not (equals or removes) or any(set(key) & set(" \t\"'{}") for key in keys):
        shown = f"{key}=…" if equals else without(given, ())  # what was to be set may be a key
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
    return _told(override, tree, "is nowhere in the config")


def new(override: Override, tree: Tree) -> Problem:
    """That a change would make a key, and nobody said so."""
    return _told(override, tree, "is not in the config; write + before it if it is meant to be new")


def _told(override: Override, tree: Tree, why: str) -> Problem:
    key = ".".join(override.keys)
    return Problem("error", f"{key} {why}", key, "command line", _guess(override.keys, tree))


def _guess(keys: Sequence[str], tree: Tree) -> str:
    known = {".".join(path) for path in _paths(tree) if len(path) == len(keys)}
    settings = [name for name in sorted(RUN | RESERVED) if name.count(".") == len(keys) - 1]
    near = get_close_matches(".".join(keys), [*sorted(known), *settings], 1, 0.8)
    return f"did you mean {near[0]}?" if near else ""


def _paths(value: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(value, dict):
        pairs = [(str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list):
        pairs = [(str(number), inner) for number, inner in enumerate(value)]
    else:
        return []
    return [path for key, inner in pairs for path in [(*above, key), *_paths(inner, (*above, key))]]


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


def _is_named(name: str, value: Any) -> bool:
    """Whether some value refers to a top-level key: ${name…}, or as the source of a directive."""
    if isinstance(value, dict):
        return any(_is_named(name, inner) for inner in value.values())
    if isinstance(value, list):
        return any(_is_named(name, inner) for inner in value)
    if not isinstance(value, str):
        return False
    return value.split(".")[0] == name or re.search(rf"\$\{{[^}}]*\b{re.escape(name)}\b", value) is not None

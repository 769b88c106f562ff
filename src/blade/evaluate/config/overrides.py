"""Turn `key=value`, `+key=value`, `++key=value` and `~key` of a command line into changes of a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blade.errors import BladeError, UsageError
from blade.evaluate.config.documents import tree_of
from blade.evaluate.config.nouns import Tree
from blade.evaluate.config.secret import without

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

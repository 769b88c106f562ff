"""Turn a YAML file into plain values as omegaconf reads them, and know the line of every key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from blade.errors import Unreadable

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


def loaded(path: Path) -> dict[str, Any]:
    """The mapping in a file; what is broken is told with its line and column."""
    return tree_of(text_of(path), path)


def text_of(path: Path) -> str:
    """A file's text."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _broken(path, f"is larger than {MOST_BYTES:,} bytes")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _broken(path, f"is not UTF-8 at byte {error.start:,}") from error
    except OSError as error:
        raise _broken(path, f"cannot be read: {error.strerror or error}") from error


def tree_of(text: str, path: Path) -> dict[str, Any]:
    """The mapping in a text that stands in `path`."""
    loader, node = _composed(text, path)
    if node is None:
        return {}
    try:
        if "*" in text:  # without an alias a file means no more values than it has characters
            _refuse_bomb(node, path)
        if not isinstance(node, yaml.MappingNode):
            raise _broken(path, "holds no mapping at its top level", node.start_mark)
        _refuse_twice(node, path)
        built: dict[str, Any] = loader.construct_document(node)
        return built
    except yaml.MarkedYAMLError as error:
        why = error.problem or error.context or "broken YAML"
        raise _broken(path, f"is not valid YAML: {why}", error.problem_mark or error.context_mark) from error
    except (ValueError, TypeError) as error:
        raise _broken(path, f"is not valid YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise _broken(path, "nests too deep") from error
    finally:
        loader.dispose()


def _composed(text: str, path: Path) -> tuple[Any, Any]:
    """The nodes of a text. What the quick parser refuses the exact one may read, such as `{a:}`."""
    _refuse_deep(text, path)
    try:
        loader = _Quick(text)
        return loader, loader.get_single_node()
    except (yaml.YAMLError, RecursionError):
        pass
    try:
        loader = _Exact(text)
        return loader, loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        why = error.problem or error.context or "broken YAML"
        raise _broken(path, f"is not valid YAML: {why}", error.problem_mark or error.context_mark) from error
    except yaml.YAMLError as error:
        raise _broken(path, f"is not valid YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise _broken(path, "nests too deep") from error


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
    found: dict[KeyPath, int] = {}
    waiting: list[tuple[KeyPath, Any]] = [((), node)]
    while waiting:
        above, node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                found[*above, key.value] = key.start_mark.line + 1
                waiting.append(((*above, key.value), value))
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                found[*above, str(number)] = value.start_mark.line + 1
                waiting.append(((*above, str(number)), value))
    return found


def _refuse_bomb(node: Any, path: Path) -> None:
    """Count what a document means once its aliases are spelled out, without spelling them out."""
    counts: dict[int, int] = {}

    def count(one: Any, above: frozenset[int]) -> int:
        if id(one) in above:
            raise _broken(path, "refers to itself through an alias", one.start_mark)
        if id(one) not in counts:
            inner: list[Any] = []
            if isinstance(one, yaml.MappingNode):
                inner = [part for pair in one.value for part in pair]
            elif isinstance(one, yaml.SequenceNode):
                inner = one.value
            counts[id(one)] = 1 + sum(count(part, above | {id(one)}) for part in inner)
        return counts[id(one)]

    if count(node, frozenset()) > MOST_VALUES:
        raise _broken(path, f"means more than {MOST_VALUES:,} values, through aliases or by its size")


def _refuse_twice(top: Any, path: Path) -> None:
    """A key that stands twice in one mapping: the second would win without a word."""
    waiting = [top]
    seen_nodes: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen_nodes:
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        if not isinstance(node, yaml.MappingNode):
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            waiting.append(value)
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in lines:
                raise _broken(
                    path, f"has the key {key.value} twice, first in line {lines[key.value]}", key.start_mark
                )
            lines[key.value] = key.start_mark.line + 1


def _broken(path: Path, why: str, mark: Any = None) -> Unreadable:
    place = f", line {mark.line + 1}, column {mark.column + 1}," if mark is not None else ""
    return Unreadable(f"{path}{place} {why}", "correct the file; nothing was merged", "broken-config")

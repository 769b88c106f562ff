"""Read from a row what its task asks and what it expects: the gold answer, the expected calls, the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from blade.events.episodes import declared_tools
from blade.events.quotes import parsed
from blade.model import Gold

_ANSWERS = (
    "expected_answer expected_output gold_answer gold ground_truth reference_answer correct_answer target "
    "answer_key label solution answer expected_outputs".split()
)
ACTIONS = "expected_actions gold_actions expected_tool_calls expected_calls ground_truth_actions actions".split()
_PERHAPS = ("ground_truth", "expected_answers")  # where every entry calls a tool that the row declares
_HOLDERS = ("", "verifier_metadata", "metadata", "verifier")
ARGUMENTS = ("kwargs", "arguments", "args", "parameters", "input")
_MAX_GOLD = 2000


def gold(row: Mapping[str, Any]) -> Gold:
    """What the row says its task expects."""
    answer, answer_field = _first(row, _ANSWERS, _as_answer)
    actions, actions_field = _first(row, ACTIONS, _as_actions)
    if not actions:
        actions, actions_field = _first(row, _PERHAPS, lambda value: _called(value, row))
    return Gold(answer, answer_field, actions or (), actions_field)


def _first(row: Mapping[str, Any], names: Iterable[str], take: Any) -> tuple[Any, str | None]:
    for holder in _HOLDERS:
        inner = row.get(holder) if holder else row
        if isinstance(inner, Mapping):
            for name in names:
                value = take(inner[name]) if name in inner else None
                if value:
                    return value, f"{holder}.{name}" if holder else name
    return None, None


def _called(value: Any, row: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The calls of a list in which every entry calls a tool of the row; of any other value none."""
    entries = value if isinstance(value, list) else ()
    if not all(any(key in _inner(entry) for key in ARGUMENTS) for entry in entries):
        return ()
    result = _as_actions(entries)
    is_whole = len(result) == len(entries) and {name for name, _ in result} <= set(declared_tools(row))
    return result if is_whole else ()


def _inner(entry: Any) -> Mapping[str, Any]:
    """The name and arguments of a call, which may stand within its `function`."""
    if not isinstance(entry, Mapping):
        return {}
    return entry["function"] if isinstance(entry.get("function"), Mapping) else entry


def _as_answer(value: Any) -> str | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value).strip()
    return text if 0 < len(text) <= _MAX_GOLD else None


def _as_actions(value: Any) -> tuple[tuple[str, Any], ...]:
    """Calls the model must make; an action that the user takes is none of them."""
    result = []
    for entry in value if isinstance(value, list) else ():
        if not isinstance(entry, Mapping) or entry.get("requestor", "assistant") not in ("assistant", "agent"):
            continue
        source = _inner(entry)
        name = source.get("name", source.get("tool"))
        if isinstance(name, str):
            arguments: Any = next((source[key] for key in ARGUMENTS if key in source), {})
            result.append((name, parsed(arguments) if isinstance(arguments, str) else arguments))
    return tuple(result)


def prompt(row: Mapping[str, Any]) -> str:
    """All text of the request: instructions and input."""
    params = row.get("responses_create_params")
    return "\n".join(_texts(params, ("instructions", "input"))) if isinstance(params, Mapping) else ""


def _texts(value: Any, keys: Sequence[str] = ("content", "text", "output", "arguments")) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, Mapping):
        for key in keys:
            if value.get(key):
                yield from _texts(value[key])

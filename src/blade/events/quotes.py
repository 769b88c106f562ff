"""Spell JSON values in one way, mask volatile ones, and quote passages of steps and fields."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from blade.model import Episode, Evidence, Step

_VOLATILE = frozenset("timestamp request_id call_id nonce trace_id span_id idempotency_key session_id".split())


def parsed(text: str) -> Any:
    """The JSON in a text; None if there is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def canonical(value: Any) -> str:
    """A JSON value in one spelling, without fields that differ from call to call by nature."""
    if isinstance(value, dict) and _VOLATILE & value.keys():
        value = {key: inner for key, inner in value.items() if key not in _VOLATILE}
    try:
        text = msgspec.json.encode(value, order="deterministic").decode()
        return msgspec.json.encode(_whole(value), order="deterministic").decode() if ".0" in text else text
    except (TypeError, ValueError, RecursionError, UnicodeError):
        return repr(value)


def _whole(value: Any) -> Any:
    """A JSON value in which 2.0 is 2."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def compact(value: Any) -> str:
    """A value as it is quoted when it is no string."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


_MASKS = (
    ("<url>", r"[a-z][a-z0-9+.-]{1,10}://[^\s'\"<>)\]]+"),
    ("<email>", r"[\w.+-]+@[\w-]+\.[\w.-]+"),
    ("<uuid>", r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    ("<time>", r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
     r"|\b\d\d:\d\d:\d\d(?:\.\d+)?\b"),
    ("<hex>", r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{16,}\b"),
    ("<path>", r"(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@+-]+){2,}/?|\b[A-Za-z]:\\[\w\\.-]+"),
    ("<text>", r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`"),
    ("<n>", r"(?<![\w<])#?[A-Za-z]{0,4}-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
     r"(?: ?(?:ms|s|sec|seconds?|minutes?|[kKMGT]i?B|bytes|%))?(?!\w)"),
    ("<id>", r"\b\w*\d{3,}\w*\b"),
)  # fmt: skip
_MASK = re.compile("|".join(f"(?P<m{number}>{pattern})" for number, (_, pattern) in enumerate(_MASKS)))
_NAMES = {f"m{number}": name for number, (name, _) in enumerate(_MASKS)}
_MASKABLE = re.compile(r"[\d'\"`/\\@]")  # without any of these there is nothing to mask


@lru_cache(maxsize=50_000)
def masked(text: str, limit: int = 200) -> str:
    """Text with volatile values replaced by what they are, in one line."""
    spaced = " ".join(text[: 2 * limit].split())
    if _MASKABLE.search(spaced) is None:
        return spaced[:limit]
    return _MASK.sub(lambda hit: _NAMES[hit.lastgroup or "m0"], spaced)[:limit]


QUOTE = 200  # characters of a quotation


def quoted(text: str, i: int = 0, length: int = QUOTE) -> str:
    """A passage of a text, around a place if it is long; always an exact substring."""
    if len(text) <= length:
        return text
    start = max(0, min(i - length // 4, len(text) - length))
    if start:  # at the beginning of a word, where one is near
        space = text.find(" ", start, start + length // 8)
        start = space + 1 if space >= 0 else start
    return text[start : start + length]


def step_text(step: Step) -> str:
    """What may be quoted of a step: its text, or the tool of a call without arguments."""
    return step.text or step.reasoning or step.tool or ""


def step_texts(step: Step) -> list[str]:
    """What stands in a step, part by part."""
    return [text for text in (step.text, step.reasoning, step.arguments, step.tool) if text]


def field_text(row: Mapping[str, Any], field: str) -> str | None:
    """The value at a dotted path as it is quoted: strings as they are, all else as compact JSON; None if the
    row has none. A key that holds dots itself is tried first; a number names an entry of a list."""
    value: Any = row
    while field:
        if isinstance(value, list):
            head, _, field = field.partition(".")
            if not head.isdecimal() or int(head) >= len(value):
                return None
            value = value[int(head)]
            continue
        if not isinstance(value, Mapping):
            return None
        if field in value:
            value, field = value[field], ""
        else:
            head, _, field = field.partition(".")
            if head not in value or not field:
                return None
            value = value[head]
    return value if isinstance(value, str) else compact(value)


def at_step(episode: Episode, index: int, i: int = 0, length: int = QUOTE) -> Evidence | None:
    """A quotation from a step; None if the step says nothing."""
    steps = episode.trace.steps
    text = step_text(steps[index]) if 0 <= index < len(steps) else ""
    rollout = episode.trace.rollout
    if not text:
        return None
    return Evidence(rollout.run, rollout.task, rollout.repeat, step=index, quote=quoted(text, i, length))


def in_field(episode: Episode, field: str, i: int = 0, length: int = QUOTE) -> Evidence | None:
    """A quotation from a field of the row by its dotted path; None if the row has no such field."""
    text = field_text(episode.trace.row, field)
    rollout = episode.trace.rollout
    if not text:
        return None
    return Evidence(rollout.run, rollout.task, rollout.repeat, field=field, quote=quoted(text, i, length))

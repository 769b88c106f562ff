"""Turn a step or a field of a row into a quotation from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blade.events.quotes import compact
from blade.model import Episode, Evidence, Step

QUOTE = 200  # characters of a quotation


def quoted(text: str, at: int = 0, length: int = QUOTE) -> str:
    """A passage of a text, around a place if it is long; always an exact substring."""
    if len(text) <= length:
        return text
    start = max(0, min(at - length // 4, len(text) - length))
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


def at_step(episode: Episode, index: int, at: int = 0, length: int = QUOTE) -> Evidence | None:
    """A quotation from a step; None if the step says nothing."""
    steps = episode.trace.steps
    text = step_text(steps[index]) if 0 <= index < len(steps) else ""
    rollout = episode.trace.rollout
    if not text:
        return None
    return Evidence(rollout.run, rollout.task, rollout.repeat, step=index, quote=quoted(text, at, length))


def in_field(episode: Episode, field: str, at: int = 0, length: int = QUOTE) -> Evidence | None:
    """A quotation from a field of the row by its dotted path; None if the row has no such field."""
    text = field_text(episode.trace.row, field)
    rollout = episode.trace.rollout
    if not text:
        return None
    return Evidence(rollout.run, rollout.task, rollout.repeat, field=field, quote=quoted(text, at, length))

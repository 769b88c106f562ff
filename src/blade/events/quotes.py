"""Turn a step or a field of a row into a quotation from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blade.events.spelling import compact
from blade.model import Episode, Evidence, Step

QUOTE = 200  # characters of a quotation


def quoted(text: str, at: int = 0, length: int = QUOTE) -> str:
    """A passage of a text, around a place if it is long; always an exact substring."""
    if len(text) <= length:
        return text
    start = max(0, min(at - length // 4, len(text) - length))
    return text[start : start + length]


def step_text(step: Step) -> str:
    """What may be quoted of a step: its text, or the tool of a call without arguments."""
    return step.text or step.reasoning or step.tool or ""


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
    value: Any = episode.trace.row
    if field in value:
        value = value[field]
    else:
        for key in field.split("."):
            if not isinstance(value, Mapping) or key not in value:
                return None
            value = value[key]
    text = value if isinstance(value, str) else compact(value)
    rollout = episode.trace.rollout
    if not text:
        return None
    return Evidence(rollout.run, rollout.task, rollout.repeat, field=field, quote=quoted(text, at, length))

"""Read a trace as events: calls, errors, what each tool does, what the task expects, quotations."""

from __future__ import annotations

from blade.events.episodes import (
    CHECK,
    ERROR,
    READ,
    WRITE,
    calls,
    command_of,
    declared_tools,
    episode,
    reads_as_error,
    what_it_does,
)
from blade.events.golds import ACTIONS, ARGUMENTS, gold, prompt
from blade.events.quotes import (
    at_step,
    canonical,
    compact,
    field_text,
    in_field,
    masked,
    parsed,
    quoted,
    step_text,
    step_texts,
)

__all__ = [
    "ACTIONS", "ARGUMENTS", "CHECK", "ERROR", "READ", "WRITE", "at_step", "calls", "canonical", "command_of", "compact",
    "declared_tools", "episode", "field_text", "gold", "in_field", "masked", "parsed", "prompt", "quoted", "reads_as_error",
    "step_text", "step_texts", "what_it_does",
]  # fmt: skip

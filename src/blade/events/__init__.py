"""Turn a trace into events: calls, errors, what each tool does, what the task expects, quotations."""

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
    QUOTE,
    at_step,
    canonical,
    compact,
    field_text,
    fingerprint,
    in_field,
    masked,
    parsed,
    quoted,
    step_text,
    step_texts,
)
from blade.events.tokens import phases, salient_tokens, tool_tokens, without_runs

__all__ = [
    "ACTIONS",
    "ARGUMENTS",
    "CHECK",
    "ERROR",
    "QUOTE",
    "READ",
    "WRITE",
    "at_step",
    "calls",
    "canonical",
    "command_of",
    "compact",
    "declared_tools",
    "episode",
    "field_text",
    "fingerprint",
    "gold",
    "in_field",
    "masked",
    "parsed",
    "phases",
    "prompt",
    "quoted",
    "reads_as_error",
    "salient_tokens",
    "step_text",
    "step_texts",
    "tool_tokens",
    "what_it_does",
    "without_runs",
]

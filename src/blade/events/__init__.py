"""Turn a trace into events: calls, errors, what each tool does, what the task expects, quotations."""

from __future__ import annotations

from blade.events.episodes import calls, episode
from blade.events.errors import ERROR, reads_as_error
from blade.events.expects import ACTIONS, ARGUMENTS, gold, prompt
from blade.events.masks import fingerprint, masked
from blade.events.quotes import QUOTE, at_step, field_text, in_field, quoted, step_text, step_texts
from blade.events.spelling import canonical, compact, parsed
from blade.events.tokens import phases, salient_tokens, tool_tokens, without_runs
from blade.events.tools import CHECK, READ, WRITE, command_of, declared_tools, what_it_does

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

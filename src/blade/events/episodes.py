"""Turn the steps of a trace into calls with their results, and a trace into an episode."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from blade.events.episodes import declared_tools, reads_as_error, what_it_does
from blade.events.quotes import canonical, parsed
from blade.formats.items import answers_of
from blade.model import Call, Episode, Step, Trace

_SPACE = re.compile(r"\s+")


def calls(steps: Sequence[Step], tools: Mapping[str, Any], overrides: Mapping[str, str]) -> list[Call]:
    """The calls of a rollout in order, each with the first result that answers it."""
    answers = answers_of([(step.kind, step.call_id) for step in steps])
    found = []
    for step in steps:
        if step.kind != "call":
            continue
        tool, raw = step.tool or "", step.arguments or ""
        arguments = parsed(raw)
        result = steps[answers[step.index]] if step.index in answers else None
        hosted = result is None and step.call_id is None and len(step.text) > len(raw)
        output = result.text if result is not None else step.text[len(raw) :].strip() if hosted else ""
        does = what_it_does(tool, arguments, tools.get(tool), overrides)
        told = result.failed if result is not None else step.failed
        failed = told if told is not None else bool(output) and reads_as_error(output, does)
        place = result.index if result is not None else step.index if hosted else None
        key = f"{tool} {canonical(arguments) if arguments is not None else _SPACE.sub(' ', raw)}"
        found.append(Call(step.index, tool, arguments, raw, key, does, place, output, failed))
    return found


def episode(
    trace: Trace, position: int, score: float, passed: bool | None, overrides: Mapping[str, str]
) -> Episode:
    """A trace read as events."""
    tools = declared_tools(trace.row)
    made = calls(trace.steps, tools, overrides)
    last_call = made[-1].step if made else -1
    final, place = "", None
    for step in reversed(trace.steps):
        if step.index <= last_call:
            break
        if step.kind == "message" and step.text.strip():
            final, place = step.text, step.index
            break
    has_user = any(step.kind == "user" for step in trace.steps)
    return Episode(trace, position, score, passed, tuple(made), final, place, tools, has_user)

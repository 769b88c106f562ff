"""Set the rollout in focus beside a passing repeat: their calls, the first that differ, and the last words."""

from __future__ import annotations

from itertools import groupby

from blade import hostile, number_format
from blade.agent.dossier import frame, steps
from blade.agent.dossier.case import Case
from blade.model import Call, Trace

_MAX_TOOLS = 30


def lines(case: Case, room: int) -> list[str]:
    """Lay out both sides; empty where no other repeat passes."""
    if case.passer is None or case.focus is None:
        return []
    found = [_sequence("in focus", case.focus, room), _sequence("passing", case.passer, room)]
    if case.parting is not None:
        found += _difference(case.parting, case.focus, case.passer, room)
    last = [step for step in case.passer.steps if step.kind == "message" and step.text.strip()][-1:]
    return found + [
        frame.behind(f"passing {steps.head(step, {})}, its last words", step.text, room, ends=True)
        for step in last
    ]


def _sequence(name: str, trace: Trace, room: int) -> str:
    """List the calls of one side by name; calls of one tool in a row are named once."""
    tools = [hostile.line(step.tool or "", 40) for step in trace.steps if step.kind == "call"]
    if not tools:
        return f"{name} repeat {trace.rollout.repeat}: no calls"
    runs = [tool for tool, _ in groupby(tools)]
    more = [] if len(runs) <= _MAX_TOOLS else [f"… {len(runs) - _MAX_TOOLS} more"]
    head = f"{name} repeat {trace.rollout.repeat}, {number_format.count(len(tools), 'call')}"
    return frame.behind(head, " > ".join([*runs[:_MAX_TOOLS], *more]), room)


def _difference(
    parting: tuple[Call | None, Call | None], focus: Trace, passer: Trace, room: int
) -> list[str]:
    """Quote the first calls that differ; whether the difference matters is for the reader to judge."""
    mine, its = parting
    return [_first_call("in focus", focus, mine, room), _first_call("passing", passer, its, room)]


def _first_call(name: str, trace: Trace, call: Call | None, room: int) -> str:
    if call is None:
        return f"first different call, {name}: none, it makes no further call"
    step = trace.steps[call.step]
    return frame.behind(f"first different call, {name} {steps.head(step, {})}", steps.text(step), room)

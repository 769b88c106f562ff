"""Say how every repeat of a task ended, and set the one in focus beside a passing repeat."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from blade import events, hostile, number_format
from blade.agent.dossier import budget, trajectory
from blade.agent.dossier.case import Case
from blade.model import Call, Outcome, TaskResult, Trace

_MAX_LINES = 12  # repeats that have a line of their own
_MAX_RANGES = 12
_MAX_SIGNS = 16  # repeats whose outcomes are listed in order
_MAX_CHANGES = 4
_SIGNS = {Outcome.PASSED: "1", Outcome.MISSING: "-", Outcome.MASKED: "-"}


def counted(case: Case) -> list[str]:
    """Count the outcomes: `4 repeats: 1 passed, 3 failed (0 0 1 0)`."""
    repeats = case.result.repeats if case.result else ()
    if not repeats or case.result is None:
        return ["no repeat of this task was scored"]
    seen = Counter(each.outcome.value.replace("_", " ") if each.outcome else "not judged" for each in repeats)
    order = [outcome.value.replace("_", " ") for outcome in Outcome] + ["not judged"]
    parts = ", ".join(f"{seen[name]} {name}" for name in order if seen[name])
    line = f"{number_format.count(len(repeats), 'repeat')}: {parts}"
    if 1 < len(repeats) <= _MAX_SIGNS:
        line += f" (in order {_signs(case.result)}; 1 passes)"
    elif len(repeats) > 1:
        passed = [each.repeat for each in repeats if each.outcome is Outcome.PASSED]
        if 0 < len(passed) < len(repeats):
            few = passed if 2 * len(passed) <= len(repeats) else _others(case, passed)
            line += f"; {'passing' if few is passed else 'not passing'}: {_ranges(few)}"
    return [line]


def _signs(result: TaskResult) -> str:
    """Write the outcomes of the repeats in order: `1 0 1 1`."""
    return " ".join(_SIGNS.get(each.outcome, "0") if each.outcome else "?" for each in result.repeats)


def listed(case: Case, room: int) -> list[str]:
    """Describe each repeat by its reward, steps, calls and last words."""
    lines = []
    for repeat, trace in list(_chosen(case).items()):
        head = f"repeat {repeat} {case.outcome(repeat)}, reward {_reward(trace)}, {_effort(trace)}"
        is_below = trace is case.focus and trace.steps
        what, words = _last(trace)
        # where nothing is called, the answer comes at the end
        ends = not any(step.kind == "call" for step in trace.steps)
        line = budget.behind(f"{head}; {what}", words, room, ends=ends)
        lines.append(f"{head}; read below" if is_below else line)
    left = len(case.traces) - len(lines)
    return [*lines, f"{left} more repeats, counted above"] if left > 0 else lines


def changes(case: Case, room: int) -> list[str]:
    """Quote the last call that changed something in each other failing repeat."""
    lines: list[str] = []
    for repeat, trace in case.traces.items():
        if trace is case.focus or case.outcome(repeat) == "passed" or len(lines) >= _MAX_CHANGES:
            continue
        written = [call.step for call in events.calls(trace.steps, {}, {}) if call.does == events.WRITE]
        if written:
            step = trace.steps[written[-1]]
            lines.append(
                budget.behind(f"repeat {repeat} {trajectory.head(step, {})}", trajectory.text(step), room)
            )
    return lines


def _chosen(case: Case) -> dict[int, Trace]:
    """Choose all, or the one in focus, a few that pass and a few that do not."""
    if len(case.traces) <= _MAX_LINES:
        return case.traces
    focus = [case.focus.rollout.repeat] if case.focus else []
    passed = [repeat for repeat in case.traces if case.outcome(repeat) == "passed"]
    others = [repeat for repeat in case.traces if repeat not in set(passed)]
    picked = [*focus, *passed[:4], *others]
    repeats = set(list(dict.fromkeys(picked))[: _MAX_LINES - 4])
    return {repeat: trace for repeat, trace in case.traces.items() if repeat in repeats}


def _others(case: Case, passed: list[int]) -> list[int]:
    known = set(passed)
    return [each.repeat for each in case.result.repeats if each.repeat not in known] if case.result else []


def _ranges(numbers: list[int]) -> str:
    """Write numbers as ranges: `0-3, 7, 9-12`."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    parts = [f"{a}" if a == b else f"{a}-{b}" for a, b in ranges[:_MAX_RANGES]]
    return ", ".join(parts) + (" …" if len(ranges) > _MAX_RANGES else "")


def _reward(trace: Trace) -> str:
    value = trace.rollout.reward
    return "none" if value is None else number_format.number(value)


def _effort(trace: Trace) -> str:
    calls = sum(step.kind == "call" for step in trace.steps)
    return f"{number_format.count(len(trace.steps), 'step')}, {number_format.count(calls, 'call')}"


def _last(trace: Trace) -> tuple[str, str]:
    """Find the error of the row, else the last words of the model, else the last step; and what it is."""
    response = trace.row.get("response")
    error = trace.row.get("error") or (response.get("error") if isinstance(response, dict) else None)
    if error:
        return "error", error if isinstance(error, str) else str(error)[:2000]
    for step in reversed(trace.steps):
        if step.kind == "message" and step.text.strip():
            return f"last words [{step.index}]", step.text
    if trace.steps:
        return f"ends {trajectory.head(trace.steps[-1], {})}", trajectory.text(trace.steps[-1])
    return "no steps", ""


_MAX_TOOLS = 30


def beside(case: Case, room: int) -> list[str]:
    """Lay out both sides; empty where no other repeat passes."""
    if case.passer is None or case.focus is None:
        return []
    lines = [_sequence("in focus", case.focus, room), _sequence("passing", case.passer, room)]
    if case.parting is not None:
        lines += _difference(case.parting, case.focus, case.passer, room)
    last = [step for step in case.passer.steps if step.kind == "message" and step.text.strip()][-1:]
    return lines + [
        budget.behind(f"passing {trajectory.head(step, {})}, its last words", step.text, room, ends=True)
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
    return budget.behind(head, " > ".join([*runs[:_MAX_TOOLS], *more]), room)


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
    return budget.behind(
        f"first different call, {name} {trajectory.head(step, {})}", trajectory.text(step), room
    )

"""Turn the tasks of a run into facts on the whole run, before its tasks are read one by one."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from blade import events
from blade.detect import row, schema
from blade.model import Call, DefectFacts, Episode, RunFacts, TaskTraces, ToolFacts

MIN_DEFECT_TASKS = 3
MIN_DEFECT_CALLS = 5
DEFECT_SHARE = 0.9  # of a tool's calls
MIN_AT_CAP = 5
CAP_SHARE = 0.05  # of the rollouts stop at a cap
PEAK = 2.0  # times as many as at the three lengths before it
_MAX_VALUES = 4  # distinct limits worth remembering: two are as inconstant as ten
_MAX_TEMPLATES = 50  # per task
_CAPS = ("turns_max", "max_turns", "turn_limit", "max_model_turns", "max_assistant_turns")


class Partial(msgspec.Struct, frozen=True):
    """What one task adds to the facts of its run."""

    n_rollouts: int
    tools: dict[str, tuple[int, int, int]]  # calls, failed calls, rollouts
    errors: dict[tuple[str, str], int]  # tool and template -> calls that were valid and failed so
    turns: dict[tuple[int, bool, bool], int]  # model turns, was left open, passed -> rollouts
    caps: tuple[int | None, ...]  # explicit turn limits of the rows; None: a row without one
    limits: tuple[int | None, ...]  # explicit token limits
    n_truncated: int
    n_silent: int  # no output items and no token use
    n_user: int


def partial(task: TaskTraces) -> Partial:
    """What the rollouts of one task say of their run."""
    tools: dict[str, list[int]] = {}
    errors: Counter[tuple[str, str]] = Counter()
    turns: Counter[tuple[int, bool, bool]] = Counter()
    caps: set[int | None] = set()
    limits: set[int | None] = set()
    truncated = silent = user = 0
    for episode in task.episodes:
        trace = episode.trace
        _count_calls(episode, tools, errors)
        turns[row.n_turns(trace), row.is_open(episode), episode.passed is True] += 1
        caps.add(explicit_cap(trace.row))
        limits.add(row.token_limit(trace.row))
        truncated += row.cut_by(trace) is not None
        silent += row.is_silent(trace)
        user += episode.has_user
    return Partial(
        len(task.episodes),
        {tool: (counts[0], counts[1], counts[2]) for tool, counts in tools.items()},
        dict(errors), dict(turns), _few(caps), _few(limits), truncated, silent, user,
    )  # fmt: skip


def _count_calls(episode: Episode, tools: dict[str, list[int]], errors: Counter[tuple[str, str]]) -> None:
    seen = set()
    for call in episode.calls:
        name = sys.intern(call.tool)
        counts = tools.setdefault(name, [0, 0, 0])
        counts[0] += 1
        counts[1] += call.failed
        counts[2] += name not in seen
        seen.add(name)
        # a tool that is not declared where others are is the model's mistake
        if call.failed and (not episode.tools or call.tool in episode.tools):
            told = template(call, episode.tools.get(call.tool))
            if told is not None and ((name, told) in errors or len(errors) < _MAX_TEMPLATES):
                errors[name, told] += 1


def _few(values: Iterable[int | None]) -> tuple[int | None, ...]:
    ordered = sorted(values, key=lambda value: (value is not None, value or 0))
    return tuple(ordered[:_MAX_VALUES])


def explicit_cap(told: Mapping[str, Any]) -> int | None:
    """The turn limit that a row names."""
    found = row.first_of(told, _CAPS)
    value = found[1] if found else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


_TELLING = re.compile(r"^.*?\b\w*(?:Error|Exception|Timeout)\b.*:.*$|^.*\bassert\b.*$", re.MULTILINE)


def template(call: Call, declared: Any) -> str | None:
    """What a failed call was told, volatile values masked; None if its arguments were no good."""
    if not call.output.strip() or not schema.is_valid(call, declared):
        return None
    return _masked(informative(call.output)[:800])


@lru_cache(maxsize=20_000)
def _masked(line: str) -> str:
    return sys.intern(events.masked(line))


def informative(text: str) -> str:
    """The line of a result that says most: the last that names an error, else the first."""
    ends = text if len(text) <= 4000 else f"{text[:2000]}\n{text[-2000:]}"
    telling = [hit.group() for hit in _TELLING.finditer(ends)]
    if telling:
        return telling[-1].strip()
    return next((line.strip() for line in ends.splitlines() if line.strip()), "")


# ---- Over the whole run ------------------------------------------------------------------------


def facts(run: str, partials: Sequence[Partial]) -> RunFacts:
    """The facts of a run, whatever the order of its tasks."""
    n = sum(one.n_rollouts for one in partials)
    tools = _tools(partials)
    turns: Counter[tuple[int, bool, bool]] = Counter()
    for one in partials:
        turns.update(one.turns)
    cap, at_cap = _turn_cap(turns, _constant(one.caps for one in partials), n)
    return RunFacts(
        run=run,
        n_tasks=len(partials),
        n_rollouts=n,
        tools=tools,
        defects=_defects(partials, tools),
        turn_cap=cap,
        ends_when_solved=cap is not None and _ends_when_solved(turns, cap),
        n_at_cap=at_cap,
        max_output_tokens=_constant(one.limits for one in partials),
        share_truncated=sum(one.n_truncated for one in partials) / n if n else 0.0,
        share_empty=sum(one.n_silent for one in partials) / n if n else 0.0,
        share_user=sum(one.n_user for one in partials) / n if n else 0.0,
    )


def _tools(partials: Sequence[Partial]) -> dict[str, ToolFacts]:
    sums: dict[str, list[int]] = {}
    for one in partials:
        for tool, counts in one.tools.items():
            total = sums.setdefault(tool, [0, 0, 0, 0])
            for place, value in enumerate((*counts, 1)):
                total[place] += value
    return {tool: ToolFacts(*sums[tool]) for tool in sorted(sums)}


def _defects(partials: Sequence[Partial], tools: Mapping[str, ToolFacts]) -> tuple[DefectFacts, ...]:
    calls: Counter[tuple[str, str]] = Counter()
    tasks: Counter[tuple[str, str]] = Counter()
    for one in partials:
        calls.update(one.errors)
        tasks.update(one.errors.keys())
    found = []
    for (tool, told), count in sorted(calls.items()):
        share = count / tools[tool].n_calls
        if tasks[tool, told] >= MIN_DEFECT_TASKS and count >= MIN_DEFECT_CALLS and share >= DEFECT_SHARE:
            found.append(DefectFacts(tool, told, count, tasks[tool, told], share))
    return tuple(found)


def _constant(seen: Iterable[tuple[int | None, ...]]) -> int | None:
    """The one value that all rows name; None if they differ or any of them names none."""
    values = {value for one in seen for value in one}
    return values.pop() if len(values) == 1 else None


FEWEST_BEFORE = 10  # rollouts that end before the cap
SOLVED = 0.95  # of them pass


def _turn_cap(
    turns: Mapping[tuple[int, bool, bool], int], named: int | None, n: int
) -> tuple[int | None, int]:
    """The turn limit and how many rollouts stop at it: the one that all rows name, or one that shows."""
    if not turns:
        return None, 0
    by_length: Counter[int] = Counter()
    for (number, _, _), count in turns.items():
        by_length[number] += count
    most = max(by_length)
    stopped = by_length[most]
    left_open = sum(count for (number, is_open, _), count in turns.items() if number == most and is_open)
    if named is not None and most <= named:
        return named, left_open if most == named else 0  # the others were done in just so many turns
    if stopped < MIN_AT_CAP or 2 * left_open <= stopped:
        return None, 0
    return (most, stopped) if _many(turns, most, stopped, n) or _peak(turns, by_length, most) else (None, 0)


def _ends_when_solved(turns: Mapping[tuple[int, bool, bool], int], cap: int) -> bool:
    """Whether rollouts go on until they pass: then those at the cap are those that never did."""
    before = [(count, passed) for (number, _, passed), count in turns.items() if number < cap]
    n = sum(count for count, _ in before)
    return n >= FEWEST_BEFORE and sum(count for count, passed in before if passed) >= SOLVED * n


def _many(turns: Mapping[tuple[int, bool, bool], int], most: int, stopped: int, n: int) -> bool:
    """Many rollouts end there, and those that end earlier end with a text."""
    shorter = [(count, is_open) for (number, is_open, _), count in turns.items() if number < most]
    finished = sum(count for count, is_open in shorter if not is_open)
    return stopped >= CAP_SHARE * n and 2 * finished >= sum(count for count, _ in shorter) > 0


def _peak(turns: Mapping[tuple[int, bool, bool], int], by_length: Mapping[int, int], most: int) -> bool:
    """Few end just before, and of those that end there none passes: a tail does not rise at its end."""
    before = [by_length.get(most - back, 0) for back in (1, 2, 3)]
    passed_there = any(passed and number == most for number, _, passed in turns)
    passed_at_all = any(passed for _, _, passed in turns)
    return 3 * by_length[most] >= PEAK * sum(before) and most > 3 and passed_at_all and not passed_there

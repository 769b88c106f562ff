"""Find rounds of two to four calls that repeat with the same results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blade import events
from blade.detect import repeats, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="cycle",
    number="B14",
    rule="A round of 2 to 4 calls is repeated 3 times or more without a pause, each call with the same "
    "arguments and the same result as in the round before.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Guard against loops: at the third round of {detail} with unchanged results, stop the round "
    "with a note that nothing changed.",
)
_ROUNDS = 3
_LONGEST = 4


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        found = _longest(episode.calls)
        if found is not None:
            yield _hit(episode, *found)


def _longest(calls: Sequence[Call]) -> tuple[int, int, int] | None:
    """The cycle that covers most calls: where it starts, its period, its length; the shortest period wins."""
    best: tuple[int, int, int] | None = None
    if len(calls) < 2 * _ROUNDS:
        return None
    for period in range(2, _LONGEST + 1):
        for start, length in _runs(calls, period):
            if _is_uniform(calls[start : start + period]):
                continue
            if best is None or length > best[2]:
                best = start, period, length
    return best


def _runs(calls: Sequence[Call], period: int) -> Iterator[tuple[int, int]]:
    """Where calls repeat those `period` before them for long enough."""
    matched = 0
    for place in range(period, len(calls) + 1):
        if place < len(calls) and _same(calls[place], calls[place - period]):
            matched += 1
            continue
        if matched >= (_ROUNDS - 1) * period:
            yield place - matched - period, matched + period
        matched = 0


def _same(one: Call, other: Call) -> bool:
    if one.key != other.key or one.result_step is None or other.result_step is None:
        return False
    return one.output == other.output or repeats.said(one.output) == repeats.said(other.output)


def _is_uniform(calls: Sequence[Call]) -> bool:
    return len({call.key for call in calls}) == 1


def _hit(episode: Episode, start: int, period: int, length: int) -> Hit | None:
    calls = episode.calls[start : start + length]
    tools = " → ".join(call.tool for call in calls[:period])
    names = " → ".join(f"`{call.tool}` {wording.short(call.raw, 40)}" for call in calls[:period])
    rounds = length // period
    return hit(
        episode,
        f"The calls {names} repeat {rounds} times with the same arguments and results, "
        f"steps {calls[0].step} to {calls[-1].step}.",
        3 if rounds > _ROUNDS else 2,
        events.at_step(episode, calls[period].step),
        events.at_step(episode, calls[-1].step),
        detail=wording.short(tools),
        certain=True,
    )

"""Find the same thing read again and again although it never changed."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import repeats, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="reread",
    number="B16",
    rule="The same reading with the same result on 3 or more separate occasions, with other calls or words "
    "of the user between them.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Keep what `{tool}` returned in view (a scratchpad, or no trimming of its result), so that it "
    "is not read again.",
)
_LEAST = 3
_OFTEN = 5


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        calls = episode.calls
        groups = [group for group in repeats.by_action(calls, _LEAST) if calls[group[0]].does == events.READ]
        turn = repeats.turns(episode) if groups else []
        for group in groups:
            for same in repeats.by_result(calls, group, _LEAST):
                visits = repeats.visits(same, turn)
                if len(visits) >= _LEAST:
                    yield _hit(episode, visits)


def _hit(episode: Episode, visits: list[list[int]]) -> Hit | None:
    calls = [episode.calls[visit[0]] for visit in visits]
    tool = calls[0].tool
    return hit(
        episode,
        f"`{tool}` reads {wording.short(calls[0].raw)} on {len(calls)} occasions and gets the same each "
        f"time: {wording.steps([call.step for call in calls])}.",
        3 if len(calls) >= _OFTEN else 2,
        events.at_step(episode, calls[1].step),
        events.at_step(episode, calls[-1].step),
        detail=tool,
        certain=True,
    )

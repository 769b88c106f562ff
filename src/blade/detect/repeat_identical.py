"""Find calls made again and again that are told the same each time."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import repeats, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="repeat_identical",
    number="B12",
    rule="The same call with the same result 3 times or more: readings one right after the other, other "
    "calls with no other successful write between.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Guard against loops: at the third identical `{tool}` call with an identical result, return a "
    "note that nothing changed instead of running it.",
)
_LEAST = 3


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        if len(episode.calls) >= _LEAST:
            yield from _in(episode)


def _in(episode: Episode) -> Iterator[Hit | None]:
    calls = episode.calls
    groups = repeats.by_action(calls, _LEAST)
    if not groups:
        return
    epoch, turn = repeats.epochs(calls), repeats.turns(episode)
    for places in groups:
        by_epoch: dict[int, list[int]] = {}
        for place in places:
            by_epoch.setdefault(epoch[place], []).append(place)
        for group in by_epoch.values():
            for same in repeats.by_result(calls, group, _LEAST) if len(group) >= _LEAST else ():
                if calls[same[0]].does == events.READ:
                    same = max(repeats.visits(same, turn), key=len)
                if len(same) >= _LEAST:
                    yield _hit(episode, same)


def _hit(episode: Episode, places: list[int]) -> Hit | None:
    calls = [episode.calls[place] for place in places]
    tool = calls[0].tool
    told = wording.short(calls[0].output) or "nothing"
    return hit(
        episode,
        f"`{tool}` is called {len(calls)} times with the same arguments {wording.short(calls[0].raw)} and "
        f"answers the same each time ({told}): {wording.steps([call.step for call in calls])}.",
        3 if len(calls) > _LEAST else 2,
        events.at_step(episode, calls[1].step),
        events.at_step(episode, calls[-1].step),
        detail=tool,
        certain=True,
    )

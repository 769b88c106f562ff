"""Find calls that fail and are made again unchanged."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import repeats, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="repeat_failing",
    number="B13",
    rule="The same call fails 3 times or more with no other successful write between.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="After the second identical failure of `{tool}`, return its usage with the error and refuse the "
    "unchanged call.",
)
_LEAST = 3


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        groups = repeats.by_action(episode.calls, _LEAST)
        if not groups:
            continue
        epoch = repeats.epochs(episode.calls)
        for places in groups:
            failures: dict[int, list[Call]] = {}
            for place in places:
                if episode.calls[place].failed:
                    failures.setdefault(epoch[place], []).append(episode.calls[place])
            for calls in failures.values():
                if len(calls) >= _LEAST:
                    yield _hit(episode, calls)


def _hit(episode: Episode, calls: list[Call]) -> Hit | None:
    first, second, last = calls[0], calls[1], calls[-1]
    return hit(
        episode,
        f"`{first.tool}` fails {len(calls)} times with the same arguments {wording.short(first.raw)} "
        f"({wording.short(first.output)}): {wording.steps([call.step for call in calls])}.",
        3 if len(calls) > _LEAST else 2,
        events.at_step(episode, second.step),
        events.at_step(episode, last.result_step) if last.result_step is not None else None,
        detail=first.tool,
    )

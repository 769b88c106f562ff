"""Find two tools called in the reverse of the order in which passing rollouts call them."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import passers
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="order_violation",
    number="B22",
    rule="Of the passing rollouts of the task that call two tools (5 or more), at least 90% call A "
    "before B; this one calls B before A. First calls count.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls", "passes"),
    kind="harness",
    remedy="Make the order a condition: refuse the later call of {detail} until the earlier one has "
    "succeeded.",
)
_PASSERS = 5
_SHARE = 0.9
_MAX_TOOLS = 30  # pairs grow with the square


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    if len(passers.passing(task)) < _PASSERS:
        return
    tally = passers.Tally(task, _order)
    for episode in task.episodes:
        found = []
        for early, late in sorted(map(_pair, tally.of(episode))):
            against = tally.count(episode, (late, early))
            both = against + tally.count(episode, (early, late))
            if both + bool(episode.passed) >= _PASSERS and against >= _SHARE * both:
                found.append((-against, early, late, both))
        first = _first_calls(episode)
        found.sort(key=lambda one: (first[one[1]].does == events.READ, *one))
        for against, early, late, both in found[:1]:
            yield _hit(episode, first[early], first[late], -against, both)


def _pair(feature: object) -> tuple[str, str]:
    assert isinstance(feature, tuple)
    return feature[0], feature[1]


def _first_calls(episode: Episode) -> dict[str, Call]:
    first: dict[str, Call] = {}
    for call in episode.calls:
        if len(first) >= _MAX_TOOLS:
            break
        first.setdefault(call.tool, call)
    return first


def _order(episode: Episode) -> list[tuple[str, str]]:
    """All pairs of tools in the order of their first calls."""
    names = list(_first_calls(episode))
    return [(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]


def _hit(episode: Episode, early: Call, late: Call, against: int, both: int) -> Hit | None:
    matters = early.does != events.READ or late.does != events.READ
    return hit(
        episode,
        f"`{early.tool}` (step {early.step}) is called before `{late.tool}` (step {late.step}); "
        f"{against} of {both} other passing rollouts of the task that call both do it the other way round.",
        2 if matters else 1,
        events.at_step(episode, early.step),
        events.at_step(episode, late.step),
        detail=f"{late.tool} before {early.tool}",
        certain=True,
    )

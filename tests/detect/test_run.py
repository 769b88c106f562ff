"""What becomes of the hits of a detector: one finding for each rollout, and a failure that costs no other."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from blade import events
from blade.detect import repeat_failing
from blade.detect.rule import Hit, hit
from blade.detect.run import Detected, detected
from blade.model import RunFacts, TaskTraces
from tests.traces import did, make_facts, make_task, rollout


def ran(*severities: int) -> Detected:
    """A detector that hits each of two rollouts as often as told."""

    def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
        for number, severity in enumerate(severities):
            for episode in task.episodes:
                yield hit(
                    episode, f"Hit {number}.", severity, events.at_step(episode, 0), detail=f"d{number}"
                )
        yield None

    made = SimpleNamespace(RULE=repeat_failing.RULE, find=find)
    return detected(make_task(*[rollout(did("hm", ("look", "{}", "x")))] * 2), make_facts(), {"one": made})


def test_a_rollout_has_one_finding_its_gravest_hit_and_the_number_of_the_others() -> None:
    first, second = ran(1, 3, 3, 2).found
    assert (first.finding.summary, first.finding.severity, first.detail) == (
        "Hit 1. (3 more such places.)",
        3,
        "d1",
    )
    assert [one.finding.id for one in (first, second)] == ["repeat_failing:0/0", "repeat_failing:0/1"]
    assert [one.finding.summary for one in ran(2, 2).found] == ["Hit 0. (1 more such place.)"] * 2
    assert [one.finding.summary for one in ran(2).found] == ["Hit 0."] * 2
    assert not ran().found


def test_a_detector_that_fails_is_named_and_the_others_go_on() -> None:
    def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
        raise ValueError("odd text")

    broken = SimpleNamespace(RULE=repeat_failing.RULE, find=find)
    task = make_task(rollout(did(*[("book", "{}", "Error: taken")] * 3)))
    told = detected(task, make_facts(), {"bad": broken, "good": repeat_failing})
    assert dict(told.broken) == {"bad": "ValueError: odd text"}
    assert [one.finding.detector for one in told.found] == ["repeat_failing"]

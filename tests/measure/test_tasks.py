"""Every task with its rate, its bucket and its repeats."""

from __future__ import annotations

from typing import Any

import pytest

from blade.measure.scoring import buckets, scoring, task_results
from blade.model import Buckets, Outcome, TaskResult
from tests.measure.builders import F1_A, make_coverage, make_rollouts


def results(rewards: Any, missing: Any = None, **columns: Any) -> tuple[dict[str, TaskResult], Buckets]:
    rollouts = make_rollouts(rewards, **columns)
    coverage = make_coverage(rollouts, **(missing or {}))
    rule = scoring(rollouts, None)
    return {each.task: each for each in task_results(rollouts, coverage, rule)}, buckets(rollouts, rule)


def test_f1_buckets_and_shrinkage() -> None:
    tasks, found = results(F1_A)
    assert found == Buckets("run", ("0", "2"), ("1", "3", "4", "6"), ("5", "7"), ())
    assert tasks["5"].shrunk == pytest.approx(0.1246, abs=1e-4)
    assert tasks["0"].shrunk == pytest.approx(0.8754, abs=1e-4)
    assert (tasks["3"].n, tasks["3"].passed, tasks["3"].rate) == (4, 2, 0.5)
    assert tasks["3"].task_name == "task 3"
    for task in tasks.values():
        assert task.low < task.shrunk < task.high
        assert 0 <= task.p_bucket <= 1
        assert [each.repeat for each in task.repeats] == [0, 1, 2, 3]


def test_task_keys_in_numeric_order() -> None:
    tasks, found = results({"10": [0], "9": [0], "x": [0], "2": [1]})
    assert list(tasks) == ["2", "9", "10", "x"]
    assert found.never == ("9", "10", "x")


def test_missing_and_masked_repeats_stand_in_their_place() -> None:
    tasks, found = results(
        [("a", 0, 1.0), ("a", 2, 0.0), ("a", 4, None)],
        tasks=["b"],
        masked=[False, True, False],
        missing={"lost": [("a", 3), ("b", 0)], "failed": [("a", 1)]},
    )
    assert [(each.repeat, each.outcome, each.reward) for each in tasks["a"].repeats] == [
        (0, Outcome.PASSED, 1.0),
        (1, Outcome.MISSING, None),
        (2, Outcome.MASKED, 0.0),
        (3, Outcome.MISSING, None),
        (4, Outcome.MALFORMED, None),
    ]
    assert (tasks["a"].n, tasks["a"].passed, tasks["a"].bucket) == (2, 1, "sometimes")
    gone = tasks["b"]
    assert (gone.n, gone.passed, gone.rate, gone.shrunk, gone.bucket, gone.p_bucket) == (0, 0, None, None, "missing", None)
    assert found.missing == ("b",)


def test_a_fully_masked_task_is_missing() -> None:
    tasks, found = results({"a": [1.0], "b": [1.0]}, masked=[True, False])
    assert found == Buckets("run", ("b",), (), (), ("a",))
    assert tasks["a"].repeats[0].outcome is Outcome.MASKED


def test_without_a_pass_rate_there_is_no_bucket() -> None:
    tasks, found = results({"a": [-1.0, 4.0]}, tasks=["b"])
    task = tasks["a"]
    assert (task.n, task.passed, task.rate, task.bucket, task.shrunk) == (2, None, None, None, None)
    assert task.mean_reward == 1.5
    assert [each.outcome for each in task.repeats] == [None, None]
    assert found == Buckets("run", (), (), (), ("b",))


def test_one_repeat_is_never_sometimes() -> None:
    tasks, found = results({"a": [1.0], "b": [0.0]})
    assert found.sometimes == ()
    assert tasks["b"].p_bucket < 0.8, "one failure is weak evidence of never"


def test_an_empty_run() -> None:
    assert results({}) == ({}, Buckets("run", (), (), (), ()))

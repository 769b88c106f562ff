"""What passes, what the rewards are, which number is the score, and every task with its rate, bucket and repeats."""

from __future__ import annotations

from typing import Any

import pytest

from blade.measure.scoring import Scoring, buckets, outcomes, scoring, task_results
from blade.model import Buckets, Outcome, RewardKind, TaskResult
from tests.case_tables import cases
from tests.measure.builders import F1_A, make_coverage, make_rollouts


def scored(rewards: dict[str, list[float | None]], threshold: float | None = None) -> Scoring:
    return scoring(make_rollouts(rewards), threshold)


@pytest.mark.parametrize(("rewards", "kind"), cases(__file__, "kinds"))
def test_kind_of_rewards(rewards: list[float | None], kind: str) -> None:
    assert scored({"a": rewards}).reward_kind is RewardKind(kind)


def test_kind_looks_past_the_first_rows() -> None:
    rewards: list[float | None] = [0.0, 0.5, 1.0] * 2000 + [i / 100 for i in range(100)]
    assert scored({"a": rewards}).reward_kind is RewardKind.CONTINUOUS


@pytest.mark.parametrize(("rewards", "threshold", "has_pass_rate", "score_name", "score"), cases(__file__, "scores"))
def test_which_number_is_the_score(
    rewards: list[float | None], threshold: float | None, has_pass_rate: bool, score_name: str, score: float
) -> None:
    found = scored({"a": rewards}, threshold)
    assert (found.has_pass_rate, found.score_name) == (has_pass_rate, score_name)
    assert found.score == pytest.approx(score)
    assert found.threshold == (1.0 if threshold is None else threshold)
    assert found.threshold_given is (threshold is not None)


def test_five_percent_at_one_make_a_pass_rate() -> None:
    below, enough = (scored({"a": [0.5] * (100 - n) + [1.0] * n}) for n in (4, 5))
    assert (below.score_name, enough.score_name, enough.score) == ("mean_reward", "pass_at_1", pytest.approx(0.05))


@pytest.mark.parametrize("case", cases(__file__, "scored"), ids=lambda case: str(case["rewards"]))
def test_what_counts_and_passes(case: dict[str, Any]) -> None:
    columns = {"masked": case["masked"]} if "masked" in case else {}
    result = scoring(make_rollouts(case["rewards"], **columns), None)
    for name, value in case["expect"].items():
        part = getattr(result, name)
        assert (part.tolist() if isinstance(value, list) else part) == value, name


@pytest.mark.parametrize("case", cases(__file__, "outcomes"))
def test_outcome_of_every_row(case: dict[str, Any]) -> None:
    rollouts = make_rollouts(case["rewards"], **case["columns"])
    assert outcomes(rollouts, scoring(rollouts, None)).tolist() == [name and Outcome(name) for name in case["outcomes"]]


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


def test_without_a_pass_rate_there_is_no_bucket() -> None:
    tasks, found = results({"a": [-1.0, 4.0]}, tasks=["b"])
    task = tasks["a"]
    assert (task.n, task.passed, task.rate, task.bucket, task.shrunk) == (2, None, None, None, None)
    assert task.mean_reward == 1.5
    assert [each.outcome for each in task.repeats] == [None, None]
    assert found == Buckets("run", (), (), (), ("b",))

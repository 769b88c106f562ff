"""Pass rates, rewards, spread and missing-row bounds, against reference values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blade.measure.outcome_rates import ks_up_to, measures
from blade.measure.scoring import scoring
from blade.model import Measure
from tests.measure.builders import F1_A, F1_B, TAU_AIRLINE, make_coverage, make_rollouts


def measured(rewards: Any, threshold: float | None = None, missing: Any = None, **columns: Any) -> dict[Any, Measure]:
    """The measures by name, or by (name, k)."""
    rollouts = make_rollouts(rewards, **columns)
    coverage = make_coverage(rollouts, **(missing or {}))
    found = list(measures("run", rollouts, coverage, scoring(rollouts, threshold)))
    keys = [each.name if each.k is None else (each.name, each.k) for each in found]
    assert len(set(keys)) == len(keys), "a measure stands twice"
    return dict(zip(keys, found, strict=True))


def curve(found: dict[Any, Measure], name: str, most: int) -> list[float | None]:
    return [found[name, k].value for k in range(1, most + 1)]


def test_f1_a() -> None:
    found = measured(F1_A)
    assert found["pass_at_1"].value == 0.5
    assert found["pass_at_1"].n == 8
    assert curve(found, "pass_at_k", 4) == pytest.approx([0.5, 0.6458333333, 0.71875, 0.75])
    assert curve(found, "pass_hat_k", 4) == pytest.approx([0.5, 0.3541666667, 0.28125, 0.25])
    assert found["consistency"].value == 0.25
    assert found["solved"].value == 0.75
    assert found["self_agreement"].value == pytest.approx(0.7083333333)
    assert found["expected_flip_rate"].value == pytest.approx(0.2916666667)
    assert found["retry_value", 4].value == pytest.approx(0.25)
    assert found["icc"].value == pytest.approx(0.4600550964)
    assert found["within_task_variance"].value == pytest.approx(0.1458333333)
    assert found["between_task_variance"].value == pytest.approx((0.6428571429 - 0.1458333333) / 4)
    assert found["design_effect"].value == pytest.approx(2.3801652893)
    assert found["effective_n"].value == pytest.approx(13.4444444444)
    assert found["coverage"].value == 1
    assert (found["coverage"].n, found["coverage"].unit) == (32, "rows")
    assert "missing_as_fail" not in found
    assert "weighting_effect" not in found


def test_f1_b() -> None:
    found = measured(F1_B)
    assert found["pass_at_1"].value == 0.71875
    assert curve(found, "pass_at_k", 4) == pytest.approx([0.71875, 0.7916666667, 0.84375, 0.875])
    assert curve(found, "pass_hat_k", 4) == pytest.approx([0.71875, 0.6458333333, 0.625, 0.625])
    assert found["self_agreement"].value == pytest.approx(0.8541666667)
    assert found["icc"].value == pytest.approx(0.6733333333)
    assert found["effective_n"].value == pytest.approx(10.5960264901)


def test_tau_airline() -> None:
    found = measured(TAU_AIRLINE)
    assert curve(found, "pass_hat_k", 4) == pytest.approx([0.42, 0.2733333333, 0.22, 0.20])
    assert curve(found, "pass_at_k", 4) == pytest.approx([0.42, 0.5666666667, 0.66, 0.72])
    assert found["icc"].value == pytest.approx(0.404584369)
    assert found["design_effect"].value == pytest.approx(2.2137531069)
    assert found["solved"].value == pytest.approx(0.72)


def test_rows_carry_no_interval_and_say_why() -> None:
    micro = measured(F1_A)["pass_at_1_micro"]
    assert (micro.value, micro.n, micro.unit, micro.low) == (0.5, 32, "rows", None)
    assert micro.method == "rows are not independent; see pass_at_1"


def test_every_number_has_an_n_and_an_interval_or_a_reason() -> None:
    for each in measured(F1_A).values():
        assert each.method
        if each.value is not None:
            assert each.n > 0
        if each.low is not None and each.high is not None:
            assert each.value is not None
            assert each.low <= each.value <= each.high


def test_one_task_and_equal_tasks_claim_no_certainty() -> None:
    assert measured({"a": [0.2, 0.4]})["mean_reward"].method == "no interval: one task"
    equal = measured({"a": [0.2, 0.4], "b": [0.2, 0.4]})["mean_reward"]
    assert equal.method == "no interval: all tasks have the same value"


def test_ragged_repeats() -> None:
    found = measured({"a": [1, 1, 1, 1], "b": [0], "c": [1, 0]})
    assert found["pass_at_1"].value == pytest.approx(0.5)
    assert found["pass_at_1_micro"].value == pytest.approx(5 / 7)
    assert found["weighting_effect"].value == pytest.approx(5 / 7 - 0.5)
    assert [found["pass_at_k", k].n for k in (1, 2, 3, 4)] == [3, 2, 1, 1]
    assert found["pass_at_k", 2].value == pytest.approx(1.0)
    assert found["self_agreement"].n == 2


def test_one_repeat_a_task() -> None:
    found = measured({"a": [1], "b": [0], "c": [1]})
    assert found["pass_at_1"].value == pytest.approx(2 / 3)
    assert found["pass_at_1"].method == "wilson"
    for name in ("self_agreement", "expected_flip_rate", ("retry_value", 1), "icc"):
        assert (found[name].value, found[name].n, found[name].method) == (None, 0, "no task has two scored rows")


def test_retry_value_where_every_task_lost_a_row() -> None:
    found = measured({"a": [1, 0], "b": [0, 0]}, missing={"lost": [("a", 2), ("b", 2)]})
    assert found["retry_value", 2].value == pytest.approx(0.25)


def test_missing_rows() -> None:
    # 4 keys a task: a lost one, b failed two, c has none left, d is complete.
    found = measured(
        {"a": [1, 1, 0], "b": [1, 1], "d": [1, 0, 0, 0]},
        tasks=["c"],
        missing={"lost": [("a", 3), *(("c", i) for i in range(4))], "failed": [("b", 2), ("b", 3)]},
    )
    assert found["pass_at_1"].value == pytest.approx((2 / 3 + 1 + 1 / 4) / 3)
    assert found["coverage"].value == pytest.approx(9 / 16)
    assert found["missing_as_fail"].value == pytest.approx((2 / 4 + 2 / 4 + 0 + 1 / 4) / 4)
    assert found["missing_as_fail"].n == 4
    assert found["bound_low"].value == found["missing_as_fail"].value
    assert found["bound_high"].value == pytest.approx((3 / 4 + 4 / 4 + 1 + 1 / 4) / 4)


def test_masked_rows_are_missing_rows() -> None:
    found = measured({"a": [1, 0], "b": [1, 1]}, masked=[False, True, False, False])
    assert found["pass_at_1"].value == 1.0
    assert found["coverage"].value == 0.75
    assert found["missing_as_fail"].value == 0.75
    assert found["bound_high"].value == 1.0


def test_a_key_with_two_rows_keeps_rates_within_one() -> None:
    found = measured([("a", 0, 1.0), ("a", 0, 1.0), ("a", 1, 1.0)], missing={"lost": [("a", 2)]})
    assert found["missing_as_fail"].value == pytest.approx(3 / 4)


def test_unbounded_rewards_have_a_mean_and_no_rate() -> None:
    found = measured({"a": [-1.0, 3.0], "b": [5.0, 0.5]}, missing={"lost": [("b", 2)]})
    assert (found["pass_at_1"].value, found["pass_at_1"].n) == (None, 0)
    assert found["pass_at_1"].method == "rewards leave [0, 1] and no pass threshold was given"
    assert found["mean_reward"].value == pytest.approx((1 + 2.75) / 2)
    assert found["mean_reward"].low < 0, "an interval of rewards is not cut to [0, 1]"
    assert ("pass_at_k", 1) not in found
    assert ("best_of_k", 1) not in found
    for name in ("missing_as_fail", "bound_low", "bound_high"):
        assert found[name].value is None


def test_unbounded_rewards_with_a_threshold() -> None:
    found = measured({"a": [-1.0, 3.0], "b": [5.0, 4.0]}, 3.0, missing={"lost": [("b", 2)]})
    assert found["pass_at_1"].value == pytest.approx(0.75)
    assert found["bound_high"].value == pytest.approx((0.5 + 1) / 2)


def test_a_copied_reward_gives_no_rate() -> None:
    found = measured({"a": [0.0571], "b": [0.0571]})
    assert found["pass_at_1"].value is None
    assert "same reward" in found["pass_at_1"].method
    assert found["mean_reward"].value == pytest.approx(0.0571)


def test_constant_zero_is_a_pass_rate_of_zero() -> None:
    found = measured({"a": [0.0, 0.0], "b": [0.0, 0.0]})
    assert (found["pass_at_1"].value, found["pass_at_1"].low) == (0.0, 0.0)
    assert found["pass_at_1"].high > 0.3, "four failures do not prove that nothing can pass"


def test_graded_rewards() -> None:
    found = measured({"a": [0.1, 0.4, 0.7], "b": [0.7, 0.4, 0.1]})
    assert found["best_of_k", 2].value == pytest.approx(0.6)
    assert found["worst_of_k", 2].value == pytest.approx(0.2)
    assert found["mean_reward"].value == pytest.approx(0.4)
    assert found["pass_at_1"].value == 0.0
    assert "one-way ANOVA of mean_reward" in found["icc"].method


def test_graded_rewards_of_ragged_tasks() -> None:
    found = measured({"a": [0.7, 0.1, 0.4], "b": [0.5]})
    assert found["best_of_k", 1].value == pytest.approx((0.4 + 0.5) / 2)
    assert found["best_of_k", 3].value == pytest.approx(0.7)
    assert found["worst_of_k", 2].n == 1
    assert found["weighting_effect"].value == pytest.approx(1.7 / 4 - 0.45)


def test_null_rewards_count_as_zero() -> None:
    found = measured({"a": [1.0, None]})
    assert found["pass_at_1"].value == found["mean_reward"].value == 0.5


def test_an_empty_run() -> None:
    found = measured({})
    assert all(each.value is None and each.n == 0 for each in found.values())


def test_only_missing_tasks() -> None:
    found = measured({}, tasks=["a"], missing={"lost": [("a", 0), ("a", 1)]})
    assert found["coverage"].value == 0.0
    assert (found["bound_low"].value, found["bound_high"].value) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("most", "tail"), [(0, []), (1, [1]), (4, [1, 2, 3, 4]), (200, [199, 200]), (3000, [1024, 2048, 3000])]
)
def test_k_of_large_tasks_thins_out(most: int, tail: list[int]) -> None:
    found = ks_up_to(most)
    assert found[len(found) - len(tail) :] == tail
    assert found[:1024] == list(range(1, min(most, 1024) + 1))


def test_pass_at_k_rises_and_pass_hat_k_falls() -> None:
    rng = np.random.default_rng(7)
    rewards = {str(i): (rng.random(6) < rng.random()).astype(float).tolist() for i in range(40)}
    found = measured(rewards)
    rising, falling = curve(found, "pass_at_k", 6), curve(found, "pass_hat_k", 6)
    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)
    assert rising[-1] == pytest.approx(found["solved"].value)
    assert falling[-1] == pytest.approx(found["consistency"].value)

"""Pass rates, rewards, spread, missing-row bounds, the vote of k answers and effort, against reference values."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from blade.measure.outcome_rates import effort, ks_up_to, majority, measures
from blade.measure.scoring import scoring
from blade.model import Benchmark, Measure
from tests.measure.builders import F1_A, TAU_AIRLINE, make_coverage, make_rollouts


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


def voted(rewards: Any, answers: list[Any], benchmark: Benchmark | None = None, **others: Any) -> dict[int, Any]:
    rollouts = make_rollouts(rewards, fields={(benchmark and benchmark.answer) or "extracted_answer": answers}, **others)
    return {each.k: each for each in majority(rollouts, scoring(rollouts, None), benchmark or Benchmark())}


def by_enumeration(answers: list[Any], rewards: list[float], k: int) -> float:
    """The definition: over all subsets, the mean score of the answers tied for most votes."""
    score = {a: np.mean([r for b, r in zip(answers, rewards, strict=True) if b == a]) for a in answers}
    won = []
    for subset in combinations(answers, k):
        votes = {a: subset.count(a) for a in subset if a is not None}
        best = [score[a] for a in votes if votes[a] == max(votes.values())]
        won.append(np.mean(best) if best else 0.0)
    return float(np.mean(won))


def test_reference_value_of_a_vote() -> None:
    found = voted({"a": [1, 1, 0, 0]}, ["A", "A", "B", "C"])
    assert found[3].value == pytest.approx(2 / 3)
    assert found[1].value == pytest.approx(0.5)
    assert found[3].n == 1


def test_none_and_blank_never_vote() -> None:
    for silent in (None, ..., "", "  "):
        found = voted({"a": [1, 0, 0]}, ["A", silent, silent])
        assert found[3].value == 1.0
        assert found[1].value == pytest.approx(1 / 3)


def test_many_tasks_against_enumeration() -> None:
    rng = np.random.default_rng(3)
    rewards: dict[str, list[float]] = {}
    answers: list[Any] = []
    expected: dict[int, list[float]] = {k: [] for k in range(1, 6)}
    for i in range(60):
        n = int(rng.integers(2, 6))
        cast = [None if v == 3 else "ABC"[v] for v in rng.integers(0, 4, n)]
        right = [float(a == "A") for a in cast]
        if i % 7 == 0:
            right[0] = 1.0 - right[0]  # a verifier that wavers
        rewards[str(i)] = right
        answers += cast
        for k in range(1, n + 1):
            expected[k].append(by_enumeration(cast, right, k))
    found = voted(rewards, answers)
    for k, values in expected.items():
        assert found[k].n == len(values)
        assert found[k].value == pytest.approx(float(np.mean(values)))


def test_numbers_vote_and_the_field_can_be_declared() -> None:
    found = voted({"a": [1, 1, 0]}, [3, 3, 4], Benchmark(answer="verifier.answer"))
    assert found[3].value == 1.0


def test_masked_rows_do_not_vote() -> None:
    found = voted({"a": [0, 1, 1]}, ["B", "A", "A"], masked=[False, True, True])
    assert list(found) == [1]
    assert found[1].value == 0.0


def test_nothing_without_answers_or_a_pass_rate() -> None:
    assert voted({"a": [1, 0]}, [None, None]) == {}
    assert voted({"a": [-5, 7]}, ["A", "B"]) == {}
    rollouts = make_rollouts({"a": [1, 0]})
    assert list(majority(rollouts, scoring(rollouts, None), Benchmark())) == []


def test_k_is_dense_to_sixteen() -> None:
    found = voted({"a": [1.0, 0.0] * 20}, ["A", "B"] * 20)
    assert list(found) == [*range(1, 17), 32, 40]


def test_graded_answers_score_their_mean() -> None:
    rewards, answers = [0.2, 0.4, 0.9, 0.0, 0.1], ["A", "A", "B", "B", None]
    found = voted({"a": rewards}, answers)
    for k in range(1, 6):
        assert found[k].value == pytest.approx(by_enumeration(answers, rewards, k))


def test_votes_that_would_take_minutes_are_named_and_left_out() -> None:
    rng = np.random.default_rng(0)
    answers = [f"answer {i}" for i in rng.integers(0, 30, 40 * 600)]
    rewards = {str(i): [float(a == "answer 0") for a in answers[600 * i : 600 * i + 600]] for i in range(40)}
    found = voted(rewards, answers)
    assert found[256].value is None
    assert found[256].method.startswith("not computed")
    assert found[1].value == pytest.approx(sum(a == "answer 0" for a in answers) / len(answers))
    assert found[600].n == 40, "the vote of all rows is a mere count"


NAN = float("nan")


def efforts(rewards: Any, **columns: Any) -> dict[tuple[str, str | None], Measure]:
    rollouts = make_rollouts(rewards, **columns)
    return {(each.name, each.slice): each for each in effort(rollouts, scoring(rollouts, None))}


def test_mean_and_median_over_rows_that_report() -> None:
    found = efforts({"a": [1, 1, 0, 0]}, output_tokens=[10.0, 20.0, 90.0, NAN], errored=[False, False, False, True])
    assert (found["output_tokens", "all"].value, found["output_tokens", "all"].n) == (40.0, 3)
    assert found["output_tokens_median", "all"].value == 20.0
    assert found["output_tokens", "passed"].value == 15.0
    assert found["output_tokens", "failed"].value == 90.0
    nothing = found["output_tokens", "errored"]
    assert (nothing.value, nothing.n) == (None, 0)
    assert found["output_tokens", "all"].unit == "rows"
    assert found["output_tokens", "all"].low is None
    assert found["output_tokens", "all"].method == "mean over rows that report it"


def test_nothing_where_no_row_reports() -> None:
    found = efforts({"a": [1, 0]})
    assert {name for name, _ in found} == {"turns", "turns_median", "items", "items_median"}


def test_counts_keep_their_zeros_beside_others() -> None:
    assert efforts({"a": [1, 0]}, n_calls=[4, 0])["tool_calls", "all"].value == 2.0


def test_masked_rows_and_missing_pass_rates() -> None:
    found = efforts({"a": [-1, 5, 9]}, wall_s=[1.0, 3.0, 50.0], masked=[False, False, True])
    assert found["wall_s", "all"].value == 2.0
    assert {label for _, label in found} == {"all"}

"""Which tasks moved, beside what chance alone would move: planted changes, and repeats of one model."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from blade.compare.flips import churn, deals, flips, sure_flips, transitions
from blade.compare.task_pairs import upright
from tests.compare.builders import F1_A, F1_B, listed, pair_of, side


def rows_drawn(rates: Sequence[float], k: int, rng: np.random.Generator) -> list[str]:
    return ["".join("1" if x < rate else "0" for x in rng.random(k)) for rate in rates]


# ---- Churn ----------------------------------------------------------------------------------------


def test_gains_and_losses_add_up_to_the_change() -> None:
    found = churn(listed(F1_A, F1_B))
    assert (found.gains, found.losses) == (pytest.approx((0.25 + 0.5 + 0.75 + 1) / 8), pytest.approx(-0.75 / 8))
    assert found.gains + found.losses == pytest.approx(0.21875)
    assert (found.n_up, found.n_down) == (4, 1)


def exact_null(a: Sequence[str], b: Sequence[str]) -> dict[Fraction, Fraction]:
    """The law of the summed |difference| over all deals of all tasks, by counting them one by one."""
    law = {Fraction(0): Fraction(1)}
    for one, other in zip(a, b, strict=True):
        pool = one + other
        in_b = [sum(pool[i] == "1" for i in chosen) for chosen in itertools.combinations(range(len(pool)), len(other))]
        summed: defaultdict[Fraction, Fraction] = defaultdict(Fraction)
        for (size, p), (n, times) in itertools.product(law.items(), Counter(in_b).items()):
            step = abs(Fraction(n, len(other)) - Fraction(pool.count("1") - n, len(one)))
            summed[size + step] += p * Fraction(times, len(in_b))
        law = summed
    return law


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (F1_A, F1_B),
        (["10", "110", "1"], ["0111", "01", "00110"]),  # no common measure of the differences
        (["1", "0", "10", "110"], ["0", "1", "01", "01"]),  # two of the tasks say nothing
    ],
)
def test_the_null_is_that_of_all_deals(a: list[str], b: list[str]) -> None:
    law = exact_null(a, b)
    found = churn(listed(a, b))
    mean = sum(size * p for size, p in law.items())
    assert found.null_churn * len(a) == pytest.approx(float(mean), abs=1e-12)
    seen = Fraction(found.gains - found.losses).limit_denominator(10_000) * len(a)
    assert found.p == pytest.approx(float(sum(p for size, p in law.items() if size >= seen)), abs=1e-9)
    inside = sum(p for size, p in law.items() if found.null_low - 1e-3 <= float(size) / len(a) <= found.null_high + 1e-3)
    assert inside >= Fraction(95, 100)


def test_many_tasks_take_the_normal_law_of_the_same_deals() -> None:
    rng = np.random.default_rng(6)
    rates = rng.beta(0.7, 0.9, 150).tolist()
    a, b = rows_drawn(rates, 4, rng), rows_drawn(rates, 4, rng)
    few, many = churn(listed(a, b)), churn(listed(a * 3, b * 3))
    assert many.null_churn == pytest.approx(few.null_churn, abs=1e-12)
    assert many.null_changed == pytest.approx(3 * few.null_changed)
    assert (many.null_high - many.null_low) * 3**0.5 == pytest.approx(few.null_high - few.null_low, rel=0.1)


def test_a_change_beyond_the_null_is_told_and_its_twin_of_noise_is_not() -> None:
    rng = np.random.default_rng(7)
    rates = [0.3, 0.7] * 40
    turned = [1 - rate for rate in rates]  # the same score, other tasks
    noise, real = (churn(listed(rows_drawn(rates, 8, rng), rows_drawn(other, 8, rng))) for other in (rates, turned))
    assert noise.p > 0.05
    assert noise.null_low <= noise.gains - noise.losses <= noise.null_high
    assert real.p < 1e-6
    assert real.gains - real.losses > real.null_high


def test_one_rollout_in_each_run_cannot_tell_noise_and_without_a_common_task_there_is_no_churn() -> None:
    found = churn(listed(["1", "0", "1", "0"], ["0", "1", "1", "0"]))
    assert found.p is None
    assert found.null_churn == found.null_low == found.null_high == found.gains - found.losses == 0.5
    pair = pair_of(side("old", {"1": "11"}), side("new", {"2": "11"}))
    assert [of(pair) for of in (churn, transitions, flips, sure_flips)] == [None, (), (), None]


def scores(rates: Sequence[float], k: int, rng: np.random.Generator) -> list[list[float]]:
    return [np.clip(rate + rng.normal(0, 0.2, k), 0, 1).round(2).tolist() for rate in rates]


def test_draws_find_what_the_exact_law_finds() -> None:
    # The same rows, but for one task that makes the scores no passes and moves alike in every deal.
    exact = churn(listed(F1_A, F1_B))
    still = [0.5, 0.5]
    loose = [[float(x) for x in row] for row in F1_A], [[float(x) for x in row] for row in F1_B]
    drawn_ = churn(listed([*loose[0], still], [*loose[1], still]))
    assert drawn_.null_churn * 9 == pytest.approx(exact.null_churn * 8, abs=0.05)
    assert drawn_.p == pytest.approx(exact.p, abs=0.03)


def test_many_tasks_of_other_scores_share_their_deals_and_not_their_errors() -> None:
    rng = np.random.default_rng(9)
    rates = rng.random(300)
    a, b = scores(rates, 3, rng), scores(rates, 3, rng)
    found = churn(listed(a, b))
    assert not deals(upright(listed(a, b))[0]).is_joint
    pools = [np.array([*one, *other]) for one, other in zip(a, b, strict=True)]
    draws = [list(rows) for rows in itertools.combinations(range(6), 3)]
    means = [np.mean([abs(2 * pool[rows].sum() - pool.sum()) / 3 for rows in draws]) for pool in pools]
    assert found.null_churn == pytest.approx(np.mean(means), abs=0.1 * (found.null_high - found.null_low))


def test_equal_scores_in_another_order_have_not_moved() -> None:
    found = churn(listed([[0.1, 0.2, 0.3], [0.5, 0.6]], [[0.3, 0.2, 0.1], [0.6, 0.5]]))
    assert (found.n_up, found.n_down, found.gains, found.losses) == (0, 0, 0.0, 0.0)
    assert flips(listed([[0.1, 0.2, 0.3], [0.5, 0.6]], [[0.3, 0.2, 0.1], [0.6, 0.5]])) == ()


# ---- Buckets --------------------------------------------------------------------------------------


def test_transitions_count_all_nine_ways() -> None:
    found = {(one.before, one.after): one for one in transitions(listed(F1_A, F1_B))}
    assert len(found) == 9
    assert {way: one.n for way, one in found.items() if one.n} == {
        ("always", "always"): 1, ("always", "sometimes"): 1, ("sometimes", "always"): 3, ("sometimes", "sometimes"): 1,
        ("never", "always"): 1, ("never", "never"): 1,
    }
    assert all(one.sure <= one.n for one in found.values())


def test_a_bucket_surely_changes_where_rows_are_many_and_not_where_they_are_few() -> None:
    def cell(k: int, before: str, after: str) -> tuple[int, int]:
        a = ["0" * k, *["1" * k, "0" * k, "10" * (k // 2)] * 8]
        b = ["1" * k, *["1" * k, "0" * k, "10" * (k // 2)] * 8]
        return next((one.n, one.sure) for one in transitions(listed(a, b)) if (one.before, one.after) == (before, after))

    assert cell(20, "never", "always") == (1, 1)
    assert cell(20, "always", "always") == (8, 8)
    assert cell(20, "sometimes", "sometimes") == (8, 8)
    assert cell(2, "never", "always") == (1, 0)


def test_without_a_pass_rate_there_are_no_buckets() -> None:
    pair = listed([[0.2, 0.4], [0.1, 0.1]], [[0.3, 0.5], [0.9, 0.8]])
    assert transitions(pair) == ()
    assert {one.classes for one in flips(pair)} == {("", "")}
    assert {one.p_class_change for one in flips(pair)} == {None}


# ---- Flips ----------------------------------------------------------------------------------------


def test_flips_are_ranked_by_how_sure_they_are() -> None:
    found = flips(listed(F1_A, F1_B))
    assert [one.task for one in found] == ["5", "2", "4", "3", "1"]
    first, second = found[:2]
    assert (first.baseline, first.candidate, first.change, first.classes) == ((0.0, 4), (4.0, 4), 1.0, ("never", "always"))
    assert first.p_better > 0.95 > 0.2 > second.p_better
    assert second.change == -0.75
    # equal ones keep the order of tasks, and the list its length
    a, b = ["0000"] * 70 + ["1111"] * 5, ["1111"] * 70 + ["1111"] * 5
    found = flips(listed(a, b))
    assert [one.task for one in found] == [str(i) for i in range(50)]
    assert len(flips(listed(a, b), most=3)) == 3


def test_other_scores_have_a_posterior_where_repeats_tell_their_spread() -> None:
    rng = np.random.default_rng(10)
    rates = rng.uniform(0.2, 0.6, 30)
    other = rates + 0.0
    other[4] += 0.38
    told = flips(listed(scores(rates, 6, rng), scores(other, 6, rng)))
    assert told[0].task == "4"
    assert told[0].p_better > 0.99
    lone = flips(listed([[0.5], [0.25], [0.1]], [[0.6], [0.75], [0.1]]))
    assert [(one.task, one.p_better) for one in lone] == [("1", None), ("0", None)]


def test_sure_flips_of_noise_are_as_many_as_noise_gives() -> None:
    rng = np.random.default_rng(11)
    seen = expected = 0.0
    for _ in range(40):
        rates = rng.beta(0.7, 0.9, 80)
        found = sure_flips(listed(rows_drawn(rates, 4, rng), rows_drawn(rates, 3, rng)))
        seen += found.up + found.down
        expected += found.null_up + found.null_down
    assert expected > 40
    assert seen == pytest.approx(expected, abs=3.5 * expected**0.5)


def test_sure_flips_of_other_scores() -> None:
    rng = np.random.default_rng(13)
    rates = rng.uniform(0.2, 0.5, 40)
    better = rates.copy()
    better[:10] += 0.4
    found = sure_flips(listed(scores(rates, 5, rng), scores(better, 5, rng)))
    assert found.up >= 6
    assert found.null_up < 2
    assert sure_flips(listed([[0.5], [0.25]], [[0.6], [0.75]])) is None, "no posterior is not none of them"

"""Paired changes: reference values, scipy as second opinion, exact laws, and what swapping the runs does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from blade import stats
from blade.stats import paired_changes as changes
from blade.stats.paired_changes import Rows

# 8 tasks x 4 repeats x 2 runs.
A = np.array([4, 3, 4, 2, 1, 0, 2, 0], float)
B = np.array([4, 4, 1, 4, 4, 4, 2, 0], float)
K = np.full(8, 4)
D = (B - A) / 4


def close(value, digits=1e-9):
    return pytest.approx(value, abs=digits)


def rows(c_a, c_b, n_a, n_b):
    c_a, c_b = np.asarray(c_a, float), np.asarray(c_b, float)
    return Rows(np.asarray(n_a), np.asarray(n_b), c_a, c_b, c_a, c_b, True)


def test_sign_flips_reference_and_second_opinion():
    assert stats.sign_flips(D) == close(0.375)
    asked = {"n_resamples": np.inf, "vectorized": True, "permutation_type": "samples", "axis": 0}
    x = np.array([0.3, -0.1, 0.25, 0.7, 0.05, -0.2, 0.4])
    found = scipy.stats.permutation_test((x,), lambda v, axis: v.mean(axis=axis), **asked)
    assert stats.sign_flips(x) == close(found.pvalue, 1e-6)


def test_small_samples_flip_signs_and_large_ones_use_t(monkeypatch):
    assert stats.mean_change(D).method == "sign flips"
    monkeypatch.setattr(changes, "ENOUGH", 2)
    found = stats.mean_change(D)
    assert (found.method, found.estimate, found.se, found.p) == (
        "paired t", close(0.21875), close(0.1915485532), close(0.2910050815)
    )
    assert (found.low, found.high) == (close(-0.23419035, 1e-8), close(0.67169035, 1e-8))


def test_exact_stratified_reference():
    found = stats.within_change(rows(A, B, K, K), 0.25)
    assert (found.method, found.p) == ("exact stratified", close(0.0733288213))


def test_cochran_mantel_haenszel_reference(monkeypatch):
    monkeypatch.setattr(changes, "ENOUGH", 2)
    found = stats.within_change(rows(A, B, K, K), 0.25)
    assert (found.method, found.p) == ("Cochran-Mantel-Haenszel", close(0.0396087046))
    raw = changes.fixed_task_variance(rows(A, B, K, K))
    assert np.sqrt(raw.sum()) / 8 == close(0.0826797285)
    assert D.var(ddof=1) - raw.mean() == close(0.2388392857)
    assert found.se > np.sqrt(raw.sum()) / 8  # a task that turns from 0 of 4 to 4 of 4 is not without chance


def test_exact_law_by_enumeration_with_unequal_repeats():
    """Every way to deal the rows of three tasks to runs of different sizes."""
    c_a, c_b, n_a, n_b = [1, 0, 2], [2, 3, 3], [2, 1, 3], [3, 3, 4]
    observed = sum(b / m - a / n for a, b, n, m in zip(c_a, c_b, n_a, n_b, strict=True))
    laws = []
    for a, b, n, m in zip(c_a, c_b, n_a, n_b, strict=True):
        total = a + b
        laws.append([
            (x / m - (total - x) / n, scipy.stats.hypergeom.pmf(x, n + m, total, m))
            for x in range(max(0, total - n), min(m, total) + 1)
        ])
    sums = [(sum(v for v, _ in way), np.prod([p for _, p in way])) for way in product(*laws)]
    above = sum(p for v, p in sums if v >= observed - 1e-9)
    below = sum(p for v, p in sums if v <= observed + 1e-9)
    expected = min(1.0, 2 * min(above, below))
    assert stats.within_change(rows(c_a, c_b, n_a, n_b)).p == close(expected)


def test_mcnemar_and_equivalence_references():
    assert stats.mcnemar(2, 8) == (close(0.109375), close(0.0654296875))
    assert stats.mcnemar(0, 0) == (1.0, 1.0)
    assert stats.tost(0.01, 0.02, 49, 0.05) == close(0.0255295741)


def test_power_references():
    assert stats.tasks_needed(stats.Design(1 / 9, 0, 0), 1, 1, 0.03) == close(968.9975, 1e-3)
    noisy = stats.Design(1 / 9, 1 / 6, 1 / 6)
    assert stats.tasks_needed(noisy, 1, 1, 0.03) == close(3875.99, 1e-2)
    assert stats.detectable(np.sqrt(noisy.spread(1, 1) / 198)) == close(0.1327333, 1e-7)
    assert stats.detectable(np.sqrt(noisy.spread(10, 10) / 198)) == close(0.0756696, 1e-7)
    planned = stats.Design(0.05, 0.12, 0.12)
    table = {50: (0.2134, 0.1314, 0.1121), 100: (0.1509, 0.0929, 0.0792), 200: (0.1067, 0.0657, 0.056)}
    for n, values in table.items():
        seen = [stats.detectable(np.sqrt(planned.spread(k, k) / n)) for k in (1, 4, 8)]
        assert seen == close(values, 1e-4)


def test_repeats_needed_reaches_the_effect_or_says_never():
    design = stats.Design(0.001, 0.2, 0.2)
    k = stats.repeats_needed(design, 100, 0.05)
    assert stats.detectable(np.sqrt(design.spread(k, k) / 100)) == close(0.05)
    assert stats.repeats_needed(stats.Design(0.05, 0.2, 0.2), 100, 0.03) is None


def test_kitagawa_reference():
    rate, mix = stats.kitagawa([0.5, 0.5], [0.8, 0.3], [0.7, 0.3], [0.82, 0.28])
    assert rate.tolist() == close([0.012, -0.008])
    assert mix.tolist() == close([0.0416, 0.0624])


def test_holm_by_hand():
    assert stats.holm([0.01, None, 0.04, 0.03]) == [close(0.03), None, close(0.06), close(0.06)]


def test_bootstrap_of_the_reference_and_of_many_distinct_tasks():
    low, high = stats.task_bootstrap(D[:, None], lambda means: means[:, 0], 10_000, ("a",))
    assert (low, high) == (pytest.approx(-0.14, abs=0.03), pytest.approx(0.5625, abs=0.02))
    rng = np.random.default_rng(3)
    many = rng.normal(0.1, 1, (6000, 1))  # more distinct tasks than are drawn one by one
    low, high = stats.task_bootstrap(many, lambda means: means[:, 0], 4000, ("b",))
    half = 1.96 * many.std() / np.sqrt(6000)
    assert (low, high) == (pytest.approx(many.mean() - half, abs=0.003), pytest.approx(many.mean() + half, abs=0.003))


def test_a_bootstrap_without_a_number_in_any_draw_is_no_interval():
    assert stats.task_bootstrap(D[:, None], lambda means: np.full(len(means), np.nan)) is None


def test_probability_of_being_better_matches_draws():
    prior_a, prior_b = stats.BetaPrior(0.7, 0.9, 0, "mle"), stats.BetaPrior(1.2, 0.5, 0, "mle")
    found = stats.p_better([4], [1], prior_a, [8], [6], prior_b)[0]
    rng = np.random.default_rng(1)
    drawn = rng.beta(6 + 1.2, 2 + 0.5, 400_000) > rng.beta(1 + 0.7, 3 + 0.9, 400_000)
    assert found == pytest.approx(drawn.mean(), abs=0.004)
    assert stats.p_better([8], [6], prior_b, [4], [1], prior_a)[0] == close(1 - found, 1e-12)


def test_class_probabilities_add_up_and_match_the_bucket():
    prior = stats.BetaPrior(0.7, 0.9, 0, "mle")
    found = stats.class_probabilities([4, 4, 4], [0, 2, 4], prior)
    assert found.sum(0).tolist() == close([1, 1, 1])
    buckets = stats.p_bucket([4, 4, 4], [0, 2, 4], prior)
    assert [found[0, 0], found[1, 1], found[2, 2]] == close(buckets.tolist())


counts = st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))
tasks = st.lists(st.tuples(counts, counts), min_size=2, max_size=40)


@given(tasks)
def test_swapping_the_runs_flips_the_sign_and_nothing_else(drawn):
    n_a, c_a, n_b, c_b = (np.array([task[i][j] for task in drawn]) for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)))
    there, back = (stats.within_change(rows(*each), 0.5) for each in ((c_a, c_b, n_a, n_b), (c_b, c_a, n_b, n_a)))
    assert (back.estimate, back.low, back.high) == (close(-there.estimate), close(-there.high), close(-there.low))
    assert back.p == close(there.p)
    d = c_b / n_b - c_a / n_a
    there, back = stats.mean_change(d, 0.5), stats.mean_change(-d, 0.5)
    assert (back.estimate, back.low, back.high, back.p) == (
        close(-there.estimate), close(-there.high), close(-there.low), close(there.p)
    )


@given(tasks)
def test_a_p_value_is_one_and_an_interval_holds_its_estimate(drawn):
    n_a, c_a, n_b, c_b = (np.array([task[i][j] for task in drawn]) for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)))
    for found in (stats.within_change(rows(c_a, c_b, n_a, n_b), 0.5), stats.mean_change(c_b / n_b - c_a / n_a)):
        assert 0 <= found.p <= 1
        assert found.low <= found.estimate <= found.high


def test_unchanged_tasks_are_no_proof_that_none_would_change():
    """Twenty tasks that happen not to differ leave room; near-miss: two thousand leave little."""
    few, many = (stats.mean_change(np.zeros(n), 1.0) for n in (20, 2000))
    assert few.p == many.p == 1.0
    assert few.high > 0.1
    assert 0 < many.high < 0.003

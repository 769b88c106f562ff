"""Reference values, scipy as second opinion, exact laws, and properties that hold for any counts."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from blade import stats
from blade.stats import paired_changes as changes
from blade.stats import passes_at_k
from blade.stats.intervals import _cornish_fisher
from blade.stats.paired_changes import Rows
from tests.case_tables import tables

# 8 tasks x 4 repeats x 2 runs, and tau-bench gpt-4o airline: 50 tasks x 4 trials.
A = np.array([4, 3, 4, 2, 1, 0, 2, 0])
B = np.array([4, 4, 1, 4, 4, 4, 2, 0])
TAU = np.repeat([0, 1, 2, 3, 4], [14, 12, 10, 4, 10])
K = np.full(8, 4)
D = (B - A) / 4
NAMED = {"A": A, "B": B, "TAU": TAU, "D": D}
REFERENCES = tables(__file__, "stats_references.yaml")


def rows_of(passes, k=4):
    values = np.array([[1.0] * c + [0.0] * (k - c) for c in passes]).ravel()
    counts = np.full(len(passes), k)
    return values, np.cumsum(counts) - counts, counts


def rows(c_a, c_b, n_a, n_b):
    c_a, c_b = np.asarray(c_a, float), np.asarray(c_b, float)
    return Rows(np.asarray(n_a), np.asarray(n_b), c_a, c_b, c_a, c_b, True)


def close(value, digits=1e-9):
    return pytest.approx(value, abs=digits)


@st.composite
def counts(draw, largest=40):
    n = draw(st.integers(1, largest))
    return n, draw(st.integers(0, n))


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: f"{reference['of']} {reference['with']}")
def test_references(reference):
    arguments = []
    for argument in reference["with"]:
        name, _, as_rows = argument.partition(" ") if isinstance(argument, str) else ("", "", "")
        arguments += rows_of(NAMED[name]) if as_rows else [NAMED[name] if name else argument]
    found, digits = getattr(stats, reference["of"])(*arguments), reference.get("digits", 1e-9)
    if "mean" in reference:
        assert found.mean() == close(reference["mean"], digits)
    elif isinstance(gives := reference["gives"], dict):
        for name, value in gives.items():
            assert getattr(found, name) == (value if isinstance(value, str | None) else close(value, digits)), name
    elif gives is None or (isinstance(gives, float) and math.isnan(gives)):
        assert found is None if gives is None else np.isnan(found).all()
    else:
        for one, value in zip(np.ravel(np.array(found, object)), np.ravel(np.array(gives, object)), strict=True):
            assert one == (value if value is None else close(value, digits))


@pytest.mark.parametrize("k", [1, 5000, 10_000])
@pytest.mark.parametrize("c", [0, 4321, 10_000])
def test_pass_at_k_is_exact_for_many_rows(c, k):
    n = 10_000
    none, every = (float(Fraction(math.comb(some, k), math.comb(n, k))) for some in (n - c, c))
    assert stats.pass_at_k([n], [c], k)[0] == pytest.approx(1 - none, rel=1e-9, abs=1e-15)
    assert stats.pass_hat_k([n], [c], k)[0] == pytest.approx(every, rel=1e-9, abs=1e-300)


def every_vote(answers, n_none, k):
    rows = [a for a, (count, _) in enumerate(answers) for _ in range(count)] + [None] * n_none
    scores = []
    for draw in combinations(rows, k):
        votes = [draw.count(a) for a in range(len(answers))]
        winners = [answers[a][1] for a, cast in enumerate(votes) if cast == max(votes) > 0]
        scores.append(sum(winners) / len(winners) if winners else 0.0)
    return sum(scores) / len(scores)


@st.composite
def votes(draw):
    answers, left = [], 8
    for _ in range(draw(st.integers(0, 5))):
        count = draw(st.integers(0, left))
        answers.append((count, draw(st.sampled_from([0.0, 0.25, 1.0]))))
        left -= count
    return answers, draw(st.integers(0, left))


@given(votes(), st.data())
@settings(max_examples=200)
def test_majority_agrees_with_every_draw(vote, data):
    answers, n_none = vote
    n = sum(count for count, _ in answers) + n_none
    if n == 0:
        assert math.isnan(stats.majority_at_k(answers, n_none, 1))
        return
    k = data.draw(st.integers(1, n))
    found = stats.majority_at_k(answers, n_none, k)
    assert found == close(every_vote(answers, n_none, k), 1e-12)
    assert stats.majority_at_k(data.draw(st.permutations(answers)), n_none, k) == found


@given(counts(), st.floats(0.05, 30), st.floats(0.05, 30))
def test_posterior_agrees_with_scipy(pair, alpha, beta):
    n, c = pair
    prior = stats.BetaPrior(alpha, beta, 0.0, "mle")
    law = scipy.stats.beta(c + alpha, n - c + beta)
    found = [float(values[0]) for values in stats.posterior(n, c, prior)]
    assert found == close([law.mean(), law.ppf(0.025), law.ppf(0.975)], 1e-8)
    expected = law.cdf(0.1) if c == 0 else law.sf(0.9) if c == n else law.cdf(0.9) - law.cdf(0.1)
    assert stats.p_bucket(n, c, prior)[0] == close(expected, 1e-10)


def test_a_small_group_that_does_not_vary_is_not_trusted():
    still, rest = [1.0] * 5, [1.0] * 60 + [0.5] * 7
    welch = scipy.stats.ttest_ind(still, rest, equal_var=False).pvalue
    assert welch < 0.05 < stats.two_groups(still, rest)


@pytest.mark.parametrize(("passes", "method"), [([1, 2, 3], "task t"), ([4, 4, 4, 4, 4, 4, 3], "wilson n_eff")])
def test_score_of_many_tasks_is_t_unless_near_the_ceiling(passes, method):
    many = passes * 30
    variance = stats.variance_components(*rows_of(many))
    means = np.array(many) / 4
    found = stats.score_interval(means, np.full(len(many), 4), variance, True)
    assert found.method == method
    assert found.low < means.mean() < found.high


def test_score_of_uneven_tasks_does_not_borrow_the_rows_of_long_ones():
    # 48 tasks of one row and two of 100: the macro mean knows little more than 50 rows would tell.
    passes, sizes = np.array([0, 1] * 24 + [60, 40]), np.array([1] * 48 + [100, 100])
    values = np.concatenate([np.repeat([1.0, 0.0], [c, k - c]) for c, k in zip(passes, sizes, strict=True)])
    variance = stats.variance_components(values, np.cumsum(sizes) - sizes, sizes)
    assert variance.n_eff > 100
    found = stats.score_interval(passes / sizes, sizes, variance, True)
    assert found.high - found.low > 0.95 * (stats.wilson(26, 52).high - stats.wilson(26, 52).low)


# of the third there is less spread than a binomial has: the sum of parameters runs away
@pytest.mark.parametrize(("n", "c"), [([1, 1, 1], [0, 1, 1]), ([4, 4, 4], [0, 4, 4]), ([4] * 50, [2] * 50), ([4] * 2, [0, 0])])
def test_unidentifiable_prior_is_jeffreys(n, c):
    found = stats.fit_beta_binomial(n, c)
    assert (found[:2], found.method) == ((0.5, 0.5), "jeffreys")
    assert found.nll == close(-scipy.stats.betabinom.logpmf(c, n, 0.5, 0.5).sum())


@given(st.lists(st.floats(0, 1), min_size=2, max_size=60))
def test_mean_interval_holds_the_mean(values):
    found = stats.mean_interval(values)
    if found is None:
        assert np.ptp(values) < 1e-5  # no spread, no interval
    else:
        assert 0 <= found.low <= np.mean(values) + 1e-12
        assert np.mean(values) - 1e-12 <= found.high <= 1


@given(st.lists(st.none() | st.floats(0, 1), max_size=30), st.randoms())
def test_benjamini_hochberg_never_lowers_and_keeps_order(p, random):
    adjusted = stats.benjamini_hochberg(p)
    pairs = sorted((raw, adj) for raw, adj in zip(p, adjusted, strict=True) if raw is not None)
    assert all(raw <= adj <= 1 for raw, adj in pairs)
    assert [adj for _, adj in pairs] == sorted(adj for _, adj in pairs)
    if pairs:
        expected = scipy.stats.false_discovery_control([raw for raw, _ in pairs])
        assert [adj for _, adj in pairs] == close(list(expected), 1e-12)
    order = list(range(len(p)))
    random.shuffle(order)
    assert stats.benjamini_hochberg([p[i] for i in order]) == [adjusted[i] for i in order]


def test_import_and_large_summary_leave_scipy_out():
    code = (
        "import sys, numpy as np, blade.stats as s\n"
        "assert not any(m.startswith('scipy') for m in sys.modules), 'import'\n"
        "c = np.arange(1000) % 5; rows = (np.arange(4) < c[:, None]).astype(float).ravel()\n"
        "v = s.variance_components(rows, np.arange(1000) * 4, np.full(1000, 4))\n"
        "assert s.score_interval(c / 4, np.full(1000, 4), v, True).method == 'task t'\n"
        "s.pass_at_k(4, c, 2); s.pass_hat_k(4, c, 2); s.self_agreement(4, c)\n"
        "s.mean_interval(s.pass_at_k(4, c, 2)); s.majority_at_k([(3, 1.), (2, 0.)], 1, 4)\n"
        "assert not any(m.startswith('scipy') for m in sys.modules), 'summary'\n"
    )
    path = os.pathsep.join([os.path.dirname(os.path.dirname(os.path.dirname(stats.__file__))), *sys.path])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": path}, timeout=60)


def test_no_t_quantile_at_the_ends():
    for p, df in [(0.0, 5), (1.0, 5), (0.5, 0), (math.nan, 5)]:
        with pytest.raises(ValueError, match="no t quantile"):
            stats.t_quantile(p, df)


@pytest.mark.parametrize("df", [1, 2.5, 7, 49, 199.9, 200, 201.5, 999, 124_999, 1e7])
@pytest.mark.parametrize("p", [0.0001, 0.025, 0.3, 0.5, 0.9, 0.975, 0.995, 0.9999, 1 - 1e-9])
def test_t_quantile_agrees_with_scipy(p, df):
    assert stats.t_quantile(p, df) == pytest.approx(scipy.stats.t.ppf(p, df), rel=1e-9, abs=1e-12)
    if df >= 200 and p < 0.99999:  # far out the expansion is not trusted
        assert _cornish_fisher(scipy.special.ndtri(p), df) == pytest.approx(scipy.special.stdtrit(df, p), rel=1e-9)


@given(st.lists(st.lists(st.floats(-5, 5), max_size=6), min_size=1, max_size=8), st.integers(1, 6))
def test_best_and_worst_of_k_agree_with_every_draw(tasks, k):
    sizes = np.array([len(task) for task in tasks])
    rewards = np.array([reward for task in tasks for reward in sorted(task)])
    for worst, pick in ((False, max), (True, min)):
        draws = [[pick(draw) for draw in combinations(task, k)] for task in tasks]
        expected = [np.mean(values) if values else math.nan for values in draws]
        assert list(stats.best_of_k_by_task(rewards, np.cumsum(sizes) - sizes, sizes, k, worst)) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@given(counts(5000))
def test_wilson_agrees_with_scipy_and_holds_its_estimate(pair):
    n, c = pair
    low, high, _ = stats.wilson(c, n)
    assert (low, high) == close(tuple(scipy.stats.binomtest(c, n).proportion_ci(method="wilson")))
    assert 0 <= low <= c / n <= high <= 1


def test_same_words_same_draws():
    first, second, third, again = (
        stats.seeded_rng(*words).random(3).tolist() for words in (("run", "task"), ("runt", "ask"), ("task", "run"), ("run", "task"))
    )
    assert first == again
    assert first not in (second, third)
    assert stats.seeded_rng("\ud800").random() < 1


def test_votes_of_very_many_rows_cost_what_k_costs(monkeypatch):
    """The arrays of a vote are as long as k, however many rows a task has."""
    sizes = []
    binomial = passes_at_k._binomial
    monkeypatch.setattr(passes_at_k, "_binomial", lambda *args: sizes.append(len(found := binomial(*args))) or found)
    assert stats.majority_at_k([(60_000, 1.0), (30_000, 0.0)], 10_000, 8) > 0.8
    assert max(sizes) <= 9


def test_sign_flips_reference_and_second_opinion():
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


def test_exact_stratified_and_cochran_mantel_haenszel_references(monkeypatch):
    found = stats.within_change(rows(A, B, K, K), 0.25)
    assert (found.method, found.p) == ("exact stratified", close(0.0733288213))
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


def test_power_references_and_repeats_needed():
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
    # repeats reach the effect, or never
    design = stats.Design(0.001, 0.2, 0.2)
    k = stats.repeats_needed(design, 100, 0.05)
    assert stats.detectable(np.sqrt(design.spread(k, k) / 100)) == close(0.05)
    assert stats.repeats_needed(stats.Design(0.05, 0.2, 0.2), 100, 0.03) is None


def test_bootstrap_of_the_reference_and_of_many_distinct_tasks():
    low, high = stats.task_bootstrap(D[:, None], lambda means: means[:, 0], 10_000, ("a",))
    assert (low, high) == (pytest.approx(-0.14, abs=0.03), pytest.approx(0.5625, abs=0.02))
    rng = np.random.default_rng(3)
    many = rng.normal(0.1, 1, (6000, 1))  # more distinct tasks than are drawn one by one
    low, high = stats.task_bootstrap(many, lambda means: means[:, 0], 4000, ("b",))
    half = 1.96 * many.std() / np.sqrt(6000)
    assert (low, high) == (pytest.approx(many.mean() - half, abs=0.003), pytest.approx(many.mean() + half, abs=0.003))


def test_probabilities_of_being_better_and_of_classes():
    prior_a, prior_b = stats.BetaPrior(0.7, 0.9, 0, "mle"), stats.BetaPrior(1.2, 0.5, 0, "mle")
    found = stats.p_better([4], [1], prior_a, [8], [6], prior_b)[0]
    rng = np.random.default_rng(1)
    drawn = rng.beta(6 + 1.2, 2 + 0.5, 400_000) > rng.beta(1 + 0.7, 3 + 0.9, 400_000)
    assert found == pytest.approx(drawn.mean(), abs=0.004)
    assert stats.p_better([8], [6], prior_b, [4], [1], prior_a)[0] == close(1 - found, 1e-12)
    # class probabilities add up and match the bucket
    found = stats.class_probabilities([4, 4, 4], [0, 2, 4], prior_a)
    assert found.sum(0).tolist() == close([1, 1, 1])
    buckets = stats.p_bucket([4, 4, 4], [0, 2, 4], prior_a)
    assert [found[0, 0], found[1, 1], found[2, 2]] == close(buckets.tolist())


tasks = st.lists(st.tuples(counts(5), counts(5)), min_size=2, max_size=40)


@given(tasks)
def test_swapping_the_runs_flips_the_sign_and_an_interval_holds_its_estimate(drawn):
    n_a, c_a, n_b, c_b = (np.array([task[i][j] for task in drawn]) for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)))
    there, back = (stats.within_change(rows(*each), 0.5) for each in ((c_a, c_b, n_a, n_b), (c_b, c_a, n_b, n_a)))
    assert (back.estimate, back.low, back.high) == (close(-there.estimate), close(-there.high), close(-there.low))
    assert back.p == close(there.p)
    d = c_b / n_b - c_a / n_a
    there, back = stats.mean_change(d, 0.5), stats.mean_change(-d, 0.5)
    assert (back.estimate, back.low, back.high, back.p) == (
        close(-there.estimate), close(-there.high), close(-there.low), close(there.p)
    )
    for found in (stats.within_change(rows(c_a, c_b, n_a, n_b), 0.5), stats.mean_change(d)):
        assert 0 <= found.p <= 1
        assert found.low <= found.estimate <= found.high


def test_unchanged_tasks_are_no_proof_that_none_would_change():
    """Twenty tasks that happen not to differ leave room; near-miss: two thousand leave little."""
    few, many = (stats.mean_change(np.zeros(n), 1.0) for n in (20, 2000))
    assert few.p == many.p == 1.0
    assert few.high > 0.1
    assert 0 < many.high < 0.003

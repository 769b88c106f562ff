"""Reference values, scipy as second opinion, and properties that hold for any counts."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from blade import stats
from blade.stats import passes_at_k
from blade.stats.intervals import _cornish_fisher

# Canonical fixture F1: 8 tasks x 4 repeats x 2 runs.
F1 = {
    "A": ["1111", "1110", "1111", "1010", "1000", "0000", "1100", "0000"],
    "B": ["1111", "1111", "1000", "1111", "1111", "1111", "1100", "0000"],
}
PASSES = {run: np.array([task.count("1") for task in tasks]) for run, tasks in F1.items()}
# tau-bench gpt-4o airline: 50 tasks x 4 trials.
TAU = np.repeat([0, 1, 2, 3, 4], [14, 12, 10, 4, 10])


def rows_of(passes, k=4):
    values = np.array([[1.0] * c + [0.0] * (k - c) for c in passes]).ravel()
    counts = np.full(len(passes), k)
    return values, np.cumsum(counts) - counts, counts


def close(value, digits=1e-9):
    return pytest.approx(value, abs=digits)


@st.composite
def counts(draw, largest=40):
    n = draw(st.integers(1, largest))
    return n, draw(st.integers(0, n))


def best_of(rewards, k):
    return stats.best_of_k_by_task(np.sort(rewards), [0], [len(rewards)], k)[0]


def worst_of(rewards, k):
    return stats.worst_of_k_by_task(np.sort(rewards), [0], [len(rewards)], k)[0]


def test_pass_at_k_references():
    assert stats.pass_at_k([5], [1], 3)[0] == close(0.6)
    expected = {"A": [0.5, 0.6458333333, 0.71875, 0.75], "B": [0.71875, 0.7916666667, 0.84375, 0.875]}
    for run, values in expected.items():
        assert [stats.pass_at_k(4, PASSES[run], k).mean() for k in (1, 2, 3, 4)] == close(values)
    assert [stats.pass_at_k(4, TAU, k).mean() for k in (1, 2, 3, 4)] == close([0.42, 0.5667, 0.66, 0.72], 1e-4)


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        (PASSES["A"], [0.5, 0.3541666667, 0.28125, 0.25]),
        (PASSES["B"], [0.71875, 0.6458333333, 0.625, 0.625]),
        (TAU, [0.42, 0.2733333333, 0.22, 0.2]),
    ],
)
def test_pass_hat_k_references(passes, expected):
    assert [stats.pass_hat_k(4, passes, k).mean() for k in (1, 2, 3, 4)] == close(expected)


@pytest.mark.parametrize(
    ("passes", "msb", "msw", "icc", "deff", "n_eff"),
    [
        (PASSES["A"], 0.6428571429, 0.1458333333, 0.4600550964, 2.3801652893, 13.4444444444),
        (PASSES["B"], 0.6741071429, 0.0729166667, 0.6733333333, 3.02, 10.5960264901),
        (TAU, 0.5453061224, 0.1466666667, 0.404584369, 2.2137531069, 200 / 2.2137531069),
    ],
)
def test_variance_references(passes, msb, msw, icc, deff, n_eff):
    found = stats.variance_components(*rows_of(passes))
    assert (found.msb, found.msw, found.icc, found.deff) == close((msb, msw, icc, deff))
    assert found.n_eff == close(n_eff, 1e-6)
    assert found.k0 == close(4)
    assert (found.between, found.within) == close(((msb - msw) / 4, msw))
    assert found.icc_k == close((msb - msw) / msb)


def test_beta_binomial_references():
    found = stats.fit_beta_binomial(np.full(8, 4), PASSES["A"])
    assert found[:3] == close((0.66408, 0.66408, 12.761417), 1e-5)
    assert found.method == "mle"
    shrunk, low, high = stats.posterior(4, PASSES["A"], found)
    assert (shrunk[5], shrunk[0]) == close((0.1246, 0.8754), 1e-4)
    assert (low < shrunk).all()
    assert (shrunk < high).all()
    found = stats.fit_beta_binomial(np.full(50, 4), TAU)
    assert found[:3] == close((0.641808, 0.857521, 78.975484), 1e-5)


def test_benjamini_hochberg_reference():
    assert stats.benjamini_hochberg([0.01, 0.04, 0.03, 0.005]) == close([0.02, 0.04, 0.04, 0.02])
    found = stats.benjamini_hochberg([0.01, None, 0.04, 0.03, math.nan, 0.005])
    assert found[1] is None
    assert found[4] is None
    assert [p for p in found if p is not None] == close([0.02, 0.04, 0.04, 0.02])


def test_t_quantile_far_out_does_not_trust_the_expansion():
    assert stats.t_quantile(1 - 1e-9, 200) == pytest.approx(scipy.stats.t.ppf(1 - 1e-9, 200), rel=1e-9)
    for p, df in [(0.0, 5), (1.0, 5), (0.5, 0), (math.nan, 5)]:
        with pytest.raises(ValueError, match="no t quantile"):
            stats.t_quantile(p, df)


@pytest.mark.parametrize("k", [1, 2, 100, 5000, 9999, 10_000])
@pytest.mark.parametrize("c", [0, 1, 2, 4321, 9999, 10_000])
def test_pass_at_k_is_exact_for_many_rows(c, k):
    n = 10_000
    none = Fraction(math.comb(n - c, k), math.comb(n, k))
    every = Fraction(math.comb(c, k), math.comb(n, k))
    assert stats.pass_at_k([n], [c], k)[0] == pytest.approx(float(1 - none), rel=1e-9, abs=1e-15)
    assert stats.pass_hat_k([n], [c], k)[0] == pytest.approx(float(every), rel=1e-9, abs=1e-300)


def every_vote(answers, n_none, k):
    rows = [a for a, (count, _) in enumerate(answers) for _ in range(count)] + [None] * n_none
    total, draws = 0.0, 0
    for draw in combinations(rows, k):
        votes = [draw.count(a) for a in range(len(answers))]
        most = max(votes, default=0)
        winners = [answers[a][1] for a, cast in enumerate(votes) if cast == most and most]
        total += sum(winners) / len(winners) if winners else 0.0
        draws += 1
    return total / draws


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


def test_majority_at_its_edges():
    assert math.isnan(stats.majority_at_k([(2, 1.0)], 0, 3))
    assert math.isnan(stats.majority_at_k([(2, 1.0)], 0, 0))
    assert stats.majority_at_k([], 4, 2) == 0.0
    assert stats.majority_at_k([(1, 1.0)], 3, 4) == close(1.0)
    assert stats.majority_at_k([(600, 1.0), (600, 0.0)], 0, 30) == close(0.5)


def test_variance_of_uneven_tasks_agrees_with_anova():
    tasks = [[0.0, 1.0, 1.0], [0.5], [0.2, 0.9], [1.0] * 5]
    sizes = np.array([len(task) for task in tasks])
    found = stats.variance_components(np.concatenate(tasks), np.cumsum(sizes) - sizes, sizes)
    assert found.msb / found.msw == close(scipy.stats.f_oneway(*tasks).statistic)
    assert found.k0 == close((11 - (9 + 1 + 4 + 25) / 11) / 3)
    assert found.n_eff == close(11 / found.deff)


def test_beta_binomial_agrees_with_a_general_optimiser():
    rng = stats.seeded_rng("beta-binomial")
    for alpha, beta in [(0.3, 0.2), (2.0, 5.0), (20.0, 10.0), (0.5, 60.0)]:
        n = rng.integers(1, 30, 400)
        c = rng.binomial(n, rng.beta(alpha, beta, 400))

        def nll(theta, n=n, c=c):
            return -scipy.stats.betabinom.logpmf(c, n, *np.exp(theta)).sum()

        best = scipy.optimize.minimize(nll, np.log([alpha, beta]), method="Nelder-Mead", options={"xatol": 1e-8})
        found = stats.fit_beta_binomial(n, c)
        assert found.method == "mle"
        assert found.nll <= best.fun + 1e-6
        assert (found.alpha, found.beta) == pytest.approx(tuple(np.exp(best.x)), rel=1e-3)


@given(counts(), st.floats(0.05, 30), st.floats(0.05, 30))
def test_posterior_agrees_with_scipy(pair, alpha, beta):
    n, c = pair
    prior = stats.BetaPrior(alpha, beta, 0.0, "mle")
    law = scipy.stats.beta(c + alpha, n - c + beta)
    found = [float(values[0]) for values in stats.posterior(n, c, prior)]
    assert found == close([law.mean(), law.ppf(0.025), law.ppf(0.975)], 1e-8)
    expected = law.cdf(0.1) if c == 0 else law.sf(0.9) if c == n else law.cdf(0.9) - law.cdf(0.1)
    assert stats.p_bucket(n, c, prior)[0] == close(expected, 1e-10)


def test_two_groups_agree_with_scipy():
    rng = stats.seeded_rng("groups")
    a, b = rng.random(12), rng.random(30) + 0.1
    assert stats.two_groups(a, b) == close(scipy.stats.ttest_ind(a, b).pvalue)
    table = [[27, 0], [166, 7]]
    zeros_and_ones = [1.0] * 27, [1.0] * 166 + [0.0] * 7
    assert stats.two_groups(*zeros_and_ones) == close(scipy.stats.fisher_exact(table).pvalue)


def test_a_small_group_that_does_not_vary_is_not_trusted():
    still, rest = [1.0] * 5, [1.0] * 60 + [0.5] * 7
    welch = scipy.stats.ttest_ind(still, rest, equal_var=False).pvalue
    assert welch < 0.05 < stats.two_groups(still, rest)


def test_score_of_single_rows_is_wilson():
    found = stats.score_interval([1.0] * 8 + [0.0] * 2, [1] * 10, None, True)
    assert found == stats.wilson(8, 10)
    assert found.method == "wilson"


def test_score_of_few_tasks_is_wilson_with_effective_rows():
    variance = stats.variance_components(*rows_of(PASSES["A"]))
    found = stats.score_interval(PASSES["A"] / 4, np.full(8, 4), variance, True)
    assert found[:2] == close(stats.wilson(0.5 * variance.n_eff, variance.n_eff)[:2])
    assert found.method == "wilson n_eff"


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


def test_score_of_real_rewards_stays_inside_its_range():
    means = np.array([0.9, 0.95, 1.0, 0.97])
    found = stats.score_interval(means, np.full(4, 3), None, False)
    assert found.method == "wilson n_eff"
    assert 0.0 < found.low < means.mean() < found.high < 1.0
    unbounded = stats.score_interval([-1.0, 0.5, 3.0], [2, 2, 2], None, False)
    assert unbounded.low < -1.0
    assert unbounded.high > 3.0


def test_mean_interval():
    assert stats.mean_interval([1.0, 0.0, 1.0]) == stats.wilson(2, 3)
    assert stats.mean_interval([1.0, 0.0, 0.5]).method == "wilson n_eff"
    assert stats.mean_interval([1.0, 0.0, 0.5] * 20).method == "task t"
    assert stats.mean_interval([1.0, 0.0, 1.0], -1.0, 1.0).method == "task t"
    assert stats.mean_interval([1.0]) == stats.wilson(1, 1)


def test_t_interval_agrees_with_scipy():
    values = [0.1, 0.4, 0.7, 0.2]
    law = scipy.stats.t(3, np.mean(values), scipy.stats.sem(values))
    assert stats.t_interval(values)[:2] == close((law.ppf(0.025), law.ppf(0.975)))
    assert stats.t_interval(values, 0.3, 0.5)[:2] == (0.3, 0.5)


def test_no_interval_of_what_cannot_be_computed():
    assert stats.t_interval([]) is None
    assert stats.t_interval([0.5]) is None
    assert stats.t_interval([0.5, math.nan]) is None
    assert stats.t_interval([2.0, 3.0], 0.0, 1.0) is None
    assert stats.mean_interval([]) is None
    assert stats.mean_interval([0.5]) is None
    assert stats.mean_interval([0.1] * 3) is None
    assert stats.mean_interval([1.0, math.nan]) is None
    assert stats.score_interval([], [], None, True) is None
    assert stats.score_interval([0.5, math.nan], [2, 0], None, True) is None
    assert stats.score_interval([0.5], [2], None, True) is None
    assert stats.score_interval([0.3, 0.3], [2, 2], None, False) is None


def test_no_variance_without_repeats():
    assert stats.variance_components([1.0, 0.0], [0, 1], [1, 1]) is None
    assert stats.variance_components([1.0, 0.0], [0], [2]) is None
    assert stats.variance_components([1.0, 0.0], [0, 2], [2, 0]) is None
    assert stats.variance_components([], [], []) is None
    assert stats.variance_components([1.0, math.nan, 0.0], [0, 2], [2, 1]) is None


def test_variance_of_equal_rewards_counts_tasks():
    found = stats.variance_components([0.1] * 12, [0, 3, 6, 9], [3, 3, 3, 3])
    assert (found.msb, found.msw, found.icc, found.icc_k) == (0.0, 0.0, None, None)
    assert (found.deff, found.n_eff) == (3.0, 4.0)


def test_negative_icc_is_shown_but_buys_no_rows():
    found = stats.variance_components([1.0, 0.0, 0.0, 1.0], [0, 2], [2, 2])
    assert found.icc == close(-1.0)
    assert (found.deff, found.n_eff, found.between) == (1.0, 4.0, 0.0)
    assert found.icc_k is None


@pytest.mark.parametrize(
    ("n", "c"),
    [
        ([1, 1, 1], [0, 1, 1]),
        ([4, 4, 4], [0, 4, 4]),
        ([4] * 50, [2] * 50),  # less spread than a binomial: the sum of parameters runs away
        ([4] * 2, [0, 0]),
    ],
)
def test_unidentifiable_prior_is_jeffreys(n, c):
    found = stats.fit_beta_binomial(n, c)
    assert found[:2] == (0.5, 0.5)
    assert found.method == "jeffreys"
    assert found.nll == close(-scipy.stats.betabinom.logpmf(c, n, 0.5, 0.5).sum())


@given(counts())
def test_pass_at_k_rises_and_pass_hat_k_falls(pair):
    n, c = pair
    at = [stats.pass_at_k([n], [c], k)[0] for k in range(1, n + 1)]
    hat = [stats.pass_hat_k([n], [c], k)[0] for k in range(1, n + 1)]
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)
    assert at[0] == close(c / n)
    assert hat[0] == close(c / n)


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


def test_references_of_small_formulas():
    """Values computed by hand or in the papers that define them."""
    assert (best_of([0.7, 0.1, 0.4], 2), worst_of([0.7, 0.1, 0.4], 2)) == close((0.6, 0.2))
    assert stats.majority_at_k([(2, 1.0), (1, 0.0), (1, 0.0)], 0, 3) == close(2 / 3)
    for run, expected in {"A": 0.7083333333, "B": 0.8541666667}.items():
        assert stats.self_agreement(4, PASSES[run]).mean() == close(expected)
        assert stats.flip_rate(4, PASSES[run]).mean() == close(1 - expected)
    for run, expected in {"A": 0.1417366774, "B": 0.1451407876}.items():
        low, high, _ = stats.t_interval(PASSES[run] / 4)
        assert (high - low) / 2 / scipy.stats.t.ppf(0.975, 7) == close(expected)
    assert stats.wilson(8, 10)[:2] == close((0.4901624715, 0.9433178485))
    assert stats.wilson(10, 10)[:2] == close((0.7224672001, 1.0))
    assert stats.cohen_kappa([[20, 5], [10, 15]]) == close(0.4)
    assert stats.cohen_kappa([[0]]) is None


@pytest.mark.parametrize("df", [1, 2.5, 7, 49, 199.9, 200, 201.5, 999, 124_999, 1e7])
@pytest.mark.parametrize("p", [0.0001, 0.025, 0.3, 0.5, 0.9, 0.975, 0.995, 0.9999])
def test_t_quantile_agrees_with_scipy(p, df):
    assert stats.t_quantile(p, df) == pytest.approx(scipy.stats.t.ppf(p, df), rel=1e-9, abs=1e-12)
    if df >= 200:
        assert _cornish_fisher(scipy.special.ndtri(p), df) == pytest.approx(scipy.special.stdtrit(df, p), rel=1e-9)


@given(st.lists(st.lists(st.floats(-5, 5), max_size=6), min_size=1, max_size=8), st.integers(1, 6))
def test_best_and_worst_of_k_agree_with_every_draw(tasks, k):
    sizes = np.array([len(task) for task in tasks])
    rewards = np.array([reward for task in tasks for reward in sorted(task)])
    for by_task, pick in ((stats.best_of_k_by_task, max), (stats.worst_of_k_by_task, min)):
        draws = [[pick(draw) for draw in combinations(task, k)] for task in tasks]
        expected = [np.mean(values) if values else math.nan for values in draws]
        assert list(by_task(rewards, np.cumsum(sizes) - sizes, sizes, k)) == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (1, 0), (-1, 5), (6, 5), (math.nan, 5), (1, math.nan), (1, math.inf)])
def test_no_proportion_no_interval(successes, n):
    assert stats.wilson(successes, n) is None


@given(counts(5000))
def test_wilson_agrees_with_scipy_and_holds_its_estimate(pair):
    n, c = pair
    low, high, _ = stats.wilson(c, n)
    assert (low, high) == close(tuple(scipy.stats.binomtest(c, n).proportion_ci(method="wilson")))
    assert 0 <= low <= c / n <= high <= 1


def test_what_cannot_be_computed_is_nan_or_none():
    for value in (stats.pass_at_k, stats.pass_hat_k):
        assert np.isnan(value([3, 4, 4, 0], [1, 5, -1, 0], 4)).all()
        assert np.isnan(value([3, 4], [1, 2], 0)).all()
        assert value([], [], 1).size == 0
    assert np.isnan(stats.self_agreement([1, 0], [1, 0])).all()
    assert np.isnan(stats.flip_rate([1], [1])).all()
    assert all(map(math.isnan, (best_of([], 1), worst_of([1.0], 2), best_of([1.0], 0))))
    assert np.isnan(stats.p_bucket([0], [0], stats.BetaPrior(1, 1, 0, "mle"))).all()
    for n, c in (([], []), ([0, 0], [0, 0]), ([2], [3])):
        assert stats.fit_beta_binomial(n, c) is None
    for a, b in (([1.0], [1.0, 2.0]), ([0.1] * 3, [0.3] * 3), ([1.0, math.nan], [1.0, 2.0])):
        assert stats.two_groups(a, b) is None


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

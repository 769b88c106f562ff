"""Fit a shared Beta prior to the passes of all tasks, and give each task its posterior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from blade.model import Floats, Ints
from blade.stats.intervals import log_choose, special
from blade.stats.passes_at_k import distinct_pairs, per_pair, valid_pairs

NEVER, ALWAYS = 0.1, 0.9
_LEAST_SUM, _LARGEST_SUM = 1e-3, 1e4
_MAX_STEPS = 100
_GRID = 400  # points at which two posteriors are compared
_LONGEST_STEP = 2.0  # in logarithms


class BetaPrior(NamedTuple):
    alpha: float
    beta: float
    nll: float
    method: str


class _Counts(NamedTuple):
    """Distinct (rows, passes) as floats, and how many tasks show each."""

    n: Floats
    c: Floats
    tasks: Floats


def fit_beta_binomial(n: ArrayLike, c: ArrayLike) -> BetaPrior | None:
    """Maximum likelihood of c_i ~ BetaBinomial(n_i, α, β) (Skellam 1948); None without a task.

    Falls back on Jeffreys' prior where the data cannot tell α from β: no task both passed and
    failed (one row a task included), or the likelihood still rises at the edge of the parameters.
    """
    rows, passes, valid = valid_pairs(n, c, 0)
    if not valid.all() or not rows.any():
        return None
    seen = rows > 0
    distinct_n, distinct_c, place = distinct_pairs(rows[seen], passes[seen])
    counts = _Counts(distinct_n.astype(float), distinct_c.astype(float), np.bincount(place).astype(float))
    mixed = bool(((distinct_c > 0) & (distinct_c < distinct_n)).any())
    result = _climb(counts) if mixed else None
    theta, method = (np.log([0.5, 0.5]), "jeffreys") if result is None else (result, "mle")
    # twelve digits: vector units of other processors differ in the last ones, and the bytes shall not
    alpha, beta = (float(f"{value:.11e}") for value in np.exp(theta).tolist())
    theta = np.log([alpha, beta])
    nll = -_log_likelihood(counts, theta) - float(counts.tasks @ log_choose(counts.n, counts.c))
    return BetaPrior(alpha, beta, float(nll), method)


def posterior(n: ArrayLike, c: ArrayLike, prior: BetaPrior) -> tuple[Floats, Floats, Floats]:
    """Posterior mean (c+α)/(n+α+β) of every task and its 95 % equal-tailed bounds."""
    quantile = special().betaincinv

    def of_pairs(n: Ints, c: Ints) -> Floats:
        a, b = c + prior.alpha, n - c + prior.beta
        return np.stack([a / (a + b), quantile(a, b, 0.025), quantile(a, b, 0.975)])

    shrunk, low, high = per_pair(n, c, 0, of_pairs)
    return shrunk, low, high


def p_bucket(n: ArrayLike, c: ArrayLike, prior: BetaPrior) -> Floats:
    """P(the bucket a task's count shows is its true one); nan where it has no row."""
    rows, passes = np.atleast_1d(n), np.atleast_1d(c)
    never, between, always = class_probabilities(rows, passes, prior)
    return np.select([rows < 1, passes == 0, passes == rows], [np.full(never.shape, np.nan), never, always], between)


def class_probabilities(n: ArrayLike, c: ArrayLike, prior: BetaPrior) -> Floats:
    """P(never: p < .1), P(between) and P(always: p > .9) of every task, one row each."""
    below = special().betainc

    def of_pairs(n: Ints, c: Ints) -> Floats:
        a, b = c + prior.alpha, n - c + prior.beta
        never, always = below(a, b, NEVER), below(b, a, 1 - ALWAYS)
        return np.stack([never, np.maximum(0.0, 1 - never - always), always])

    return per_pair(n, c, 0, of_pairs)


def p_better(
    n_a: ArrayLike, c_a: ArrayLike, prior_a: BetaPrior, n_b: ArrayLike, c_b: ArrayLike, prior_b: BetaPrior
) -> Floats:
    """P(the rate of a task is higher in the second run), from the two posteriors.

    Quantiles of both posteriors at midpoints of equal probability are compared, so that
    exchanging the runs gives exactly one minus it.
    """
    quantile = special().betaincinv
    middles = (np.arange(_GRID) + 0.5) / _GRID

    def curves(n: Ints, c: Ints, prior: BetaPrior) -> Floats:
        a, b = (c + prior.alpha)[:, None], (n - c + prior.beta)[:, None]
        result: Floats = quantile(a, b, middles[None, :])
        return result

    rows_a, passes_a, _ = valid_pairs(n_a, c_a, 0)
    rows_b, passes_b, _ = valid_pairs(n_b, c_b, 0)
    of_a, sum_a, place_a = distinct_pairs(rows_a, passes_a)
    of_b, sum_b, place_b = distinct_pairs(rows_b, passes_b)
    first, second = curves(of_a, sum_a, prior_a), curves(of_b, sum_b, prior_b)
    pairs, place = np.unique(place_a * len(of_b) + place_b, return_inverse=True)
    result = np.empty(pairs.size)
    for i, pair in enumerate(pairs.tolist()):
        x, y = first[pair // len(of_b)], second[pair % len(of_b)]
        lower, upto = np.searchsorted(x, y, "left"), np.searchsorted(x, y, "right")
        result[i] = float((lower + upto).sum()) / 2 / _GRID**2
    return result[place]


def _climb(counts: _Counts) -> Floats | None:
    """Newton's method on (log α, log β); None when it leaves the identifiable range or stalls."""
    theta = np.zeros(2)
    height = _log_likelihood(counts, theta)
    for _ in range(_MAX_STEPS):
        gradient, hessian = _derivatives(counts, theta)
        if np.abs(gradient).max() <= 1e-10 * counts.tasks.sum():
            return theta
        step = _uphill(gradient, hessian)
        for _ in range(40):  # its first halving that rises
            if (reached := _log_likelihood(counts, theta + step)) > height:
                break
            step = step / 2
        else:  # no float between here and the top
            return theta if np.abs(gradient).max() <= 1e-6 * counts.tasks.sum() else None
        theta, height = theta + step, reached
        if not _LEAST_SUM <= np.exp(theta).sum() <= _LARGEST_SUM:
            return None
    return None


def _uphill(gradient: Floats, hessian: Floats) -> Floats:
    """Newton's step with curvatures taken positive, so that it rises from a saddle too."""
    curvature, axes = np.linalg.eigh(-hessian)
    along = np.maximum(np.abs(curvature), 1e-9 * np.abs(curvature).max() + 1e-300)
    step = axes @ (axes.T @ gradient / along)
    length = float(np.abs(step).max())
    shortened: Floats = step * min(1.0, _LONGEST_STEP / length)
    return shortened


def _log_likelihood(counts: _Counts, theta: Floats) -> float:
    """Σ log B(c+α, n−c+β)/B(α, β), without the binomial coefficients."""
    a, b = np.exp(theta)
    betaln = special().betaln
    return float(counts.tasks @ (betaln(counts.c + a, counts.n - counts.c + b) - betaln(a, b)))


def _derivatives(counts: _Counts, theta: Floats) -> tuple[Floats, Floats]:
    """Gradient and Hessian in log α, log β: the chain rule adds the gradient to the diagonal."""
    a, b = np.exp(theta)
    digamma, polygamma = special().digamma, special().polygamma
    n, c, tasks = counts

    def summed(difference: Floats) -> float:
        return float(tasks @ difference)

    total = summed(digamma(a + b) - digamma(n + a + b))
    d_a = total + summed(digamma(c + a) - digamma(a))
    d_b = total + summed(digamma(n - c + b) - digamma(b))
    cross = summed(polygamma(1, a + b) - polygamma(1, n + a + b))
    d_aa = cross + summed(polygamma(1, c + a) - polygamma(1, a))
    d_bb = cross + summed(polygamma(1, n - c + b) - polygamma(1, b))
    gradient = np.array([a * d_a, b * d_b])
    hessian = np.array([[a * a * d_aa, a * b * cross], [a * b * cross, b * b * d_bb]])
    return gradient, hessian + np.diag(gradient)

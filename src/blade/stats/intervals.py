"""Counts or task means into 95 % intervals; None where there is nothing to stand on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade.stats.quantiles import Z95, special, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from blade.model import Floats
    from blade.stats.variance import Variance

FEW_TASKS = 50
NEAR_FLOOR, NEAR_CEILING = 0.1, 0.9


class Interval(NamedTuple):
    low: float
    high: float
    method: str


def _is_proportion(successes: float, n: float) -> bool:
    return math.isfinite(n) and n > 0 and 0 <= successes <= n


def wilson(successes: float, n: float, z: float | None = None) -> Interval | None:
    """Wilson (1927) score interval; counts may be fractional, for an effective number of rows."""
    if not _is_proportion(successes, n):
        return None
    z = Z95 if z is None else z
    p, z2 = successes / n, z * z
    shrink = 1 + z2 / n
    centre = (p + z2 / (2 * n)) / shrink
    half = z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / shrink
    # Exact algebra touches 0 and 1 at the ends; rounding does not.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high, "wilson")


def clopper_pearson(successes: float, n: float) -> Interval | None:
    """Clopper & Pearson (1934): inverts the binomial test, never covers less than 95 %."""
    if not _is_proportion(successes, n):
        return None
    quantile = special().betaincinv
    low = 0.0 if successes == 0 else float(quantile(successes, n - successes + 1, 0.025))
    high = 1.0 if successes == n else float(quantile(successes + 1, n - successes, 0.975))
    return Interval(low, high, "clopper-pearson")


def jeffreys(successes: float, n: float) -> Interval | None:
    """Beta(1/2, 1/2) posterior, reaching 0 and 1 at the ends as in Brown, Cai & DasGupta (2001) sec. 4.1."""
    if not _is_proportion(successes, n):
        return None
    low, high = _beta_posterior(successes, n, 0.5)
    return Interval(0.0 if successes == 0 else low, 1.0 if successes == n else high, "jeffreys")


def beta11(successes: float, n: float) -> Interval | None:
    """Posterior under a uniform prior (Bowyer et al. 2025); excludes the estimate at 0 of n and n of n."""
    if not _is_proportion(successes, n):
        return None
    return Interval(*_beta_posterior(successes, n, 1.0), "beta(1,1)")


def _beta_posterior(successes: float, n: float, prior: float) -> tuple[float, float]:
    low, high = special().betaincinv(successes + prior, n - successes + prior, [0.025, 0.975])
    return float(low), float(high)


def wald(successes: float, n: float) -> Interval | None:
    """The textbook interval, for comparison only: n of n gives zero width."""
    if not _is_proportion(successes, n):
        return None
    p = successes / n
    half = Z95 * math.sqrt(p * (1 - p) / n)
    return Interval(max(0.0, p - half), min(1.0, p + half), "wald")


def t_interval(values: ArrayLike, lo: float | None = None, hi: float | None = None) -> Interval | None:
    """Mean ± t·s/√n clipped to `lo`..`hi`; None below two values, with a nan, or with the mean outside."""
    x = np.asarray(values, dtype=np.float64)
    lo, hi = (-math.inf if lo is None else lo), (math.inf if hi is None else hi)
    if x.size < 2 or not np.isfinite(x).all():
        return None
    mean = float(x.mean())
    if not lo <= mean <= hi:
        return None
    half = t_quantile(0.975, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Interval(max(lo, mean - half), min(hi, mean + half), "t")


def mean_interval(values: ArrayLike, lo: float = 0.0, hi: float = 1.0) -> Interval | None:
    """Interval for the mean over tasks of a derived metric, one value a task."""
    x = np.asarray(values, dtype=np.float64)
    is_rate = (lo, hi) == (0.0, 1.0)
    if is_rate and _is_zero_one(x):
        return wilson(float(x.sum()), x.size)
    if not is_rate or _is_constant(x) or not ((x >= 0) & (x <= 1)).all():
        return _task_t(x, lo, hi)
    mean = float(x.mean())
    if x.size > FEW_TASKS and NEAR_FLOOR <= mean <= NEAR_CEILING:
        return _task_t(x, lo, hi)
    # few tasks, or near an end: a t interval would leave [0, 1]. Wilson's does not; its n is the number of
    # Bernoulli draws whose mean varies as much, and its z allows for the variance being estimated.
    spread = float(x.var(ddof=1))
    if spread < 1e-12:  # equal but for rounding
        return None
    n_eff = mean * (1 - mean) * x.size / spread
    found = wilson(mean * n_eff, n_eff, t_quantile(0.975, x.size - 1))
    return found and found._replace(method="wilson n_eff")


def score_interval(
    task_means: ArrayLike, task_counts: ArrayLike, variance: Variance | None, binary_rows: bool
) -> Interval | None:
    """Interval for the macro mean of a run; `binary_rows` says every row scored 0 or 1."""
    means = np.asarray(task_means, dtype=np.float64)
    counts = np.asarray(task_counts, dtype=np.float64)
    if means.size == 0 or not np.isfinite(means).all():
        return None
    if means.min() < 0 or means.max() > 1:
        return _task_t(means, None, None)
    if not binary_rows:
        return mean_interval(means)
    if variance is None or (counts == 1).all():
        return mean_interval(means)
    mean = float(means.mean())
    if means.size > FEW_TASKS and NEAR_FLOOR <= mean <= NEAR_CEILING and not _is_constant(means):
        return _task_t(means, 0.0, 1.0)
    n_eff = _macro_n_eff(counts, variance)
    found = wilson(mean * n_eff, n_eff)
    return found and found._replace(method="wilson n_eff")


def _macro_n_eff(counts: Floats, variance: Variance) -> float:
    """Independent rows worth as much as the macro mean: its variance is (σ²_b + σ²_w·mean(1/k_i))/n.

    Equals `variance.n_eff` when every task has k rows. Otherwise N/deff would credit the macro mean
    with the rows of a few long tasks, whose weight in it is still 1/n.
    """
    icc = 1.0 if variance.icc is None else min(1.0, max(0.0, variance.icc))
    return float(counts.size / (icc + (1 - icc) * np.mean(1 / counts)))


def upper_bound_zero(k: int, level: float = 0.95) -> float:
    """Largest p that 0 passes of `k` leave open (exact one-sided binomial); 1 when nothing was tried."""
    return 1.0 if k < 1 else 1 - (1 - level) ** (1 / k)


def _task_t(x: Floats, lo: float | None, hi: float | None) -> Interval | None:
    # Equal task values say nothing about other tasks; a width of zero would claim certainty.
    found = None if _is_constant(x) else t_interval(x, lo, hi)
    return found and found._replace(method="task t")


def _is_constant(x: Floats) -> bool:
    return x.size < 2 or bool((x == x[0]).all())


def _is_zero_one(x: Floats) -> bool:
    return bool(((x == 0) | (x == 1)).all())

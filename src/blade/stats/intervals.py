"""Compute 95 % intervals: Wilson's of counts, Student's t of task means, a bootstrap of any function of them; None without spread."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from hashlib import blake2b
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blade.model import Floats, Ints

if TYPE_CHECKING:
    from blade.stats.variance import Variance

Z95 = NormalDist().inv_cdf(0.975)
_CELLS = 4_000_000  # weights of a bootstrap that are held at once
_MANY = 4096  # distinct tasks from which a normal weight stands for a multinomial one
_EXPANSION_DF = 200.0
_EXPANSION_Z = 4.0  # beyond, four terms at 200 degrees of freedom lose the ninth digit


def special() -> Any:
    """`scipy.special`, loaded on first need: the import costs more than the summary of a large run."""
    return importlib.import_module("scipy.special")


def log_choose(n: Any, k: Any) -> Any:
    """The logarithm of how many ways there are to choose k of n; numbers or arrays."""
    log = special().gammaln
    return log(n + 1) - log(k + 1) - log(n - k + 1)


def log_hypergeometric(n_marked: int, n_others: int, drawn: int) -> tuple[Ints, Floats]:
    """How many of the rows that are drawn may be marked, each with the logarithm of its probability."""
    counts = np.arange(max(0, drawn - n_others), min(n_marked, drawn) + 1)
    ways = log_choose(n_marked, counts) + log_choose(n_others, drawn - counts)
    return counts, ways - log_choose(n_marked + n_others, drawn)


def t_quantile(p: float, df: float) -> float:
    """Student's t quantile; `ValueError` unless 0 < p < 1 and df > 0."""
    if not (0.0 < p < 1.0 and df > 0.0):
        raise ValueError(f"no t quantile at p={p}, df={df}")
    z = NormalDist().inv_cdf(p)
    if df >= _EXPANSION_DF and abs(z) <= _EXPANSION_Z:
        return _cornish_fisher(z, df)
    return float(special().stdtrit(df, p))


def _cornish_fisher(z: float, df: float) -> float:
    """Abramowitz & Stegun 26.7.5: the t quantile as a series in 1/df around the normal one."""
    z2 = z * z
    g1 = (z2 + 1) / 4
    g2 = ((5 * z2 + 16) * z2 + 3) / 96
    g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384
    g4 = ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160
    return z * (1 + (g1 + (g2 + (g3 + g4 / df) / df) / df) / df)


FEW_TASKS = 50
NEAR_FLOOR, NEAR_CEILING = 0.1, 0.9


class Interval(NamedTuple):
    low: float
    high: float
    method: str


def wilson(successes: float, n: float, z: float | None = None) -> Interval | None:
    """Wilson (1927) score interval; counts may be fractional, for an effective number of rows."""
    if not (math.isfinite(n) and n > 0 and 0 <= successes <= n):
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


def t_interval(values: ArrayLike, lo: float = -math.inf, hi: float = math.inf) -> Interval | None:
    """Mean ± t·s/√n of task values, clipped to `lo`..`hi`; None with a nan, the mean outside, or equal values, which give no certainty."""
    x = np.asarray(values, dtype=np.float64)
    if _is_constant(x) or not np.isfinite(x).all():
        return None
    mean = float(x.mean())
    if not lo <= mean <= hi:
        return None
    half = t_quantile(0.975, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return Interval(max(lo, mean - half), min(hi, mean + half), "task t")


def mean_interval(values: ArrayLike, lo: float = 0.0, hi: float = 1.0) -> Interval | None:
    """Interval for the mean over tasks of a derived metric, one value a task."""
    x = np.asarray(values, dtype=np.float64)
    is_rate = (lo, hi) == (0.0, 1.0)
    if is_rate and np.isin(x, (0, 1)).all():
        return wilson(float(x.sum()), x.size)
    if not is_rate or _is_constant(x) or not ((x >= 0) & (x <= 1)).all():
        return t_interval(x, lo, hi)
    mean = float(x.mean())
    if x.size > FEW_TASKS and NEAR_FLOOR <= mean <= NEAR_CEILING:
        return t_interval(x, lo, hi)
    # few tasks, or near an end: a t interval would leave [0, 1]. Wilson's does not; its n is the number of
    # Bernoulli draws whose mean varies as much, and its z allows for the variance being estimated.
    spread = float(x.var(ddof=1))
    if spread < 1e-12:  # equal but for rounding
        return None
    n_eff = mean * (1 - mean) * x.size / spread
    result = wilson(mean * n_eff, n_eff, t_quantile(0.975, x.size - 1))
    return result and result._replace(method="wilson n_eff")


def score_interval(
    task_means: ArrayLike, task_counts: ArrayLike, variance: Variance | None, binary_rows: bool
) -> Interval | None:
    """Interval for the macro mean of a run; `binary_rows` says every row scored 0 or 1."""
    means = np.asarray(task_means, dtype=np.float64)
    counts = np.asarray(task_counts, dtype=np.float64)
    if means.size == 0 or not np.isfinite(means).all():
        return None
    if means.min() < 0 or means.max() > 1:
        return t_interval(means)
    if not binary_rows or variance is None or (counts == 1).all():
        return mean_interval(means)
    mean = float(means.mean())
    if means.size > FEW_TASKS and NEAR_FLOOR <= mean <= NEAR_CEILING and not _is_constant(means):
        return t_interval(means, 0.0, 1.0)
    # independent rows worth as much as the macro mean, whose variance is (σ²_b + σ²_w·mean(1/k_i))/n: N/deff would credit
    # it with the rows of a few long tasks, whose weight in it is still 1/n
    icc = 1.0 if variance.icc is None else min(1.0, max(0.0, variance.icc))
    n_eff = float(counts.size / (icc + (1 - icc) * np.mean(1 / counts)))
    result = wilson(mean * n_eff, n_eff)
    return result and result._replace(method="wilson n_eff")


def _is_constant(x: Floats) -> bool:
    return x.size < 2 or bool((x == x[0]).all())


# ---- By drawing tasks anew ---------------------------------------------------------------------


def task_bootstrap(
    columns: ArrayLike, statistic: Callable[[NDArray[Any]], NDArray[Any]], draws: int = 2000,
    seed: tuple[str, ...] = (), level: float = 0.95,
) -> tuple[float, float] | None:
    """Percentile interval of `statistic` over tasks drawn anew; None below two tasks, or
    where no draw gives a number.

    `columns` is tasks x values; `statistic` takes draws x means and gives one number a draw. Tasks with the
    same values are one cell of a multinomial, so that a hundred thousand tasks cost what their values cost.
    """
    table = np.asarray(columns, np.float64)
    if table.ndim == 1:
        table = table[:, None]
    n = table.shape[0]
    if n < 2 or not np.isfinite(table).all():
        return None
    ordered = table[np.lexsort(table.T[::-1])]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(1)])
    cells, counts = ordered[starts], np.diff(np.r_[starts, n])
    rng = seeded_rng("task bootstrap", *seed)
    if len(cells) > _MANY:  # means of thousands of distinct tasks vary as a normal law does: drawn from it at once
        means = rng.multivariate_normal(table.mean(0), np.atleast_2d(np.cov(table.T, ddof=1)) / n, size=draws)
    else:
        size = max(1, min(draws, _CELLS // len(cells)))
        sizes = (min(size, draws - start) for start in range(0, draws, size))
        means = np.concatenate([rng.multinomial(n, counts / n, size=part) @ cells / n for part in sizes])
    result = statistic(means)
    result = result[np.isfinite(result)]
    if not result.size:
        return None
    low, high = np.quantile(result, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def seeded_rng(*parts: str) -> np.random.Generator:
    """A generator seeded by `parts`: their order counts, and ("ab", "c") is not ("a", "bc")."""
    digest = blake2b(digest_size=16)
    for part in parts:
        # Lone surrogates occur in task ids read from broken JSON.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return np.random.default_rng(int.from_bytes(digest.digest(), "big"))

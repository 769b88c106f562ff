"""Split variance and change into parts: ANOVA by task, effective rows, Kitagawa's rates and mix, Cohen's kappa, power of a design."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from blade.model import Floats


class Variance(NamedTuple):
    """One-way random-effects ANOVA of rewards by task."""

    between: float  # σ² between tasks, never below 0
    within: float  # σ² of rows within a task
    icc: float | None  # ICC(1), may be negative; None when no reward differs from another
    deff: float
    n_eff: float


def variance_components(values: ArrayLike, starts: ArrayLike, counts: ArrayLike) -> Variance | None:
    """Shrout & Fleiss (1979) ICC(1,1), k0 rows a task if unequal (Donner 1986); None below two tasks, without repeats or with nan."""
    first, k = np.asarray(starts, np.int64), np.asarray(counts, np.int64)
    first, k = first[k > 0], k[k > 0]
    n_tasks, n_rows = k.size, int(k.sum())
    if n_tasks < 2 or n_rows == n_tasks:
        return None
    # the task of every row, and its reward less the first one, so that equal rewards give exact zeros
    task = np.repeat(np.arange(n_tasks), k)
    x = np.asarray(values, np.float64)[np.arange(n_rows) + (first - np.cumsum(k) + k)[task]]
    x = x - x[0]
    if not np.isfinite(x).all():
        return None
    means = np.bincount(task, x, minlength=n_tasks) / k
    msb = float(k @ (means - x.mean()) ** 2) / (n_tasks - 1)
    msw = float(((x - means[task]) ** 2).sum()) / (n_rows - n_tasks)
    k0 = (n_rows - float(k @ k) / n_rows) / (n_tasks - 1)
    spread = msb + (k0 - 1) * msw
    icc = (msb - msw) / spread if spread > 0 else None
    # without any spread the rows may as well be copies of each other: count tasks, not rows
    deff = 1 + (k0 - 1) * (1.0 if icc is None else max(0.0, icc))
    return Variance(max(0.0, (msb - msw) / k0), msw, icc, deff, n_rows / deff)


_REACH = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)  # 5 % two-sided, 80 % power


class Design(NamedTuple):
    """Where the spread of task differences comes from (Miller 2024)."""

    omega2: float  # variance of the true change over tasks
    sigma2_a: float  # variance between rows of a task
    sigma2_b: float

    def spread(self, k_a: float, k_b: float) -> float:
        """Variance of the difference of one task with so many rows in each run."""
        return self.omega2 + self.sigma2_a / k_a + self.sigma2_b / k_b


def detectable(se: float) -> float:
    """The smallest true change that a two-sided 5 % test sees in 80 of 100 comparisons."""
    return _REACH * se


def tasks_needed(design: Design, k_a: float, k_b: float, effect: float) -> float:
    """Tasks that see `effect` with these repeats; infinite for no effect."""
    return _REACH**2 * design.spread(k_a, k_b) / effect**2 if effect else math.inf


def repeats_needed(design: Design, n: int, effect: float) -> float | None:
    """Repeats in each run that see `effect` on n tasks; None where no number of repeats is enough."""
    room = n * effect**2 / _REACH**2 - design.omega2
    return (design.sigma2_a + design.sigma2_b) / room if room > 0 else None


def kitagawa(w_a: ArrayLike, r_a: ArrayLike, w_b: ArrayLike, r_b: ArrayLike) -> tuple[Floats, Floats]:
    """Rate and mix terms of every group; together they add up to the change (Kitagawa 1955, two-fold).

    Mix terms are centred on the mean rate: a group that grows helps only if it is easier than the others.
    """
    shares_a, rates_a, shares_b, rates_b = (np.asarray(x, np.float64) for x in (w_a, r_a, w_b, r_b))
    weight, rate = (shares_a + shares_b) / 2, (rates_a + rates_b) / 2
    centre = float((weight * rate).sum() / weight.sum()) if weight.sum() > 0 else 0.0
    rate_terms: Floats = weight * (rates_b - rates_a)
    mix_terms: Floats = (shares_b - shares_a) * (rate - centre)
    return rate_terms, mix_terms


def cohen_kappa(matrix: Sequence[Sequence[float]]) -> float | None:
    """Agreement beyond chance of a square table of counts."""
    total = sum(map(sum, matrix))
    if not total:
        return None
    agreed = sum(matrix[i][i] for i in range(len(matrix))) / total
    chance = sum(sum(matrix[i]) * sum(row[i] for row in matrix) for i in range(len(matrix))) / total**2
    return (agreed - chance) / (1 - chance) if chance < 1 else None

"""Row rewards grouped by task into variance between and within tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from blade.model import Floats, Ints


class Variance(NamedTuple):
    """One-way random-effects ANOVA of rewards by task."""

    msb: float
    msw: float
    between: float  # σ² between tasks, never below 0
    within: float  # σ² of rows within a task
    icc: float | None  # ICC(1), may be negative; None when no reward differs from another
    icc_k: float | None  # reliability of a task mean; None when task means do not differ
    deff: float
    n_eff: float
    k0: float  # rows per task, corrected for unequal counts


def variance_components(values: ArrayLike, starts: ArrayLike, counts: ArrayLike) -> Variance | None:
    """Shrout & Fleiss (1979) ICC(1,1) and ICC(1,k), with k0 for unequal counts (Donner 1986).

    None below two tasks, when no task has two rows, or when a reward is no number.
    """
    first, k = np.asarray(starts, np.int64), np.asarray(counts, np.int64)
    first, k = first[k > 0], k[k > 0]
    n_tasks, n_rows = k.size, int(k.sum())
    if n_tasks < 2 or n_rows == n_tasks:
        return None
    task, x = _by_task(np.asarray(values, np.float64), first, k)
    if not np.isfinite(x).all():
        return None
    means = np.bincount(task, x, minlength=n_tasks) / k
    msb = float(k @ (means - x.mean()) ** 2) / (n_tasks - 1)
    msw = float(((x - means[task]) ** 2).sum()) / (n_rows - n_tasks)
    k0 = (n_rows - float(k @ k) / n_rows) / (n_tasks - 1)
    return _components(msb, msw, k0, n_rows)


def _by_task(values: Floats, starts: Ints, counts: Ints) -> tuple[Ints, Floats]:
    """The task of every row, and its reward less the first one, so that equal rewards give exact zeros."""
    task = np.repeat(np.arange(counts.size), counts)
    before = np.cumsum(counts) - counts
    x = values[np.arange(task.size) + (starts - before)[task]]
    return task, x - x[0]


def _components(msb: float, msw: float, k0: float, n_rows: int) -> Variance:
    spread = msb + (k0 - 1) * msw
    icc = (msb - msw) / spread if spread > 0 else None
    # Without any spread the rows may as well be copies of each other: count tasks, not rows.
    likeness = 1.0 if icc is None else max(0.0, icc)
    deff = 1 + (k0 - 1) * likeness
    return Variance(
        msb=msb,
        msw=msw,
        between=max(0.0, (msb - msw) / k0),
        within=msw,
        icc=icc,
        icc_k=(msb - msw) / msb if msb > 0 else None,
        deff=deff,
        n_eff=n_rows / deff,
        k0=k0,
    )

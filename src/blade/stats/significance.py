"""Two groups into a p-value, and many p-values into adjusted ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from blade.model import Floats, Ints
from blade.stats.intervals import log_hypergeometric, special


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """Adjusted p_(i) = min over j ≥ i of m·p_(j)/j (Benjamini & Hochberg 1995); None is not counted."""
    # m/j first: it is at least 1 in floats, so an adjusted p never falls below its raw one
    return _adjusted(p, lambda x, rank: np.minimum.accumulate(np.minimum(1.0, x * (x.size / rank))[::-1])[::-1])


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Adjusted p_(i) = max over j ≤ i of (m-j+1)·p_(j) (Holm 1979): family-wise."""
    return _adjusted(p, lambda x, rank: np.maximum.accumulate(np.minimum(1.0, x * (x.size + 1 - rank))))


def _adjusted(p: Sequence[float | None], adjust: Callable[[Floats, Ints], Floats]) -> list[float | None]:
    """The known p adjusted from the smallest on, with their ranks from 1; None and nan stay None."""
    out: list[float | None] = [None] * len(p)
    known = sorted((value, i) for i, value in enumerate(p) if value is not None and not math.isnan(value))
    values = adjust(np.array([value for value, _ in known]), np.arange(1, len(known) + 1))
    for (_, i), value in zip(known, values.tolist(), strict=True):
        out[i] = value
    return out


def two_groups(a: ArrayLike, b: ArrayLike) -> float | None:
    """Two-sided p that two groups of task values differ; None with a value missing or none that differ.

    Values of 0 and 1: Fisher's exact test. Others: Student's t on the pooled variance, which is what holds if
    the groups are alike. Welch's would trust a small group that happens not to vary.
    """
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    both = np.concatenate([x, y])
    is_binary = bool(((both == 0) | (both == 1)).all())
    if min(x.size, y.size) < 2 or not np.isfinite(both).all() or (np.ptp(x) == np.ptp(y) == 0 and not is_binary):
        return None
    if is_binary:
        return fisher(int(x.sum()), x.size, int(y.sum()), y.size)
    df = both.size - 2
    pooled = (float(x.var()) * x.size + float(y.var()) * y.size) / df
    if pooled <= 0:
        return None
    t = float(x.mean() - y.mean()) / math.sqrt(pooled * (1 / x.size + 1 / y.size))
    return float(2 * special().stdtr(df, -abs(t)))


def fisher(c1: int, n1: int, c2: int, n2: int) -> float:
    """Sum of the hypergeometric probabilities no larger than that of the table seen (Fisher 1935)."""
    counts, logs = log_hypergeometric(n1, n2, c1 + c2)
    seen = float(logs[c1 - int(counts[0])])
    return min(1.0, float(np.exp(logs[logs <= seen + 1e-7]).sum()))


def hypergeometric_tail(marked: int, drawn: int, n_marked: int, n: int) -> float:
    """P(at most `marked` of `drawn` rows are among the `n_marked` of all n rows), when they are drawn at random."""
    counts, logs = log_hypergeometric(n_marked, n - n_marked, drawn)
    return min(1.0, float(np.exp(logs[counts <= marked]).sum()))

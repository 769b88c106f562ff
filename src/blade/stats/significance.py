"""Two groups into a p-value, and many p-values into adjusted ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blade.stats.quantiles import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """Adjusted p_(i) = min over j ≥ i of m·p_(j)/j (Benjamini & Hochberg 1995); None is not counted."""
    out: list[float | None] = [None] * len(p)
    known = sorted((value, i) for i, value in enumerate(p) if value is not None and not math.isnan(value))
    least = 1.0
    for rank in range(len(known), 0, -1):
        value, i = known[rank - 1]
        # m/j first: it is at least 1 in floats, so an adjusted p never falls below its raw one.
        least = min(least, value * (len(known) / rank))
        out[i] = least
    return out


def welch(a: ArrayLike, b: ArrayLike) -> float | None:
    """Two-sided p of Welch's (1947) t; None with fewer than two values a side or none that differ."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if min(x.size, y.size) < 2 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    if np.ptp(x) == 0 and np.ptp(y) == 0:
        return None
    ex, ey = float(x.var(ddof=1)) / x.size, float(y.var(ddof=1)) / y.size
    t = float(x.mean() - y.mean()) / math.sqrt(ex + ey)
    # Satterthwaite (1946)
    df = (ex + ey) ** 2 / (ex**2 / (x.size - 1) + ey**2 / (y.size - 1))
    return float(2 * special().stdtr(df, -abs(t)))

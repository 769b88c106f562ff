"""Turn 2 x 2 tables of many tasks into one odds ratio and one p-value: compare only within a task."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_Z = 1.959963984540054


class MantelHaenszel(NamedTuple):
    """The common odds ratio of some strata; None where the tables say nothing."""

    odds_ratio: float | None  # inf where nothing speaks against it
    low: float | None
    high: float | None
    p: float | None  # Cochran-Mantel-Haenszel, without continuity correction
    n_strata: int  # tables that hold information


def mantel_haenszel(tables: ArrayLike, corrected: bool = False) -> MantelHaenszel:
    """Of tables [[a, b], [c, d]]: rows with and without the feature, columns fail and pass."""
    found = np.asarray(tables, np.float64).reshape(-1, 2, 2)
    rows, columns, n = found.sum(2), found.sum(1), found.sum((1, 2))
    usable = (rows > 0).all(1) & (columns > 0).all(1)
    if not usable.any():
        return MantelHaenszel(None, None, None, None, 0)
    a, b, c, d = (found[usable, i, j] for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)))
    n = n[usable]
    odds, low, high = _odds_ratio(a, b, c, d, n)
    return MantelHaenszel(odds, low, high, _cmh(a, b, c, d, n, corrected), int(usable.sum()))


def _odds_ratio(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    c: NDArray[np.float64],
    d: NDArray[np.float64],
    n: NDArray[np.float64],
) -> tuple[float | None, float | None, float | None]:
    """With the Robins-Breslow-Greenland interval; half a count in every cell where a sum is zero."""
    top, bottom = float((a * d / n).sum()), float((b * c / n).sum())
    if top == 0 and bottom == 0:
        return None, None, None
    point = top / bottom if bottom else math.inf
    if top == 0 or bottom == 0:
        a, b, c, d, n = a + 0.5, b + 0.5, c + 0.5, d + 0.5, n + 2
    r, s, p, q = a * d / n, b * c / n, (a + d) / n, (b + c) / n
    total_r, total_s = float(r.sum()), float(s.sum())
    variance = (
        float((p * r).sum()) / (2 * total_r**2)
        + float((p * s + q * r).sum()) / (2 * total_r * total_s)
        + float((q * s).sum()) / (2 * total_s**2)
    )
    centre, half = math.log(total_r / total_s), _Z * math.sqrt(variance)
    return point, math.exp(centre - half), math.exp(centre + half)


def _cmh(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    c: NDArray[np.float64],
    d: NDArray[np.float64],
    n: NDArray[np.float64],
    corrected: bool,
) -> float | None:
    several = n > 1
    a, b, c, d, n = a[several], b[several], c[several], d[several], n[several]
    with_it, fails = a + b, a + c
    expected = with_it * fails / n
    variance = with_it * (n - with_it) * fails * (n - fails) / (n * n * (n - 1))
    total = float(variance.sum())
    if total <= 0:
        return None
    gap = max(abs(float((a - expected).sum())) - (0.5 if corrected else 0.0), 0.0)
    return math.erfc(gap / math.sqrt(2 * total))


def exact_stratified(tables: ArrayLike, greater: bool = True) -> float | None:
    """One-sided exact p of the number of failures with the feature, margins of every table fixed."""
    found = np.asarray(tables, np.int64).reshape(-1, 2, 2)
    law = np.ones(1)
    low = observed = 0
    for (a, b), (c, d) in found:
        n, with_it, fails = int(a + b + c + d), int(a + b), int(a + c)
        least, most = max(0, with_it + fails - n), min(with_it, fails)
        if least == most:
            continue
        ways = [math.comb(fails, x) * math.comb(n - fails, with_it - x) for x in range(least, most + 1)]
        total = math.comb(n, with_it)
        law = np.convolve(law, [way / total for way in ways])
        low, observed = low + least, observed + int(a)
    if law.size == 1:
        return None
    at = observed - low
    return float(min(1.0, law[at:].sum() if greater else law[: at + 1].sum()))


class Spectrum(NamedTuple):
    """How suspicious a feature is by the rollouts that show it."""

    ochiai: float
    tarantula: float
    dstar2: float
    kulczynski2: float


def spectrum(fails_with: float, fails_without: float, passes_with: float, passes_without: float) -> Spectrum:
    """Fault-localisation scores; 0 where nothing fails with the feature, inf for a perfect D*."""
    if fails_with <= 0:
        return Spectrum(0.0, 0.0, 0.0, 0.0)
    fails, shown = fails_with + fails_without, fails_with + passes_with
    fail_rate = fails_with / fails
    passes = passes_with + passes_without
    pass_rate = passes_with / passes if passes else 0.0
    others = passes_with + fails_without
    return Spectrum(
        fails_with / math.sqrt(fails * shown),
        fail_rate / (fail_rate + pass_rate),
        fails_with**2 / others if others else math.inf,
        0.5 * (fail_rate + fails_with / shown),
    )


def log_odds_dirichlet(
    y1: float, n1: float, y2: float, n2: float, alpha_w: float, alpha0: float
) -> tuple[float, float]:
    """Log-odds of a word in group 1 against group 2 under an informative Dirichlet prior, and its z."""
    first = math.log((y1 + alpha_w) / (n1 + alpha0 - y1 - alpha_w))
    second = math.log((y2 + alpha_w) / (n2 + alpha0 - y2 - alpha_w))
    delta = first - second
    return delta, delta / math.sqrt(1 / (y1 + alpha_w) + 1 / (y2 + alpha_w))

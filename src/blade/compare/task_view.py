"""Turn the change of score into the tasks that gained and lost most, and all the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.pairing import Paired, means
from blade.compare.task_sets import reach
from blade.model import Side, Term
from blade.stats.pairs import per_pair
from blade.stats.quantiles import special

if TYPE_CHECKING:
    from blade.model import Floats, Ints

LISTED = 15  # gains, and as many losses
NOTE = (
    "Tasks are picked for their size, which chance alone makes large for some: an interval is of one task's "
    "repeats and allows for no picking. Nothing here is claimed to have moved the score."
)
_SAME = 1e-12


def task_terms(pair: Paired) -> tuple[Term, ...]:
    """The largest gains and losses of the common tasks, then what is left of either."""
    d, n = pair.d, pair.d.size
    low, high = task_intervals(pair)
    order = _by_size(pair)
    gains, losses = order[d[order] > _SAME], order[d[order] < -_SAME]
    terms = [
        Term(_name(pair, int(i)), float(d[i] / n), float(low[i] / n), float(high[i] / n), None, "task", 1)
        for i in (*gains[:LISTED], *losses[:LISTED])
    ]
    for name, rest in (("all other gains", gains[LISTED:]), ("all other losses", losses[LISTED:])):
        if rest.size:
            terms.append(_together(name, d[rest], low[rest], high[rest], n))
    if not terms:
        terms.append(_together("no task changed", d, low, high, n))
    return tuple(terms)


def _by_size(pair: Paired) -> Ints:
    """Common tasks by the size of their change, equal ones in the order of their keys."""
    return np.argsort(-np.round(np.abs(pair.d), 12), kind="stable")


def _name(pair: Paired, i: int) -> str:
    """The readable name of a common task if both runs call it that, and its key or keys."""
    code_a, code_b = pair.code_a[i], pair.code_b[i]
    keys = sorted({pair.a.judged.task_keys[code_a], pair.b.judged.task_keys[code_b]})
    key, name = " / ".join(keys), pair.a.task_names[code_a]
    return key if name in keys or name != pair.b.task_names[code_b] else f"{name} [{key}]"


def _together(name: str, d: Floats, low: Floats, high: Floats, n: int) -> Term:
    """The sum of tasks, whose distances to their limits add up as squares (Zou & Donner 2008)."""
    value = math.fsum(d.tolist())
    below, above = (math.sqrt(math.fsum(((d - limit) ** 2).tolist())) for limit in (low, high))
    return Term(name, value / n, (value - below) / n, (value + above) / n, None, "task", d.size)


def task_intervals(pair: Paired) -> tuple[Floats, Floats]:
    """For each common task the range that its repeats leave open for its change.

    Passes and fails: Newcombe (1998), method 10. Other scores: Welch's t where both runs have repeats that
    differ; else all that is possible.
    """
    d = pair.d
    if pair.a.is_binary and pair.b.is_binary:
        low_a, high_a = _wilson(pair.n_a, pair.mean_a)
        low_b, high_b = _wilson(pair.n_b, pair.mean_b)
        below = np.hypot(pair.mean_b - low_b, high_a - pair.mean_a)
        above = np.hypot(high_b - pair.mean_b, pair.mean_a - low_a)
        return d - below, d + above
    var_a, var_b = _variance(pair.a, pair.code_a, pair.n_a), _variance(pair.b, pair.code_b, pair.n_b)
    variance = var_a + var_b
    known = (pair.n_a > 1) & (pair.n_b > 1) & (variance > 0)
    df = np.ones(d.size)
    spread = var_a**2 / np.maximum(pair.n_a - 1, 1) + var_b**2 / np.maximum(pair.n_b - 1, 1)
    df[known] = variance[known] ** 2 / spread[known]
    half = special().stdtrit(df, 0.975) * np.sqrt(variance)
    widest = reach(pair)
    low = np.where(known, d - half, np.minimum(d, -widest))
    high = np.where(known, d + half, np.maximum(d, widest))
    return np.maximum(low, np.minimum(d, -widest)), np.minimum(high, np.maximum(d, widest))


def _wilson(n: Ints, means_: Floats) -> tuple[Floats, Floats]:
    def limits(rows: Ints, passes: Ints) -> Floats:
        found = [stats.wilson(c, k) for k, c in zip(rows.tolist(), passes.tolist(), strict=True)]
        return np.array([(x.low, x.high) for x in found if x is not None], np.float64).reshape(-1, 2).T

    low, high = per_pair(n, np.rint(means_ * n).astype(np.int64), 1, limits)
    return low, high


def _variance(side: Side, codes: Ints, n: Ints) -> Floats:
    """Of the mean of each task's rows."""
    centre = means(side, side.judged.score)
    squares = means(side, (side.judged.score - centre[side.judged.task]) ** 2)[codes]
    found: Floats = squares / np.maximum(n - 1, 1)
    return np.where(found > 1e-24, found, 0.0)

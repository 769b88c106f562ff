"""Turn paired tasks into how much they moved, beside what chance alone would move them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade.compare import exchange
from blade.compare.pairing import Paired
from blade.model import Churn
from blade.stats.quantiles import Z95
from blade.stats.sums import cell_size, law_of_sum

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

_ROUNDING = 1e-9


class _Null(NamedTuple):
    """Summed over tasks, what they would move by if the labels of their rollouts meant nothing."""

    mean: float
    low: float
    high: float
    changed: float  # tasks
    p: float | None


def churn(pair: Paired) -> Churn | None:
    """Gains and losses of all tasks, beside those of one and the same model; None without a common task.

    The null deals the rollouts of each task anew between the runs: by the hypergeometric law where scores are
    0 and 1, else by draws. It takes its noise from repeats. With one rollout of a task in each run there are
    none: dealing them anew only turns the sign, every deal has the churn that was seen, and p is None. That
    does not say that the churn is noise; nothing here can tell how much of it is.
    """
    n = pair.n_a.size
    if not n:
        return None
    d, has_moved = pair.d, exchange.moved(pair)
    up, down = np.where(has_moved, np.maximum(d, 0.0), 0.0), np.where(has_moved, np.maximum(-d, 0.0), 0.0)
    upright, _ = exchange.upright(pair)
    seen = np.where(has_moved, np.abs(d), 0.0)
    null = _null_of_counts(upright, seen) if exchange.is_binary(pair) else _null_of_scores(upright, seen)
    return Churn(
        gains=float(up.sum()) / n,
        losses=0.0 - float(down.sum()) / n,
        n_up=int(np.count_nonzero(up)),
        n_down=int(np.count_nonzero(down)),
        null_churn=null.mean / n,
        null_low=null.low / n,
        null_high=null.high / n,
        null_changed=null.changed,
        p=null.p,
    )


def _null_of_counts(pair: Paired, seen: Floats) -> _Null:
    ways = exchange.ways(pair)
    size = np.abs(ways.d)
    changed = ways.over_tasks((size > exchange.ZERO).astype(np.float64))
    mean = ways.by_kind(size)
    beside = size - mean[ways.kind]
    # A kind that moves alike in every deal has a variance of exactly nothing.
    spread = ways.by_kind(np.where(np.abs(beside) > _ROUNDING, beside, 0.0) ** 2)
    telling = spread > 0
    tasks = np.zeros(mean.size)
    tasks[ways.kind] = ways.tasks
    if not telling.any():
        return _unknown(seen, changed)
    if tasks[telling].sum() > exchange.FEW:
        return _normal(float(tasks @ mean), float(tasks @ spread), seen, changed)
    return _exact(ways, telling, seen, changed)._replace(mean=float(tasks @ mean))


def _exact(ways: exchange.Ways, telling: Bools, seen: Floats, changed: float) -> _Null:
    """The law of the sum over tasks, on a grid that holds all differences or is fine beside them."""
    size = np.abs(ways.d)
    tells = telling[ways.kind]
    n_telling = int((ways.tasks * ways.chance)[tells].sum() + 0.5)
    rows = np.unique(np.concatenate([ways.n_a[size > 0], ways.n_b[size > 0]]))
    cell, _ = cell_size(np.ones(n_telling), rows.tolist())
    cells = np.rint(size / cell).astype(np.int64)
    terms: list[tuple[Ints, Floats]] = []
    for kind in np.flatnonzero(telling).tolist():
        of_kind = np.flatnonzero(ways.kind == kind)
        terms += [(cells[of_kind], ways.chance[of_kind])] * int(ways.tasks[of_kind[0]])
    law = law_of_sum(terms, 0)
    # What the other kinds add is the same in every deal.
    others = cells * ways.tasks * ways.chance
    lowest = law.lowest + round(float(others[~tells].sum()))
    below = np.cumsum(law.probability)
    low = lowest + int(np.searchsorted(below, 0.025 + _ROUNDING, "right"))
    high = lowest + int(np.searchsorted(below, 0.975 - _ROUNDING, "left"))
    # Observed differences are put on the grid as the others are, so that ties are ties.
    observed = int(np.rint(seen / cell).sum()) - lowest
    p = min(1.0, float(law.probability[max(0, observed) :].sum()))
    return _Null(0.0, low * cell, high * cell, changed, p)


def _null_of_scores(pair: Paired, seen: Floats) -> _Null:
    deals = exchange.deals(pair)
    totals = np.zeros(deals.n)
    spread = changed = 0.0
    rounding = exchange.ZERO * np.maximum(1.0, np.abs(pair.mean_a) + np.abs(pair.mean_b))
    for tasks, d in deals.parts:
        size = np.abs(d)
        totals += size.sum(0)
        changed += int(np.count_nonzero(size > rounding[tasks, None])) / deals.n
        mean = size.mean(1)
        variance = np.einsum("ij,ij->i", size, size) / deals.n - mean * mean
        spread += float(variance[variance > _ROUNDING * mean * mean].sum())
    if not spread:
        return _unknown(seen, changed)
    if not deals.is_joint:
        return _normal(float(totals.mean()), spread, seen, changed)
    low, high = np.quantile(totals, [0.025, 0.975])
    beyond = int(np.count_nonzero(totals >= float(seen.sum()) * (1 - _ROUNDING)))
    p = (1 + beyond) / (1 + deals.n)
    return _Null(float(totals.mean()), float(low), float(high), changed, p)


def _normal(mean: float, variance: float, seen: Floats, changed: float) -> _Null:
    sd = math.sqrt(variance)
    p = math.erfc((float(seen.sum()) - mean) / (sd * math.sqrt(2))) / 2
    return _Null(mean, max(0.0, mean - Z95 * sd), mean + Z95 * sd, changed, p)


def _unknown(seen: Floats, changed: float) -> _Null:
    total = float(seen.sum())
    return _Null(total, total, total, changed, None)

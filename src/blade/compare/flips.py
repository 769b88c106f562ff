"""Turn paired tasks into those that moved, beside what chance alone would move."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade import stats
from blade.compare import exchange
from blade.compare.better import p_better, sure_flips
from blade.compare.churn import churn
from blade.compare.pairing import Paired, over_common
from blade.model import Flip, Transition

if TYPE_CHECKING:
    from blade.model import Floats, Ints

__all__ = ["churn", "flips", "sure_flips", "transitions"]

BUCKETS = ("always", "sometimes", "never")
SURE = 0.8  # of a bucket
_DIGITS = 9  # beyond, a difference is rounding and decides no order
_ROUNDING = 1e-9


# ---- Buckets --------------------------------------------------------------------------------------


class _Buckets(NamedTuple):
    before: Ints  # by counts: code into BUCKETS
    after: Ints
    p_change: Floats


def transitions(pair: Paired) -> tuple[Transition, ...]:
    """Common tasks by their bucket in each run, all nine ways; nothing without a pass rate.

    Counts tell the bucket, posteriors how sure it is that the true one changed, or that it did not.
    """
    found = _buckets(pair)
    if found is None:
        return ()
    cell = found.before * 3 + found.after
    p_said = np.where(found.before == found.after, 1.0 - found.p_change, found.p_change)
    n = np.bincount(cell, minlength=9)
    sure = np.bincount(cell[p_said >= SURE - _ROUNDING], minlength=9)
    return tuple(
        Transition(BUCKETS[code // 3], BUCKETS[code % 3], int(n[code]), int(sure[code])) for code in range(9)
    )


def _buckets(pair: Paired) -> _Buckets | None:
    if not pair.n_a.size or not (pair.a.judged.judged and pair.b.judged.judged):
        return None
    rate_a, rate_b = over_common(pair, pair.a.judged.passed, pair.b.judged.passed)
    c_a, c_b = np.rint(rate_a * pair.n_a).astype(np.int64), np.rint(rate_b * pair.n_b).astype(np.int64)
    prior_a, prior_b = stats.fit_beta_binomial(pair.n_a, c_a), stats.fit_beta_binomial(pair.n_b, c_b)
    if prior_a is None or prior_b is None:
        return None
    class_a = stats.class_probabilities(pair.n_a, c_a, prior_a)
    class_b = stats.class_probabilities(pair.n_b, c_b, prior_b)
    p_change = np.clip(1.0 - (class_a * class_b).sum(0), 0.0, 1.0)
    return _Buckets(_bucket(pair.n_a, c_a), _bucket(pair.n_b, c_b), p_change)


def _bucket(n: Ints, c: Ints) -> Ints:
    found: Ints = np.where(c == n, 0, np.where(c == 0, 2, 1))
    return found


# ---- Flips ----------------------------------------------------------------------------------------


def flips(pair: Paired, most: int = 50) -> tuple[Flip, ...]:
    """The tasks that moved, surest first: by the posterior probability that they moved the way they did.

    Where nothing says how repeats vary there is no posterior, and the largest change comes first.
    """
    p = p_better(pair) if pair.n_a.size else None
    d = pair.d
    size = np.round(np.abs(d), _DIGITS)
    certainty = np.zeros(d.size) if p is None else np.round(np.where(d > 0, p, 1.0 - p), _DIGITS)
    at = np.flatnonzero(exchange.moved(pair))
    first, _ = exchange.upright(pair)
    listed = at[np.lexsort((first.code_a[at], -size[at], -certainty[at]))[:most]]
    buckets = _buckets(pair) if listed.size else None
    return tuple(_flip(pair, i, None if p is None else float(p[i]), buckets) for i in listed.tolist())


def _flip(pair: Paired, i: int, p: float | None, buckets: _Buckets | None) -> Flip:
    n_a, n_b = int(pair.n_a[i]), int(pair.n_b[i])
    points_a, points_b = float(pair.mean_a[i]) * n_a, float(pair.mean_b[i]) * n_b
    if exchange.is_binary(pair):
        points_a, points_b = float(round(points_a)), float(round(points_b))
    classes = ("", "")
    if buckets is not None:
        classes = (BUCKETS[buckets.before[i]], BUCKETS[buckets.after[i]])
    return Flip(
        task=pair.alignment.common[i],
        task_name=_name(pair, i),
        baseline=(points_a, n_a),
        candidate=(points_b, n_b),
        change=float(pair.d[i]),
        p_better=p,
        p_class_change=None if buckets is None else float(buckets.p_change[i]),
        classes=classes,
    )


def _name(pair: Paired, i: int) -> str:
    """The readable id of a task; where the runs call it differently, that of the run first by name."""
    first, _ = exchange.upright(pair)
    return first.a.task_names[int(first.code_a[i])]

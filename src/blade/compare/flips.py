"""Count the tasks that flipped, how sure each is, and how many chance alone would flip."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade import stats
from blade.compare import exchange
from blade.compare.task_pairs import Paired, over_common
from blade.model import Churn, Flip, SureFlips, Transition
from blade.stats.intervals import Z95, special
from blade.stats.paired_changes import cell_size, law_of_sum

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

__all__ = ["churn", "flips", "sure_flips", "transitions"]

BUCKETS = ("always", "sometimes", "never")
SURE = 0.8  # of a bucket
_DIGITS = 9  # beyond, a difference is rounding and decides no order
ROUNDING = 1e-9


# ---- Buckets --------------------------------------------------------------------------------------


class _Buckets(NamedTuple):
    before: Ints  # by counts: code into BUCKETS
    after: Ints
    p_change: Floats


def transitions(pair: Paired) -> tuple[Transition, ...]:
    """Common tasks by their bucket in each run, all nine ways; nothing without a pass rate.

    Counts tell the bucket, posteriors how sure it is that the true one changed, or that it did not.
    """
    buckets = _buckets(pair)
    if buckets is None:
        return ()
    cell = buckets.before * 3 + buckets.after
    p_said = np.where(buckets.before == buckets.after, 1.0 - buckets.p_change, buckets.p_change)
    n = np.bincount(cell, minlength=9)
    sure = np.bincount(cell[p_said >= SURE - ROUNDING], minlength=9)
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
    codes: Ints = np.where(c == n, 0, np.where(c == 0, 2, 1))
    return codes


# ---- Flips ----------------------------------------------------------------------------------------


def flips(pair: Paired, most: int = 50) -> tuple[Flip, ...]:
    """The tasks that moved, surest first: by the posterior probability that they moved the way they did.

    Where nothing says how repeats vary there is no posterior, and the largest change comes first.
    """
    p = p_better(pair) if pair.n_a.size else None
    d = pair.d
    size = np.round(np.abs(d), _DIGITS)
    certainty = np.zeros(d.size) if p is None else np.round(np.where(d > 0, p, 1.0 - p), _DIGITS)
    places = np.flatnonzero(exchange.moved(pair))
    first, _ = exchange.upright(pair)
    listed = places[np.lexsort((first.code_a[places], -size[places], -certainty[places]))[:most]]
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
    null = _churn_of_counts(upright, seen) if exchange.is_binary(pair) else _churn_of_scores(upright, seen)
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


def _churn_of_counts(pair: Paired, seen: Floats) -> _Null:
    ways = exchange.ways(pair)
    size = np.abs(ways.d)
    changed = ways.over_tasks((size > exchange.ZERO).astype(np.float64))
    mean = ways.by_kind(size)
    beside = size - mean[ways.kind]
    # A kind that moves alike in every deal has a variance of exactly nothing.
    spread = ways.by_kind(np.where(np.abs(beside) > ROUNDING, beside, 0.0) ** 2)
    telling = spread > 0
    tasks = np.zeros(mean.size)
    tasks[ways.kind] = ways.tasks
    if not telling.any():
        return _unknown(seen, changed)
    if tasks[telling].sum() > exchange.FEW:
        return _normal_null(float(tasks @ mean), float(tasks @ spread), seen, changed)
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
    low = lowest + int(np.searchsorted(below, 0.025 + ROUNDING, "right"))
    high = lowest + int(np.searchsorted(below, 0.975 - ROUNDING, "left"))
    # Observed differences are put on the grid as the others are, so that ties are ties.
    observed = int(np.rint(seen / cell).sum()) - lowest
    p = min(1.0, float(law.probability[max(0, observed) :].sum()))
    return _Null(0.0, low * cell, high * cell, changed, p)


def _churn_of_scores(pair: Paired, seen: Floats) -> _Null:
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
        spread += float(variance[variance > ROUNDING * mean * mean].sum())
    if not spread:
        return _unknown(seen, changed)
    if not deals.is_joint:
        return _normal_null(float(totals.mean()), spread, seen, changed)
    low, high = np.quantile(totals, [0.025, 0.975])
    beyond = int(np.count_nonzero(totals >= float(seen.sum()) * (1 - ROUNDING)))
    p = (1 + beyond) / (1 + deals.n)
    return _Null(float(totals.mean()), float(low), float(high), changed, p)


def _normal_null(mean: float, variance: float, seen: Floats, changed: float) -> _Null:
    sd = math.sqrt(variance)
    p = math.erfc((float(seen.sum()) - mean) / (sd * math.sqrt(2))) / 2
    return _Null(mean, max(0.0, mean - Z95 * sd), mean + Z95 * sd, changed, p)


def _unknown(seen: Floats, changed: float) -> _Null:
    total = float(seen.sum())
    return _Null(total, total, total, changed, None)


LEVEL = 0.95  # at which a task is said to be better or worse
_REACH = NormalDist().inv_cdf(LEVEL)
_UNLIKELY = 1e-9


class Normal(NamedTuple):
    """Where the means of tasks lie, and how rows vary around them."""

    mean: float
    between: float  # variance of the tasks; 0: none is seen, and tasks are not drawn together
    within: float  # variance of the rows of a task

    def trust(self, n: Floats) -> Floats:
        """How much of a task's own mean is kept, the rest being the mean of all."""
        return self.between / (self.between + self.within / n) if self.between > 0 else np.ones(n.shape)


def p_better(pair: Paired) -> Floats | None:
    """P(the candidate is better) for every common task; None where no task says how repeats vary.

    The rates of both runs are drawn together by one prior, fitted to both: a Beta for scores of 0 and 1, else
    a normal one. So a task is called better by its own rows, and not because its run is better elsewhere.
    """
    upright, is_turned = exchange.upright(pair)
    prior = _prior(upright)
    if prior is None:
        return None
    p = _judged(upright, prior)
    return 1.0 - p if is_turned else p


def sure_flips(pair: Paired) -> SureFlips | None:
    """How many tasks moved up, or down, and are so with 95 %; and how many would if labels meant nothing.

    The latter deals the rollouts of each task anew between the runs and judges them by the same prior. None
    where no posterior can be given.
    """
    upright, is_turned = exchange.upright(pair)
    prior = _prior(upright)
    if prior is None:
        return None
    up, down = _sure(upright.d, _judged(upright, prior), exchange.moved(upright))
    null = _sure_of_scores(upright, prior) if isinstance(prior, _Marks) else _sure_of_counts(upright, prior)
    counts = SureFlips(int(up.sum()), int(down.sum()), *null)
    return SureFlips(counts.down, counts.up, counts.null_down, counts.null_up) if is_turned else counts


def _prior(pair: Paired) -> stats.BetaPrior | _Marks | None:
    return _beta(pair) if exchange.is_binary(pair) else _marks_of(pair)


def _judged(pair: Paired, prior: stats.BetaPrior | _Marks) -> Floats:
    """P(the candidate is better) for every task."""
    if isinstance(prior, _Marks):
        p: Floats = special().ndtr((prior.ahead + prior.slope * pair.d) / prior.spread)
        return p
    c_a, c_b = exchange.passes(pair)
    return stats.p_better(pair.n_a, c_a, prior, pair.n_b, c_b, prior)


def _sure(d: Floats, p: Floats, moved: Bools) -> tuple[Bools, Bools]:
    least = LEVEL - ROUNDING
    return moved & (d > 0) & (p >= least), moved & (d < 0) & (1 - p >= least)


# ---- Scores of 0 and 1 ----------------------------------------------------------------------------


def _beta(pair: Paired) -> stats.BetaPrior | None:
    return stats.fit_beta_binomial(
        np.concatenate([pair.n_a, pair.n_b]), np.concatenate(exchange.passes(pair))
    )


def _sure_of_counts(pair: Paired, prior: stats.BetaPrior) -> tuple[float, float]:
    ways = exchange.ways(pair).likely(_UNLIKELY)
    p = stats.p_better(ways.n_a, ways.c_a, prior, ways.n_b, ways.c_b, prior)
    up, down = _sure(ways.d, p, np.abs(ways.d) > exchange.ZERO)
    return ways.over_tasks(up.astype(np.float64)), ways.over_tasks(down.astype(np.float64))


# ---- Other scores ---------------------------------------------------------------------------------


class _Marks(NamedTuple):
    """Where the posterior of a task's difference lies: (ahead + slope · d) / spread, in normal units."""

    ahead: Floats  # of the candidate where both means are the same
    slope: Floats
    spread: Floats


def _sure_of_scores(pair: Paired, marks: _Marks) -> tuple[float, float]:
    top = np.maximum((_REACH * marks.spread - marks.ahead) / marks.slope - ROUNDING, exchange.ZERO)
    bottom = np.minimum((-_REACH * marks.spread - marks.ahead) / marks.slope + ROUNDING, -exchange.ZERO)
    up = down = 0
    deals = exchange.deals(pair)
    for tasks, d in deals.parts:
        up += int(np.count_nonzero(d >= top[tasks, None]))
        down += int(np.count_nonzero(d <= bottom[tasks, None]))
    return up / deals.n, down / deals.n


def _marks_of(pair: Paired) -> _Marks | None:
    prior = _normal_prior(pair)
    if prior is None:
        return None
    n_a, n_b = pair.n_a.astype(np.float64), pair.n_b.astype(np.float64)
    kept_a, kept_b = prior.trust(n_a), prior.trust(n_b)
    spread = np.sqrt(prior.within * (kept_a / n_a + kept_b / n_b))
    level = (n_a * pair.mean_a + n_b * pair.mean_b) / (n_a + n_b) - prior.mean
    slope = (kept_b * n_a + kept_a * n_b) / (n_a + n_b)
    return _Marks((kept_b - kept_a) * level, slope, spread)


def _normal_prior(pair: Paired) -> Normal | None:
    n, starts = np.concatenate([pair.n_a, pair.n_b]), np.concatenate(exchange.first_rows(pair))
    starts[pair.n_a.size :] += pair.a.judged.score.size
    components = stats.variance_components(np.concatenate([pair.a.judged.score, pair.b.judged.score]), starts, n)
    if components is None or components.within <= 0:
        return None
    return Normal(float((pair.mean_a + pair.mean_b).mean()) / 2, components.between, components.within)

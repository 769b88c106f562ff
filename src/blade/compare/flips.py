"""Count the tasks that flipped, how sure each is, and how many chance alone would flip."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from blade import stats
from blade.compare.task_pairs import ZERO, Paired, counts, passes, upright
from blade.model import Bools, Churn, Flip, Floats, Ints, SureFlips, Transition
from blade.stats.intervals import Z95, log_choose, special
from blade.stats.paired_changes import cell_size, law_of_sum

BUCKETS = ("always", "sometimes", "never")
SURE = 0.8  # of a bucket
LEVEL = 0.95  # at which a task is said to be better or worse
ROUNDING = 1e-9
FEW = 200  # tasks that can tell; with more, a sum over them is normal
FEWEST, MOST = 100, 2000  # deals drawn
_REACH = NormalDist().inv_cdf(LEVEL)
_UNLIKELY = 1e-9
_DIGITS = 9  # beyond, a difference is rounding and decides no order
_ROWS = 16_000_000  # dealt in all; with more tasks each deal says more, so fewer do
_CELLS = 1_000_000  # held at once


# ---- Buckets --------------------------------------------------------------------------------------


def transitions(pair: Paired) -> tuple[Transition, ...]:
    """Common tasks by their bucket in each run, all nine ways, and how sure posteriors are of that; nothing without a pass rate."""
    if (buckets := _buckets(pair)) is None:
        return ()
    before, after, p_change = buckets
    cell = before * 3 + after
    p_shown = np.where(before == after, 1.0 - p_change, p_change)
    n = np.bincount(cell, minlength=9)
    sure = np.bincount(cell[p_shown >= SURE - ROUNDING], minlength=9)
    return tuple(Transition(BUCKETS[code // 3], BUCKETS[code % 3], int(n[code]), int(sure[code])) for code in range(9))


def _buckets(pair: Paired) -> tuple[Ints, Ints, Floats] | None:
    """By counts the bucket of each task in either run, and the posterior probability that the true one changed."""
    if (passing := passes(pair)) is None:
        return None
    (n_a, c_a), (n_b, c_b) = (pair.n_a, passing[0]), (pair.n_b, passing[1])
    prior_a, prior_b = stats.fit_beta_binomial(n_a, c_a), stats.fit_beta_binomial(n_b, c_b)
    if prior_a is None or prior_b is None:
        return None
    alike = stats.class_probabilities(n_a, c_a, prior_a) * stats.class_probabilities(n_b, c_b, prior_b)
    before, after = (np.where(c == n, 0, np.where(c == 0, 2, 1)) for n, c in ((n_a, c_a), (n_b, c_b)))
    return before, after, np.clip(1.0 - alike.sum(0), 0.0, 1.0)


# ---- Flips ----------------------------------------------------------------------------------------


def flips(pair: Paired, most: int = 50) -> tuple[Flip, ...]:
    """The tasks that moved, surest first by the posterior that they moved that way; without a posterior the largest change first."""
    p, d = p_better(pair), pair.d
    size = np.round(np.abs(d), _DIGITS)
    certainty = np.zeros(d.size) if p is None else np.round(np.where(d > 0, p, 1.0 - p), _DIGITS)
    places = np.flatnonzero(pair.moved)
    first, _ = upright(pair)  # where the runs call a task differently, it has the name of the run first by name
    listed = places[np.lexsort((first.code_a[places], -size[places], -certainty[places]))[:most]].tolist()
    buckets = _buckets(pair) if listed else None
    points = [np.rint(mean * n) if pair.is_binary else mean * n for mean, n in ((pair.mean_a, pair.n_a), (pair.mean_b, pair.n_b))]
    return tuple(
        Flip(
            task=pair.alignment.common[i], task_name=first.a.task_names[int(first.code_a[i])],
            baseline=(float(points[0][i]), int(pair.n_a[i])),
            candidate=(float(points[1][i]), int(pair.n_b[i])), change=float(d[i]),
            p_better=None if p is None else float(p[i]),
            p_class_change=None if buckets is None else float(buckets[2][i]),
            classes=("", "") if buckets is None else (BUCKETS[buckets[0][i]], BUCKETS[buckets[1][i]]),
        ) for i in listed
    )


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
    d = np.where(pair.moved, pair.d, 0.0)
    up, down, seen = np.maximum(d, 0.0), np.maximum(-d, 0.0), np.abs(d)
    first, _ = upright(pair)
    null = _churn_of_counts(first, seen) if pair.is_binary else _churn_of_scores(first, seen)
    return Churn(
        gains=float(up.sum()) / n, losses=0.0 - float(down.sum()) / n,
        n_up=int(np.count_nonzero(up)), n_down=int(np.count_nonzero(down)),
        null_churn=null.mean / n, null_low=null.low / n, null_high=null.high / n, null_changed=null.changed, p=null.p,
    )  # fmt: skip


def _churn_of_counts(pair: Paired, seen: Floats) -> _Null:
    deals = ways(pair)
    size = np.abs(deals.d)
    changed = deals.over_tasks((size > ZERO).astype(np.float64))
    mean = deals.by_kind(size)
    beside = size - mean[deals.kind]
    # A kind that moves alike in every deal has a variance of exactly nothing.
    spread = deals.by_kind(np.where(np.abs(beside) > ROUNDING, beside, 0.0) ** 2)
    telling = spread > 0
    tasks = np.zeros(mean.size)
    tasks[deals.kind] = deals.tasks
    if tasks[telling].sum() > FEW or not telling.any():
        return _normal_null(float(tasks @ mean), float(tasks @ spread), seen, changed)
    return _exact(deals, telling, seen, changed)._replace(mean=float(tasks @ mean))


def _exact(deals: Ways, telling: Bools, seen: Floats, changed: float) -> _Null:
    """The law of the sum over tasks, on a grid that holds all differences or is fine beside them."""
    size = np.abs(deals.d)
    tells = telling[deals.kind]
    n_telling = int((deals.tasks * deals.chance)[tells].sum() + 0.5)
    rows = np.unique(np.concatenate([deals.n_a[size > 0], deals.n_b[size > 0]]))
    cell, _ = cell_size(np.ones(n_telling), rows.tolist())
    cells = np.rint(size / cell).astype(np.int64)
    terms: list[tuple[Ints, Floats]] = []
    for kind in np.flatnonzero(telling).tolist():
        of_kind = np.flatnonzero(deals.kind == kind)
        terms += [(cells[of_kind], deals.chance[of_kind])] * int(deals.tasks[of_kind[0]])
    law = law_of_sum(terms, 0)
    # What the other kinds add is the same in every deal.
    others = cells * deals.tasks * deals.chance
    lowest = law.lowest + round(float(others[~tells].sum()))
    below = np.cumsum(law.probability)
    low = lowest + int(np.searchsorted(below, 0.025 + ROUNDING, "right"))
    high = lowest + int(np.searchsorted(below, 0.975 - ROUNDING, "left"))
    # Observed differences are put on the grid as the others are, so that ties are ties.
    observed = int(np.rint(seen / cell).sum()) - lowest
    p = min(1.0, float(law.probability[max(0, observed) :].sum()))
    return _Null(0.0, low * cell, high * cell, changed, p)


def _churn_of_scores(pair: Paired, seen: Floats) -> _Null:
    dealt = deals(pair)
    totals = np.zeros(dealt.n)
    spread = changed = 0.0
    rounding = ZERO * np.maximum(1.0, np.abs(pair.mean_a) + np.abs(pair.mean_b))
    for tasks, d in dealt.parts:
        size = np.abs(d)
        totals += size.sum(0)
        changed += int(np.count_nonzero(size > rounding[tasks, None])) / dealt.n
        mean = size.mean(1)
        variance = np.einsum("ij,ij->i", size, size) / dealt.n - mean * mean
        spread += float(variance[variance > ROUNDING * mean * mean].sum())
    if not dealt.is_joint or not spread:
        return _normal_null(float(totals.mean()), spread, seen, changed)
    low, high = np.quantile(totals, [0.025, 0.975])
    beyond = int(np.count_nonzero(totals >= float(seen.sum()) * (1 - ROUNDING)))
    return _Null(float(totals.mean()), float(low), float(high), changed, (1 + beyond) / (1 + dealt.n))


def _normal_null(mean: float, variance: float, seen: Floats, changed: float) -> _Null:
    """The normal law of this mean and variance; without a variance every deal has what was seen."""
    total, sd = float(seen.sum()), math.sqrt(variance)
    if not sd:
        return _Null(total, total, total, changed, None)
    p = math.erfc((total - mean) / (sd * math.sqrt(2))) / 2
    return _Null(mean, max(0.0, mean - Z95 * sd), mean + Z95 * sd, changed, p)


# ---- Surely better, or worse ----------------------------------------------------------------------


def p_better(pair: Paired) -> Floats | None:
    """P(the candidate is better) for every common task; None where no task says how repeats vary.

    The rates of both runs are drawn together by one prior, fitted to both: a Beta for scores of 0 and 1, else
    a normal one. So a task is called better by its own rows, and not because its run is better elsewhere.
    """
    first, is_turned = upright(pair)
    prior = _prior(first)
    p = None if prior is None else _posterior(first, prior)
    return p if p is None or not is_turned else 1.0 - p


def sure_flips(pair: Paired) -> SureFlips | None:
    """How many tasks moved up, or down, and are so with 95 %; and how many would if labels meant nothing.

    The latter deals the rollouts of each task anew between the runs and judges them by the same prior. None
    where no posterior can be given.
    """
    first, is_turned = upright(pair)
    prior = _prior(first)
    if prior is None:
        return None
    up, down = _sure(first.d, _posterior(first, prior), first.moved)
    null_up, null_down = _sure_of_scores(first, prior) if isinstance(prior, _Marks) else _sure_of_counts(first, prior)
    n_up, n_down = int(up.sum()), int(down.sum())
    return SureFlips(n_down, n_up, null_down, null_up) if is_turned else SureFlips(n_up, n_down, null_up, null_down)


def _points(pair: Paired) -> tuple[Ints, Ints]:
    """Points of each task where every row scores 0 or 1."""
    c_a, c_b = np.rint(pair.mean_a * pair.n_a), np.rint(pair.mean_b * pair.n_b)
    return c_a.astype(np.int64), c_b.astype(np.int64)


def _prior(pair: Paired) -> stats.BetaPrior | _Marks | None:
    """Fitted to both runs together: of scores of 0 and 1 a Beta, else a normal one, with what follows for each task."""
    n = np.concatenate([pair.n_a, pair.n_b])
    if pair.is_binary:
        return stats.fit_beta_binomial(n, np.concatenate(_points(pair)))
    starts = np.concatenate(_first_rows(pair))
    starts[pair.n_a.size :] += pair.a.judged.score.size
    parts = stats.variance_components(np.concatenate([pair.a.judged.score, pair.b.judged.score]), starts, n)
    if parts is None or parts.within <= 0:
        return None
    n_a, n_b = pair.n_a.astype(np.float64), pair.n_b.astype(np.float64)
    # How much of a task's own mean counts, the rest being the mean of all; all of it where no tasks are seen to differ.
    own_a, own_b = (
        parts.between / (parts.between + parts.within / n) if parts.between > 0 else np.ones(n.shape) for n in (n_a, n_b)
    )
    spread = np.sqrt(parts.within * (own_a / n_a + own_b / n_b))
    level = (n_a * pair.mean_a + n_b * pair.mean_b) / (n_a + n_b) - float((pair.mean_a + pair.mean_b).mean()) / 2
    return _Marks((own_b - own_a) * level, (own_b * n_a + own_a * n_b) / (n_a + n_b), spread)


def _posterior(pair: Paired, prior: stats.BetaPrior | _Marks) -> Floats:
    """P(the candidate is better) for every task."""
    if isinstance(prior, _Marks):
        p: Floats = special().ndtr((prior.ahead + prior.slope * pair.d) / prior.spread)
        return p
    c_a, c_b = _points(pair)
    return stats.p_better(pair.n_a, c_a, prior, pair.n_b, c_b, prior)


def _sure(d: Floats, p: Floats, moved: Bools) -> tuple[Bools, Bools]:
    least = LEVEL - ROUNDING
    return moved & (d > 0) & (p >= least), moved & (d < 0) & (1 - p >= least)


def _sure_of_counts(pair: Paired, prior: stats.BetaPrior) -> tuple[float, float]:
    all_ways = ways(pair)
    likely = Ways._make(column[all_ways.chance >= _UNLIKELY] for column in all_ways)
    p = stats.p_better(likely.n_a, likely.c_a, prior, likely.n_b, likely.c_b, prior)
    up, down = _sure(likely.d, p, np.abs(likely.d) > ZERO)
    return likely.over_tasks(up.astype(np.float64)), likely.over_tasks(down.astype(np.float64))


class _Marks(NamedTuple):
    """Where the posterior of a task's difference lies: (ahead + slope · d) / spread, in normal units."""

    ahead: Floats  # of the candidate where both means are the same
    slope: Floats
    spread: Floats


def _sure_of_scores(pair: Paired, marks: _Marks) -> tuple[float, float]:
    top = np.maximum((_REACH * marks.spread - marks.ahead) / marks.slope - ROUNDING, ZERO)
    bottom = np.minimum((-_REACH * marks.spread - marks.ahead) / marks.slope + ROUNDING, -ZERO)
    up = down = 0
    dealt = deals(pair)
    for tasks, d in dealt.parts:
        up += int(np.count_nonzero(d >= top[tasks, None]))
        down += int(np.count_nonzero(d <= bottom[tasks, None]))
    return up / dealt.n, down / dealt.n


# ---- Rollouts dealt anew: scores of 0 and 1, every way ----------------------------------------------


class Ways(NamedTuple):
    """The ways in which the passes of a task can fall to its rows in two runs, one entry a way."""

    kind: Ints  # tasks with the same rows and passes are of one kind
    tasks: Ints  # of that kind
    n_a: Ints
    c_a: Ints
    n_b: Ints
    c_b: Ints
    chance: Floats  # hypergeometric; sums to 1 over a kind

    @property
    def d(self) -> Floats:
        change: Floats = self.c_b / self.n_b - self.c_a / self.n_a
        return change

    def by_kind(self, values: Floats) -> Floats:
        """The mean of `values` over the ways of each kind."""
        means: Floats = np.bincount(self.kind, self.chance * values).astype(np.float64)
        return means

    def over_tasks(self, values: Floats) -> float:
        """The sum over all tasks of their mean `values`."""
        return float((self.tasks * self.chance * values).sum())


def ways(pair: Paired) -> Ways:
    """Once for each distinct (rows, rows, passes), so that many tasks cost what their kinds cost."""
    c_a, c_b = _points(pair)
    of_b, of_total = int(pair.n_b.max(initial=0)) + 1, int((c_a + c_b).max(initial=0)) + 1
    kinds, tasks = np.unique((pair.n_a * of_b + pair.n_b) * of_total + c_a + c_b, return_counts=True)
    n_a, n_b, total = kinds // of_total // of_b, kinds // of_total % of_b, kinds % of_total
    lowest = np.maximum(0, total - n_a)
    size = np.minimum(n_b, total) - lowest + 1
    kind = np.repeat(np.arange(size.size), size)
    to_b = np.arange(kind.size) - (np.cumsum(size) - size)[kind] + lowest[kind]
    to_a = total[kind] - to_b
    logs = log_choose(n_a[kind], to_a) + log_choose(n_b[kind], to_b)
    chance = np.exp(logs - log_choose(n_a + n_b, total)[kind])
    chance /= np.bincount(kind, chance)[kind]
    return Ways(kind, tasks[kind], n_a[kind], to_a, n_b[kind], to_b, chance)


# ---- Other scores: some deals, drawn ----------------------------------------------------------------


class Deals(NamedTuple):
    """Rollouts dealt anew, so many times: some tasks and, in columns, their differences in every deal."""

    n: int
    is_joint: bool  # a column is a deal of all tasks, independent of the others; else only tasks are
    parts: Iterator[tuple[Ints, Floats]]


def deals(pair: Paired) -> Deals:
    """Few tasks are dealt afresh each time; of many only their means and variances over deals are asked."""
    groups = list(_by_size(pair))  # without tasks whose rows all score alike: they cannot move
    n_tasks, n_rows = sum(tasks.size for tasks, _ in groups), sum(rows.size for _, rows in groups)
    n = int(np.clip(_ROWS // max(1, n_rows), FEWEST, MOST))
    is_joint = n_tasks <= FEW
    rng = stats.seeded_rng("exchange", pair.a.run, pair.b.run)

    def parts() -> Iterator[tuple[Ints, Floats]]:
        for tasks, rows in groups:
            n_a, n_b = int(pair.n_a[tasks[0]]), int(pair.n_b[tasks[0]])
            split = np.repeat([-1.0 / n_a, 1.0 / n_b], [n_a, n_b])  # what each row of a task adds to its difference
            if is_joint:
                for place in range(tasks.size):
                    shuffled = rng.permuted(np.tile(rows[place], (n, 1)), axis=1)
                    yield tasks[place : place + 1], (shuffled @ split)[None, :]
                continue
            # every task shuffled by itself and then split as the others are: no two tasks err together
            splits = rng.permuted(np.tile(split, (n, 1)), axis=1).T
            step = max(1, _CELLS // n)
            for start in range(0, tasks.size, step):
                yield tasks[start : start + step], rng.permuted(rows[start : start + step], axis=1) @ splits

    return Deals(n, is_joint, parts())


def _by_size(pair: Paired) -> Iterator[tuple[Ints, Floats]]:
    """Tasks with the same rows in both runs, and their scores, a task a line."""
    wide = int(pair.n_b.max(initial=0)) + 1
    sizes, place = np.unique(pair.n_a * wide + pair.n_b, return_inverse=True)
    order = np.lexsort((pair.code_a, place))
    ends = np.cumsum(np.bincount(place, minlength=sizes.size)).tolist()
    first_a, first_b = _first_rows(pair)
    for code, start, end in zip(sizes.tolist(), [0, *ends[:-1]], ends, strict=True):
        tasks = order[start:end]
        of_a = first_a[tasks, None] + np.arange(code // wide)
        of_b = first_b[tasks, None] + np.arange(code % wide)
        rows = np.hstack([pair.a.judged.score[of_a], pair.b.judged.score[of_b]])
        lowest = rows.min(1)
        telling = rows.max(1) > lowest
        if telling.any():
            # Differences do not change with the level, and near 0 they round least.
            yield tasks[telling], rows[telling] - lowest[telling, None]


def _first_rows(pair: Paired) -> list[Ints]:
    """Where the rows of each common task begin in its runs: rows are in the order of tasks."""
    return [(np.cumsum(counts(side)) - counts(side))[codes] for side, codes, _ in pair.runs]

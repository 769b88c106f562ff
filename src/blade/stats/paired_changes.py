"""Compute paired changes with interval and p, on new tasks and on these, p of two groups, many p adjusted, the exact laws behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from blade.model import Bools, Floats, Ints
from blade.stats.intervals import log_hypergeometric, special, t_quantile

CMH, EXCHANGE = "Cochran-Mantel-Haenszel", "exchange of rows within tasks"
LOPSIDED, OFTEN = 4, 0.1  # times as many rows in one run, on so many tasks: then differences are skewed
_EXACT_WAYS = 4000  # ways to deal the rows of all tasks, up to which an exact law is used for that
_MOST_WAYS = 20_000  # the same where few tasks can tell; beyond, each has so many rows that its sum is normal
_FACTORIALS = 1000  # rows up to which chances are quotients of whole numbers
ENOUGH = 25  # tasks that differ, from which a t or normal law holds; below, exact laws
# How far two tasks may differ that were not seen; `make calibration` measures what it is worth.
TYPICAL = 1.25  # times the size of the differences that were seen
UNSEEN = 6  # over the number of tasks
LEAST = 6  # tasks that differ, below which no flipping of signs reaches 5 %
MANY_TASKS = 50  # below, and where hardly a task differs, a task that was not seen may change altogether
_ZERO = 1e-12


class Change(NamedTuple):
    """A change from baseline to candidate."""

    estimate: float
    se: float
    df: float
    low: float
    high: float
    p: float | None
    method: str

    def interval(self, level: float) -> tuple[float, float]:
        """The interval at another level, around the same centre."""
        half = t_quantile(0.5 + level / 2, self.df) * self.se
        centre = (self.low + self.high) / 2
        return centre - half, centre + half


def mean_change(d: ArrayLike, step: float = 1.0) -> Change | None:
    """The mean of paired task differences as a guess on new tasks like these; None below two tasks.

    Where few tasks differ, p comes from flipping signs, which is exact if gains and losses are alike, and the
    interval from two further tasks, one better and one worse (Bonett & Price 2012 for one row a task): tasks
    that happen not to differ do not prove that none would. They differ by `step`, by somewhat more than tasks
    that do differ, or by what so few tasks could have missed, whichever is most.
    """
    x = np.asarray(d, np.float64)
    if x.size < 2 or not np.isfinite(x).all():
        return None
    estimate, differing = _sum(x) / x.size, x[np.abs(x) > _ZERO]
    if differing.size >= ENOUGH:
        se = float(x.std(ddof=1)) / math.sqrt(x.size)
        return student(estimate, estimate, se, x.size - 1, "paired t")
    unseen = 1.0 if differing.size < LEAST and x.size < MANY_TASKS else min(1.0, UNSEEN / x.size)
    typical = math.sqrt(_sum(differing * differing) / differing.size) if differing.size else 0.0
    far = max(step, TYPICAL * typical, unseen)
    n = x.size + 2
    centre = estimate * x.size / n
    spread = _sum(x * x) + 2 * far * far - n * centre * centre
    se = math.sqrt(max(spread, 0.0) / (n - 1) / n)
    return student(estimate, centre, se, n - 1, "sign flips")._replace(p=sign_flips(x))


def _sum(x: Floats) -> float:
    """Exact, and so the same in any order; zeros, which most tasks are, cost nothing."""
    return math.fsum(x[x != 0].tolist())


def two_means(x: ArrayLike, y: ArrayLike) -> Change | None:
    """mean(y) - mean(x) of two groups of task values (Welch); None below two values or without spread."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if min(a.size, b.size) < 2 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return None
    va, vb = float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size
    if va + vb <= 0:
        return None
    df = (va + vb) ** 2 / (va**2 / (a.size - 1) + vb**2 / (b.size - 1))
    estimate = float(b.mean() - a.mean())
    return student(estimate, estimate, math.sqrt(va + vb), df, "Welch t")


def student(estimate: float, centre: float, se: float, df: float, method: str) -> Change:
    """A change with Student's 95 % interval around `centre`, and his p that the estimate is 0."""
    if se <= 0:
        return Change(estimate, 0.0, df, estimate, estimate, float(abs(estimate) <= _ZERO), method)
    half = t_quantile(0.975, df) * se
    p = float(2 * special().stdtr(df, -abs(estimate) / se))
    return Change(estimate, se, df, centre - half, centre + half, p, method)


def sign_flips(d: ArrayLike) -> float:
    """Two-sided p of the sum if each difference may have the other sign: exact for few or few values, else normal; 1 if none differs."""
    x = np.asarray(d, np.float64)
    x = x[np.abs(x) > _ZERO]
    if not x.size:
        return 1.0
    if x.size > 4 * ENOUGH:
        return math.erfc(abs(_sum(x)) / math.sqrt(2 * _sum(x * x)))
    size, is_exact = cell_size(x, _measures(x))
    cells = np.rint(x / size).astype(np.int64)
    half = np.full(2, 0.5)
    law = law_of_sum(
        [(np.array([-c, c]), half) for c in np.abs(cells).tolist()], 0 if is_exact else math.isqrt(x.size) + 1
    )
    seen = abs(int(cells.sum()))
    return min(1.0, 2 * law.at_least(seen)) if seen else 1.0


def _measures(x: Floats) -> list[int]:
    """Whole numbers of which all values are fractions, if small ones do."""
    for whole in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 30, 32, 40, 48, 60, 64, 120, 240, 720):
        if np.abs(x * whole - np.rint(x * whole)).max() < 1e-9:
            return [whole]
    return []


# ---- On these tasks ----------------------------------------------------------------------------


class Rows(NamedTuple):
    """What rows of the same tasks say in two runs: one entry a task."""

    n_a: Ints
    n_b: Ints
    sum_a: Floats  # of the scores
    sum_b: Floats
    squares_a: Floats  # of the squared scores
    squares_b: Floats
    is_binary: bool

    def of(self, tasks: Bools) -> Rows:
        """The rows of some of the tasks."""
        return Rows._make([*(column[tasks] for column in self[:6]), self.is_binary])


def within_change(rows: Rows, step: float = 1.0) -> Change | None:
    """The mean change on exactly these tasks, where only the repeats are chance.

    The test exchanges the rows of a task between the runs: Cochran, Mantel and Haenszel's with every task
    weighing the same, or its exact law where few tasks can tell. The interval takes the spread within each
    run; tasks with one row in a run have none there, and the spread of their differences stands for it.
    """
    n_a, n_b = rows.n_a.astype(np.float64), rows.n_b.astype(np.float64)
    if not n_a.size:
        return None
    d = rows.sum_b / n_b - rows.sum_a / n_a
    exchange = _exchange_variance(rows)
    estimate = _sum(d) / d.size
    telling = exchange > _ZERO
    m = int(np.count_nonzero(telling))
    variance = _within_variance(rows, n_a, n_b, d, exchange)
    z = _sum(d) / math.sqrt(_sum(exchange)) if m else 0.0
    p = math.erfc(abs(z) / math.sqrt(2))
    if m >= ENOUGH:
        se = math.sqrt(variance) / d.size
        result = student(estimate, estimate, se, m - 1, CMH if rows.is_binary else EXCHANGE)
    else:
        se = math.sqrt(variance + 2 * step * step) / d.size
        result = student(estimate, estimate, se, d.size + 1, EXCHANGE)
    most = _MOST_WAYS if m < ENOUGH else _EXACT_WAYS if is_lopsided(rows) else 0
    ways = int((np.minimum(rows.n_a, rows.n_b)[telling] + 1).sum())  # to deal the rows of each task, over all tasks
    if rows.is_binary and ways <= most:
        # with many tasks the exact law is nearly smooth, and half of the point that was seen lies beyond it
        exact = _exact_exchange(rows, telling, halved=m >= ENOUGH)
        return result._replace(p=exact, method="exact stratified")
    n_rows = (rows.n_a + rows.n_b)[telling]
    is_normal = bool(m and n_rows.min() >= 8 and n_rows.sum() >= 40)  # sums of exchanges of so many rows
    if m < ENOUGH and not is_normal:
        return result._replace(p=sign_flips(d), method="sign flips")
    return result._replace(p=p)


def is_lopsided(rows: Rows) -> bool:
    """Have the runs so different numbers of rows, on more than a few tasks, that differences are skewed."""
    few, many = np.minimum(rows.n_a, rows.n_b), np.maximum(rows.n_a, rows.n_b)
    return bool(few.size and (many >= LOPSIDED * few).mean() >= OFTEN)


def exchange_se(rows: Rows) -> float:
    """Standard error of the mean change if the rows of each task were dealt to the runs anew."""
    variance = _exchange_variance(rows)
    return math.sqrt(_sum(variance)) / variance.size if variance.size else 0.0


def _spread(n: Ints, total: Floats, squares: Floats) -> Floats:
    """Variance of the rows of every task; 0 of one row."""
    variance: Floats = np.maximum(squares - total * total / n, 0.0) / np.maximum(n - 1, 1)
    return variance


def _exchange_variance(rows: Rows) -> Floats:
    """Of a task's difference when its rows are dealt to the runs anew."""
    squares = rows.squares_a + rows.squares_b
    spread = _spread(rows.n_a + rows.n_b, rows.sum_a + rows.sum_b, squares)
    result: Floats = np.where(spread > 1e-12 * np.maximum(squares, 1e-300), spread * (1 / rows.n_a + 1 / rows.n_b), 0.0)
    return result


def fixed_task_variance(rows: Rows) -> Floats:
    """Of the difference of every task by chance alone, as the rows of each run vary; 0 where they do not."""
    of_a, of_b = _spread(rows.n_a, rows.sum_a, rows.squares_a), _spread(rows.n_b, rows.sum_b, rows.squares_b)
    return of_a / rows.n_a + of_b / rows.n_b


def _within_variance(rows: Rows, n_a: Floats, n_b: Floats, d: Floats, exchange: Floats) -> float:
    """Of the sum of the differences, by chance alone."""
    own = fixed_task_variance(rows)
    # all rows fail in one run and pass in the other: that no row strayed is luck too, so half a row does
    turned = (own <= _ZERO) & (exchange > _ZERO)
    strayed = sum(0.5 * (n + 0.5) / (n + 1) ** 2 / n for n in (n_a, n_b))
    own = np.where(turned, strayed, own)
    single = (n_a == 1) | (n_b == 1)
    known = _sum(own[~single])
    if not single.any():
        return known
    apart = d[single] - d[single].mean()
    around = _sum(apart * apart) * apart.size / max(apart.size - 1, 1)
    dealt = _sum(exchange[single])
    is_single = bool((n_a[single] == n_b[single]).all()) and apart.size > 1
    return known + (min(dealt, around) if is_single else dealt)


def _exact_exchange(rows: Rows, telling: Bools, halved: bool = False) -> float:
    """Two-sided exact p: the smaller tail of the sum of differences, doubled; mid-p if `halved`."""
    if not telling.any():
        return 1.0
    n_a, n_b = rows.n_a[telling], rows.n_b[telling]
    c_a, c_b = np.rint(rows.sum_a[telling]), np.rint(rows.sum_b[telling])
    d = c_b / n_b - c_a / n_a
    reach = np.full(n_a.size, 2.0)
    size, is_exact = cell_size(reach, np.unique(np.concatenate([n_a, n_b])).tolist())
    terms = []
    seen = 0
    for a, b, total, change in zip(n_a.tolist(), n_b.tolist(), (c_a + c_b).tolist(), d.tolist(), strict=True):
        drawn, chances = _hypergeometric(int(a), int(b), int(total))
        terms.append((np.rint((drawn / b - (total - drawn) / a) / size).astype(np.int64), chances))
        seen += round(change / size)
    law = law_of_sum(terms, 0 if is_exact else math.isqrt(n_a.size) + 1)
    above, below = law.at_least(seen), law.at_most(seen)
    point = max(0.0, above + below - 1.0) if halved else 0.0  # which both tails hold
    return min(1.0, 2 * (min(above, below) - point / 2))


def _hypergeometric(a: int, b: int, total: int) -> tuple[Ints, Floats]:
    """How many of `total` passes fall to the second of two runs with `a` and `b` rows."""
    if a + b > _FACTORIALS:
        drawn, logs = log_hypergeometric(b, a, total)
        return drawn, np.exp(logs)
    drawn = np.arange(max(0, total - a), min(b, total) + 1)
    ways = [math.comb(b, x) * math.comb(a, total - x) for x in drawn.tolist()]
    whole = math.comb(a + b, total)
    return drawn, np.array([way / whole for way in ways])


# ---- No change, one row a task, two groups, many comparisons --------------------------------------


def tost(estimate: float, se: float, df: float, margin: float) -> float:
    """p that the change is not within ±margin (two one-sided t tests, Schuirmann 1987)."""
    if se <= 0:
        return 0.0 if abs(estimate) < margin else 1.0
    tail = special().stdtr
    return float(max(tail(df, -(estimate + margin) / se), tail(df, (estimate - margin) / se)))


def mcnemar(b: int, c: int) -> float:
    """Exact two-sided p of discordant counts (McNemar 1947)."""
    low, n = min(b, c), b + c
    if n > _FACTORIALS:
        return min(1.0, 2 * float(special().bdtr(low, n, 0.5)))
    return min(1.0, 2 * math.fsum(math.comb(n, x) * 0.5**n for x in range(low + 1)))


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



_EXACT_CELLS = 1 << 17  # up to which a common measure is kept
_CELLS = 1 << 14  # of the grid on which sums are kept where their values have no common measure


class Law(NamedTuple):
    """Probabilities of lowest, lowest + 1, ... cells of a grid."""

    lowest: int
    probability: Floats
    slack: int  # cells by which rounding to the grid may have moved a sum

    def at_least(self, cell: int) -> float:
        """P(sum >= cell), ties included."""
        return min(1.0, float(self.probability[max(0, cell - self.slack - self.lowest) :].sum()))

    def at_most(self, cell: int) -> float:
        return min(1.0, float(self.probability[: max(0, cell + self.slack - self.lowest + 1)].sum()))


def cell_size(values: Floats, measures: Sequence[int]) -> tuple[float, bool]:
    """The grid for sums of `values`, multiples of 1/m for m in `measures`; whether it is exact."""
    reach = float(np.abs(values).sum())
    whole = math.lcm(*measures) if measures else 0
    if whole > 0 and reach * whole <= _EXACT_CELLS:
        return 1.0 / whole, True
    return max(reach, 1e-300) / _CELLS, False


def law_of_sum(terms: Sequence[tuple[Ints, Floats]], slack: int) -> Law:
    """The law of a sum of independent terms, each given as cells and their probabilities."""
    lowest, law = 0, np.ones(1)
    for cells, probabilities in terms:
        first, last = int(cells.min()), int(cells.max())
        wider = np.zeros(law.size + last - first)
        for cell, probability in zip(cells.tolist(), probabilities.tolist(), strict=True):
            i = cell - first
            wider[i : i + law.size] += probability * law
        lowest, law = lowest + first, wider
    return Law(lowest, law, slack)

"""Deal the rollouts of each task anew between two runs: what chance alone would show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from blade import stats
from blade.compare.task_pairs import Paired, counts
from blade.stats.intervals import special

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints, Side

ZERO = 1e-12  # of the size of the scores: below it a difference is rounding
FEW = 200  # tasks that can tell; with more, a sum over them is normal
FEWEST, MOST = 100, 2000  # deals drawn
_ROWS = 16_000_000  # dealt in all; with more tasks each deal says more, so fewer do
_CELLS = 1_000_000  # held at once


def upright(pair: Paired) -> tuple[Paired, bool]:
    """The pair with its runs in the order of their names, and whether that turned it.

    What is computed of an upright pair, and turned back, is the same to the last digit whichever run is
    called the baseline.
    """
    if _order(pair.a, pair.b):
        return pair, False
    return turned(pair), True


def turned(pair: Paired) -> Paired:
    """The pair with its roles exchanged; the alignment stays as it was told."""
    back = (pair.code_b, pair.code_a, pair.n_b, pair.n_a, pair.mean_b, pair.mean_a)
    return Paired(pair.b, pair.a, pair.alignment, *back)


def _order(a: Side, b: Side) -> bool:
    if a.run != b.run:
        return a.run < b.run
    return a.judged.score.tobytes() <= b.judged.score.tobytes()


def is_binary(pair: Paired) -> bool:
    return pair.a.is_binary and pair.b.is_binary


def passes(pair: Paired) -> tuple[Ints, Ints]:
    """Points of each task where every row scores 0 or 1."""
    c_a, c_b = np.rint(pair.mean_a * pair.n_a), np.rint(pair.mean_b * pair.n_b)
    return c_a.astype(np.int64), c_b.astype(np.int64)


def moved(pair: Paired) -> Bools:
    """Which tasks differ by more than rounding."""
    differs: Bools = np.abs(pair.d) > ZERO * np.maximum(1.0, np.abs(pair.mean_a) + np.abs(pair.mean_b))
    return differs


# ---- Scores of 0 and 1: every way to deal -----------------------------------------------------------


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

    def likely(self, least: float) -> Ways:
        """Only the ways with a chance of at least that."""
        kind, tasks, n_a, c_a, n_b, c_b = (column[self.chance >= least] for column in self[:6])
        return Ways(kind, tasks, n_a, c_a, n_b, c_b, self.chance[self.chance >= least])

    def over_tasks(self, values: Floats) -> float:
        """The sum over all tasks of their mean `values`."""
        return float((self.tasks * self.chance * values).sum())


def ways(pair: Paired) -> Ways:
    """Once for each distinct (rows, rows, passes), so that many tasks cost what their kinds cost."""
    c_a, c_b = passes(pair)
    n_a, n_b, total, tasks = _kinds(pair.n_a, pair.n_b, c_a + c_b)
    lowest = np.maximum(0, total - n_a)
    size = np.minimum(n_b, total) - lowest + 1
    kind = np.repeat(np.arange(size.size), size)
    to_b = np.arange(kind.size) - (np.cumsum(size) - size)[kind] + lowest[kind]
    to_a = total[kind] - to_b
    log = special().gammaln

    def log_choose(n: Ints, c: Ints) -> Any:
        return log(n + 1.0) - log(c + 1.0) - log(n - c + 1.0)

    logs = log_choose(n_a[kind], to_a) + log_choose(n_b[kind], to_b)
    chance = np.exp(logs - log_choose(n_a + n_b, total)[kind])
    chance /= np.bincount(kind, chance)[kind]
    return Ways(kind, tasks[kind], n_a[kind], to_a, n_b[kind], to_b, chance)


def _kinds(n_a: Ints, n_b: Ints, total: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Distinct (rows, rows, passes), and how many tasks have each."""
    of_b, of_total = int(n_b.max(initial=0)) + 1, int(total.max(initial=0)) + 1
    kinds, tasks = np.unique((n_a * of_b + n_b) * of_total + total, return_counts=True)
    rows = kinds // of_total
    return rows // of_b, rows % of_b, kinds % of_total, tasks


# ---- Other scores: some deals, drawn ----------------------------------------------------------------


class Deals(NamedTuple):
    """Rollouts dealt anew, so many times: some tasks and, in columns, their differences in every deal."""

    n: int
    n_tasks: int  # that are in it: a task whose rows all score alike cannot move
    is_joint: bool  # a column is a deal of all tasks, independent of the others; else only tasks are
    parts: Iterator[tuple[Ints, Floats]]


def deals(pair: Paired) -> Deals:
    """Few tasks are dealt afresh each time; of many only their means and variances over deals are asked."""
    groups = list(_by_size(pair))
    n_tasks, n_rows = sum(tasks.size for tasks, _ in groups), sum(rows.size for _, rows in groups)
    n = int(np.clip(_ROWS // max(1, n_rows), FEWEST, MOST))
    is_joint = n_tasks <= FEW
    rng = stats.seeded_rng("exchange", pair.a.run, pair.b.run)
    dealt = _afresh if is_joint else _alike
    parts = (part for tasks, rows in groups for part in dealt(tasks, rows, _split(pair, tasks), n, rng))
    return Deals(n, n_tasks, is_joint, parts)


def _split(pair: Paired, tasks: Ints) -> Floats:
    """What each row of a task adds to its difference."""
    n_a, n_b = int(pair.n_a[tasks[0]]), int(pair.n_b[tasks[0]])
    return np.repeat([-1.0 / n_a, 1.0 / n_b], [n_a, n_b])


def _afresh(
    tasks: Ints, rows: Floats, split: Floats, n: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Floats]]:
    for place in range(tasks.size):
        shuffled = rng.permuted(np.tile(rows[place], (n, 1)), axis=1)
        yield tasks[place : place + 1], (shuffled @ split)[None, :]


def _alike(
    tasks: Ints, rows: Floats, split: Floats, n: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Floats]]:
    """Every task shuffled by itself and then split as the others are: no two tasks err together."""
    splits = rng.permuted(np.tile(split, (n, 1)), axis=1).T
    step = max(1, _CELLS // n)
    for start in range(0, tasks.size, step):
        shuffled = rng.permuted(rows[start : start + step], axis=1)
        yield tasks[start : start + step], shuffled @ splits


def _by_size(pair: Paired) -> Iterator[tuple[Ints, Floats]]:
    """Tasks with the same rows in both runs, and their scores, a task a line."""
    wide = int(pair.n_b.max(initial=0)) + 1
    sizes, place = np.unique(pair.n_a * wide + pair.n_b, return_inverse=True)
    order = np.lexsort((pair.code_a, place))
    ends = np.cumsum(np.bincount(place, minlength=sizes.size)).tolist()
    first_a, first_b = first_rows(pair)
    for code, start, end in zip(sizes.tolist(), [0, *ends[:-1]], ends, strict=True):
        tasks = order[start:end]
        at_a = first_a[tasks, None] + np.arange(code // wide)
        at_b = first_b[tasks, None] + np.arange(code % wide)
        rows = np.hstack([pair.a.judged.score[at_a], pair.b.judged.score[at_b]])
        lowest = rows.min(1)
        telling = rows.max(1) > lowest
        if telling.any():
            # Differences do not change with the level, and near 0 they round least.
            yield tasks[telling], rows[telling] - lowest[telling, None]


def first_rows(pair: Paired) -> tuple[Ints, Ints]:
    """Where the rows of each common task begin in its runs: rows are in the order of tasks."""
    n_a, n_b = counts(pair.a), counts(pair.b)
    return (np.cumsum(n_a) - n_a)[pair.code_a], (np.cumsum(n_b) - n_b)[pair.code_b]

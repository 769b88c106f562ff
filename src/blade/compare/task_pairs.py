"""Pair the tasks of two runs with what each scored on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blade import stats
from blade.model import Alignment, Bools, Floats, Ints, Side

ZERO = 1e-12  # of the size of the scores: below it a difference is rounding
_FEW = 25  # tasks, below which an interval allows for two that were not seen


@dataclass(frozen=True)
class Paired:
    """Two runs over the tasks they share; the arrays below have one entry for each common task."""

    a: Side  # the baseline
    b: Side  # the candidate
    alignment: Alignment
    code_a: Ints  # of the task in each run
    code_b: Ints
    n_a: Ints  # counted rows
    n_b: Ints
    mean_a: Floats  # of the score
    mean_b: Floats

    @property
    def d(self) -> Floats:
        """What each task changed by."""
        return self.mean_b - self.mean_a

    @property
    def step(self) -> float:
        """What one rollout that goes the other way changes its task by, on average."""
        return float((1 / self.n_a + 1 / self.n_b).mean() / 2) if self.n_a.size else 1.0

    @property
    def runs(self) -> tuple[tuple[Side, Ints, Ints], tuple[Side, Ints, Ints]]:
        """Of each run the codes of the common tasks and their rows."""
        return (self.a, self.code_a, self.n_a), (self.b, self.code_b, self.n_b)

    @property
    def is_binary(self) -> bool:
        return self.a.is_binary and self.b.is_binary

    @property
    def is_bounded(self) -> bool:
        return self.a.is_bounded and self.b.is_bounded

    @property
    def moved(self) -> Bools:
        """Which tasks differ by more than rounding."""
        differs: Bools = np.abs(self.d) > ZERO * np.maximum(1.0, np.abs(self.mean_a) + np.abs(self.mean_b))
        return differs


def paired(a: Side, b: Side, alignment: Alignment) -> Paired:
    """The tasks of `alignment.common` with what each run scored on them."""
    code_a, code_b = codes_of(a, alignment.common), codes_of(b, alignment.common_candidate or alignment.common)
    n_a, n_b = counts(a)[code_a], counts(b)[code_b]
    mean_a, mean_b = means(a, a.judged.score)[code_a], means(b, b.judged.score)[code_b]
    return Paired(a, b, alignment, code_a, code_b, n_a, n_b, mean_a, mean_b)


def codes_of(side: Side, keys: tuple[str, ...]) -> Ints:
    """The code that a run gives each task; -1 where it has no such key."""
    if keys == side.judged.task_keys:
        return np.arange(len(keys))
    place = {key: code for code, key in enumerate(side.judged.task_keys)}
    return np.fromiter((place.get(key, -1) for key in keys), np.int64, len(keys))


def upright(pair: Paired) -> tuple[Paired, bool]:
    """The pair with its runs in the order of their names, and whether that turned it.

    What is computed of an upright pair, and turned back, is the same to the last digit whichever run is
    called the baseline. The alignment stays as it was.
    """
    a, b = pair.a, pair.b
    if a.run < b.run if a.run != b.run else a.judged.score.tobytes() <= b.judged.score.tobytes():
        return pair, False
    return Paired(b, a, pair.alignment, pair.code_b, pair.code_a, pair.n_b, pair.n_a, pair.mean_b, pair.mean_a), True


def counts(side: Side) -> Ints:
    """Counted rows, by task code."""
    return np.bincount(side.judged.task, minlength=len(side.judged.task_keys)) if side.n is None else side.n


def means(side: Side, values: NDArray[Any]) -> Floats:
    """The mean of a row column by task code, added in the fixed order of the rows; nan where a task has no counted row."""
    n = counts(side)
    task_means = np.full(n.size, np.nan)
    scored = np.flatnonzero(n)
    if scored.size:  # the rows of a task stand together
        starts = np.cumsum(n[scored]) - n[scored]
        task_means[scored] = np.add.reduceat(values.astype(np.float64, copy=False), starts) / n[scored]
    return task_means


def known_means(side: Side, values: Floats, codes: Ints) -> Floats:
    """The mean of a row column that may lack values, for these tasks; nan where a task has none."""
    known, size = np.isfinite(values), len(side.judged.task_keys)
    task = side.judged.task[known]
    with np.errstate(invalid="ignore"):
        return (summed(task, values[known], size) / np.bincount(task, minlength=size))[codes]


def passes(pair: Paired) -> tuple[Ints, Ints] | None:
    """The passing rows of each common task; None where no threshold says what passes."""
    if not pair.n_a.size or not (pair.a.judged.judged and pair.b.judged.judged):
        return None
    c_a, c_b = (np.rint(means(side, side.judged.passed)[codes] * n).astype(np.int64) for side, codes, n in pair.runs)
    return c_a, c_b


def rows_of(pair: Paired, *values: Floats) -> stats.Rows:
    """The rows of the common tasks summed by task: of a column of each run, or of their scores."""
    columns = values or (pair.a.judged.score, pair.b.judged.score)
    n, sums, squares = [], [], []
    for (side, codes, rows), column in zip(pair.runs, columns, strict=True):
        n.append(rows)
        sums.append(means(side, column)[codes] * rows)
        squares.append(means(side, column**2)[codes] * rows)
    is_binary = all(bool(np.isin(column, (0.0, 1.0)).all()) for column in values) if values else pair.is_binary
    return stats.Rows(n[0], n[1], sums[0], sums[1], squares[0], squares[1], is_binary)


def row_places(side: Side, codes: Ints) -> Ints:
    """The place of each row's task among these tasks; -1 where it is none of them."""
    place = np.full(len(side.judged.task_keys), -1, np.int64)
    place[codes] = np.arange(codes.size)
    return place[side.judged.task]


def summed(place: Ints, values: Floats, size: int) -> Floats:
    """The sum of the values at each place."""
    return np.asarray(np.bincount(place, weights=values, minlength=size), np.float64)


def mean(values: Floats) -> float:
    """Rounded once, so that no order of the tasks shows in it; nan of nothing."""
    return math.fsum(values.tolist()) / values.size if values.size else math.nan


def reach(pair: Paired) -> float:
    """How far apart two scores can be: what bounds say, else what the rows show."""
    if pair.is_bounded:
        return 1.0
    scores = [side.judged.score for side in (pair.a, pair.b) if side.judged.score.size]
    return max(float(x.max()) for x in scores) - min(float(x.min()) for x in scores)


@dataclass(frozen=True)
class TaskSets:
    """The tasks of two runs that have a counted row, as codes of each run, and the mean score of each."""

    codes_a: Ints  # the common tasks in their order, then those that only this run has
    codes_b: Ints
    mean_a: Floats  # beside the codes
    mean_b: Floats
    n_common: int

    @property
    def are_equal(self) -> bool:
        return self.codes_a.size == self.codes_b.size == self.n_common

    @property
    def n_all(self) -> int:
        return self.codes_a.size + self.codes_b.size - self.n_common

    @property
    def delta(self) -> float:
        """The change of the headline score: the mean over all tasks of each run."""
        return mean(self.mean_b) - mean(self.mean_a)


def task_sets(pair: Paired) -> TaskSets:
    """All tasks of both runs."""
    codes = []
    for side, common, _ in pair.runs:
        is_other = counts(side) > 0
        is_other[common] = False
        codes.append(np.concatenate([common, np.flatnonzero(is_other)]))
    mean_a, mean_b = means(pair.a, pair.a.judged.score)[codes[0]], means(pair.b, pair.b.judged.score)[codes[1]]
    return TaskSets(codes[0], codes[1], mean_a, mean_b, pair.code_a.size)


class Spread(NamedTuple):
    """How the tasks of both runs lie around the means of their cells; a task that both have is one draw with both deviations."""

    sums: list[Floats]  # of the scores of each cell, in either run
    squares: list[Floats]  # of the deviations
    products: Floats  # of both deviations of the common tasks, by cell in the baseline and in the candidate
    sizes: list[Ints]
    shared: Ints  # common tasks by both cells
    step: float

    def of_sum(self, weight_a: Floats, weight_b: Floats) -> stats.Change | None:
        """Σ weight · score over the tasks, where weights are given by cell; None where nothing varies."""
        value = math.fsum([*(weight_a * self.sums[0]).tolist(), *(weight_b * self.sums[1]).tolist()])
        own = float((weight_a**2 * self.squares[0]).sum() + (weight_b**2 * self.squares[1]).sum())
        variance = own + 2 * float((np.outer(weight_a, weight_b) * self.products).sum())
        has_a, has_b = weight_a != 0, weight_b != 0
        common = self.shared[np.ix_(has_a, has_b)].sum()
        n = int(self.sizes[0][has_a].sum() + self.sizes[1][has_b].sum() - common)
        if n < 2 or variance <= 1e-24:
            return None
        se, df, centre = math.sqrt(variance * n / (n - 1)), n - 1.0, value
        if n < _FEW:  # two further tasks, one better and one worse by a step, as for tasks in pairs
            step = self.step * n * float(np.abs(np.concatenate([weight_a, weight_b])).max())
            total = n * n * variance + 2 * step * step + 2 * n / (n + 2) * value * value
            se, df, centre = math.sqrt(total / (n + 1) / (n + 2)), n + 1.0, value * n / (n + 2)
        return stats.student(value, centre, se, df, "task t")


def spread(sets: TaskSets, cells: tuple[Ints, Ints], n_cells: int, step: float) -> Spread:
    """`cells` in the order of the tasks of each run."""
    away, sums, squares, sizes = [], [], [], []
    for cell, x in zip(cells, (sets.mean_a, sets.mean_b), strict=True):
        size = np.bincount(cell, minlength=n_cells)
        total = summed(cell, x, n_cells)
        # The mean of a cell lies too near to its own tasks, by this factor.
        grown = np.sqrt(size / np.maximum(size - 1, 1))
        deviation = (x - (total / np.maximum(size, 1))[cell]) * grown[cell]
        away.append(deviation)
        sums.append(total)
        squares.append(summed(cell, deviation**2, n_cells))
        sizes.append(size)
    n, square = sets.n_common, (n_cells, n_cells)
    both = cells[0][:n] * n_cells + cells[1][:n]
    products = summed(both, away[0][:n] * away[1][:n], n_cells * n_cells)
    shared = np.bincount(both, minlength=n_cells * n_cells)
    return Spread(sums, squares, products.reshape(square), sizes, shared.reshape(square), step)

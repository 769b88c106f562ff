"""Pair the tasks of two runs with what each scored on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blade import stats
from blade.model import Alignment, Side
from blade.stats.intervals import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Floats, Ints, Side

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


def paired(a: Side, b: Side, alignment: Alignment) -> Paired:
    """The tasks of `alignment.common` with what each run scored on them."""
    code_a = _codes(a, alignment.common)
    code_b = _codes(b, alignment.common_candidate or alignment.common)
    n_a, n_b = counts(a)[code_a], counts(b)[code_b]
    mean_a, mean_b = means(a, a.judged.score)[code_a], means(b, b.judged.score)[code_b]
    return Paired(a, b, alignment, code_a, code_b, n_a, n_b, mean_a, mean_b)


def counts(side: Side) -> Ints:
    """Counted rows, by task code."""
    if side.n is not None:
        return side.n
    return np.bincount(side.judged.task, minlength=len(side.judged.task_keys))


def means(side: Side, values: NDArray[Any]) -> Floats:
    """The mean of a row column for every task code; nan where a task has no counted row.

    Rewards are added exactly where they are 0 and 1; otherwise in the order of the rows, which is fixed.
    """
    n = counts(side)
    task_means = np.full(n.size, np.nan)
    scored = np.flatnonzero(n)
    if scored.size:  # the rows of a task stand together
        starts = np.cumsum(n[scored]) - n[scored]
        task_means[scored] = np.add.reduceat(values.astype(np.float64, copy=False), starts) / n[scored]
    return task_means


def over_common(pair: Paired, values_a: NDArray[Any], values_b: NDArray[Any]) -> tuple[Floats, Floats]:
    """Row columns of both runs as means of the common tasks."""
    return means(pair.a, values_a)[pair.code_a], means(pair.b, values_b)[pair.code_b]


def summed(place: Ints, values: Floats, size: int) -> Floats:
    """The sum of the values at each place."""
    return np.asarray(np.bincount(place, weights=values, minlength=size), np.float64)


def _codes(side: Side, keys: tuple[str, ...]) -> Ints:
    if keys == side.judged.task_keys:
        return np.arange(len(keys))
    place = {key: code for code, key in enumerate(side.judged.task_keys)}
    return np.fromiter((place[key] for key in keys), np.int64, len(keys))


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
    (codes_a, mean_a), (codes_b, mean_b) = _all(pair.a, pair.code_a), _all(pair.b, pair.code_b)
    return TaskSets(codes_a, codes_b, mean_a, mean_b, pair.code_a.size)


def _all(side: Side, common: Ints) -> tuple[Ints, Floats]:
    is_other = counts(side) > 0
    is_other[common] = False
    codes = np.concatenate([common, np.flatnonzero(is_other)])
    return codes, means(side, side.judged.score)[codes]


def mean(values: Floats) -> float:
    """Rounded once, so that no order of the tasks shows in it; nan of nothing."""
    return math.fsum(values.tolist()) / values.size if values.size else math.nan


def reach(pair: Paired) -> float:
    """How far apart two scores can be: what bounds say, else what the rows show."""
    if pair.a.is_bounded and pair.b.is_bounded:
        return 1.0
    scores = [side.judged.score for side in (pair.a, pair.b) if side.judged.score.size]
    lowest, highest = min(float(x.min()) for x in scores), max(float(x.max()) for x in scores)
    return highest - lowest


@dataclass(frozen=True)
class Spread:
    """How the tasks of both runs lie around the means of their cells, to tell how sure sums of them are.

    A task that both runs have is one draw and brings both its deviations.
    """

    sums: tuple[Floats, Floats]  # of the scores of each cell, in either run
    squares: tuple[Floats, Floats]  # of the deviations
    products: Floats  # of both deviations of the common tasks, by cell in the baseline and in the candidate
    sizes: tuple[Ints, Ints]
    shared: Ints  # common tasks by both cells
    step: float

    def of_sum(self, weight_a: Floats, weight_b: Floats) -> stats.Change | None:
        """Σ weight · score over the tasks, where weights are given by cell; None where nothing varies."""
        value = math.fsum([*(weight_a * self.sums[0]).tolist(), *(weight_b * self.sums[1]).tolist()])
        variance = float(
            (weight_a**2 * self.squares[0]).sum() + (weight_b**2 * self.squares[1]).sum()
        ) + 2 * float((np.outer(weight_a, weight_b) * self.products).sum())
        has_a, has_b = weight_a != 0, weight_b != 0
        n = int(
            self.sizes[0][has_a].sum() + self.sizes[1][has_b].sum() - self.shared[np.ix_(has_a, has_b)].sum()
        )
        if n < 2 or variance <= 1e-24:
            return None
        se, df, centre = math.sqrt(variance * n / (n - 1)), n - 1.0, value
        if n < _FEW:  # two further tasks, one better and one worse by a step, as for tasks in pairs
            step = self.step * n * float(np.abs(np.concatenate([weight_a, weight_b])).max())
            total = n * n * variance + 2 * step * step + 2 * n / (n + 2) * value * value
            se, df, centre = math.sqrt(total / (n + 1) / (n + 2)), n + 1.0, value * n / (n + 2)
        half = stats.t_quantile(0.975, df) * se
        p = float(2 * special().stdtr(df, -abs(value) / se))
        return stats.Change(value, se, df, centre - half, centre + half, p, "task t")


_FEW = 25


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
    n = sets.n_common
    both = cells[0][:n] * n_cells + cells[1][:n]
    square = (n_cells, n_cells)
    products = summed(both, away[0][:n] * away[1][:n], n_cells * n_cells)
    shared = np.bincount(both, minlength=n_cells * n_cells)
    return Spread(
        (sums[0], sums[1]),
        (squares[0], squares[1]),
        products.reshape(square),
        (sizes[0], sizes[1]),
        shared.reshape(square),
        step,
    )


def whole(sets: TaskSets, step: float) -> stats.Change | None:
    """The change of the headline score itself."""
    if sets.are_equal:
        return stats.mean_change(sets.mean_b - sets.mean_a, step)
    if not sets.n_common:
        return stats.two_means(sets.mean_a, sets.mean_b)
    n_a, n_b = sets.codes_a.size, sets.codes_b.size
    cells = np.zeros(n_a, np.int64), np.zeros(n_b, np.int64)
    return spread(sets, cells, 1, step).of_sum(np.array([-1 / n_a]), np.array([1 / n_b]))

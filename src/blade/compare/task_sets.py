"""Turn two runs into all the tasks of each: which only one has, and how sure a sum over them is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.losses import summed
from blade.compare.pairing import Paired, counts, means
from blade.stats.quantiles import special

if TYPE_CHECKING:
    from blade.model import Floats, Ints, Side


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

"""Turn a group for every row into the score that each common task loses to each group."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from blade.compare.pairing import Paired, counts

if TYPE_CHECKING:
    from blade.model import Floats, Ints, Side


@dataclass(frozen=True)
class Lost:
    """The rows of one run that lose points on common tasks."""

    rows: Ints  # of the run's counted rows
    task: Ints  # place among the common tasks
    points: Floats  # what the row takes from the mean of its task
    n_tasks: int

    def totals(self, group: Ints, n_groups: int) -> Floats:
        """What all tasks together lose to each group; `group` by counted row."""
        return summed(group[self.rows], self.points, n_groups)

    def by_task(self, group: Ints, n_groups: int) -> list[Floats]:
        """What each task loses to each group."""
        own = group[self.rows].astype(np.int16)  # few groups, and small numbers sort quickly
        order = np.argsort(own, kind="stable")
        ends = np.searchsorted(own[order], np.arange(n_groups + 1))
        parts = [order[start:end] for start, end in pairwise(ends.tolist())]
        return [summed(self.task[part], self.points[part], self.n_tasks) for part in parts]


def summed(place: Ints, values: Floats, size: int) -> Floats:
    """The sum of the values at each place."""
    return np.asarray(np.bincount(place, weights=values, minlength=size), np.float64)


def lost(pair: Paired) -> tuple[Lost, Lost]:
    """The losses of the baseline and of the candidate."""
    return _lost(pair.a, pair.code_a), _lost(pair.b, pair.code_b)


def _lost(side: Side, common: Ints) -> Lost:
    place = np.full(len(side.judged.task_keys), -1)
    place[common] = np.arange(common.size)
    rows = np.flatnonzero(side.judged.score < 1)
    task = place[side.judged.task[rows]]
    if common.size < place.size:
        rows, task = rows[task >= 0], task[task >= 0]
    points = (1.0 - side.judged.score[rows]) / counts(side)[common][task]
    return Lost(rows, task, points, common.size)

"""Book the score that each common task loses to failure groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from blade.compare.task_pairs import Paired, counts, summed
from blade.model import Side

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

UNSCORED = ("data", "no usable reward")


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


def lost(pair: Paired) -> tuple[Lost, Lost]:
    """The losses of the baseline and of the candidate."""
    return _lost(pair.a, pair.code_a), _lost(pair.b, pair.code_b)


def _lost(side: Side, common: Ints) -> Lost:
    """A row that was spoiled says nothing of its task: it loses what its task would gain without it.

    So a clean row loses its share of the clean rows, and the spoiled ones of a task together the rest of
    what the task loses.
    """
    place = np.full(len(side.judged.task_keys), -1)
    place[common] = np.arange(common.size)
    rows = np.flatnonzero(side.judged.score < 1)
    task = place[side.judged.task[rows]]
    if common.size < place.size:
        rows, task = rows[task >= 0], task[task >= 0]
    points = 1.0 - side.judged.score[rows]
    n = counts(side)[common]
    is_bad = spoiled(side)[rows]
    if not is_bad.any():
        return Lost(rows, task, points / n[task], common.size)
    n_clean = n - np.bincount(task[is_bad], minlength=common.size)
    clean = summed(task[~is_bad], points[~is_bad], common.size) / np.maximum(n_clean, 1)
    bad = summed(task[is_bad], points[is_bad], common.size)
    whole = summed(task, points, common.size) / n
    shared = np.where(bad > 0, (whole - clean) / np.where(bad > 0, bad, 1.0), 0.0)
    own = np.where(is_bad, points * shared[task], points / np.maximum(n_clean, 1)[task])
    return Lost(rows, task, own, common.size)


def spoiled(side: Side) -> Bools:
    """Rows that something outside the model spoiled, so that they measure nothing; by counted row."""
    bad = [mode[0] == "infrastructure" or mode == UNSCORED for mode in side.modes]
    is_spoiled: Bools = np.array([*bad, False], bool)[side.mode]  # -1 is the last
    return is_spoiled


def with_clean(pair: Paired) -> Paired:
    """The pair with tasks that one run has no clean row of booked on what spoiled them, in both runs.

    Such a task compares nothing: what the other run loses on it is not what changed.
    """
    bad_a, bad_b = spoiled(pair.a), spoiled(pair.b)
    if not (bad_a.any() or bad_b.any()):
        return pair
    spoils_a, spoils_b = _spoilers(pair.a, pair.code_a, bad_a), _spoilers(pair.b, pair.code_b, bad_b)
    return replace(
        pair,
        a=_booked(pair.a, pair.code_a, pair.b, np.where(spoils_a < 0, spoils_b, -1)),
        b=_booked(pair.b, pair.code_b, pair.a, np.where(spoils_b < 0, spoils_a, -1)),
    )


def _spoilers(side: Side, codes: Ints, bad: Bools) -> Ints:
    """The mode that spoiled all rows of each common task; -1 where a row is clean."""
    n = counts(side)
    left = n - np.bincount(side.judged.task[bad], minlength=n.size)
    first = np.minimum(np.searchsorted(side.judged.task, codes), side.mode.size - 1)
    modes: Ints = np.where(left[codes] == 0, side.mode[first], -1)
    return modes


def _booked(side: Side, codes: Ints, other: Side, spoilers: Ints) -> Side:
    """A run with its losses on some tasks booked under modes of the other run."""
    if not (spoilers >= 0).any():
        return side
    table, mode = list(side.modes), side.mode.copy()
    of_row = np.full(len(side.judged.task_keys), -1)
    of_row[codes] = spoilers
    wanted = of_row[side.judged.task]
    for code in np.unique(spoilers[spoilers >= 0]).tolist():
        name = other.modes[code]
        if name not in table:
            table.append(name)
        mode[(wanted == code) & (mode >= 0)] = table.index(name)
    return msgspec.structs.replace(side, mode=mode, modes=tuple(table))

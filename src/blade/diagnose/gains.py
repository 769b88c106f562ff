"""Estimate what a fix would win: within tasks, chosen on half of the repeats and estimated on the other half."""

from __future__ import annotations

import numpy as np

from blade.diagnose.cover import RARER, contrast
from blade.diagnose.population import Group, Mask, Population
from blade.model import Gain

LEVEL = 0.95
DRAWS = 2000
CHOSEN = 0.05  # one-sided p on the half that chooses, from which the other half estimates


def gain(people: Population, group: Group) -> Gain | None:
    """The gain with its interval; None where no task shows both, or where passes define the fact."""
    if group.rung != "behaviour" or group.matched is None or not people.has_repeats:
        return None
    halves = _halves(people)
    uses = [
        half for half, other in ((halves, ~halves), (~halves, halves)) if _is_chosen(people, group.matched, other)
    ]  # fmt: skip
    if not uses:
        return None
    parts = [_by_task(people, group, half) for half in uses]
    total = np.mean(parts, axis=0)  # of each task: points won if its rows were free of the fault
    if not np.any(total):
        return None
    draws = np.random.default_rng(0).integers(0, total.size, (DRAWS, total.size))
    sums = total[draws].sum(axis=1)
    low, high = np.quantile(sums, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Gain(float(low), float(total.sum()), float(high), LEVEL)


def _halves(people: Population) -> Mask:
    """Every second row of each task."""
    order = np.zeros(people.n, np.int64)
    seen: dict[int, int] = {}
    for at, task in enumerate(people.task.tolist()):
        order[at] = seen.get(task, 0)
        seen[task] = order[at] + 1
    even: Mask = order % 2 == 0
    return even


def _is_chosen(people: Population, rows: Mask, half: Mask) -> bool:
    """Whether a half of the rows by itself shows that rows with the fact pass less often."""
    part = Population(
        people.run, [row for row, flag in zip(people.rows, half, strict=True) if flag], people.passed[half],
        people.lost[half], people.task[half], people.repeat[half], people.keys,
    )  # fmt: skip
    test = contrast(part, rows[half], part.failed, least=RARER // 2)
    return test is not None and test.p <= CHOSEN


def _by_task(people: Population, group: Group, half: Mask) -> np.ndarray:
    """Of each task, the points that its affected rows would win at the pass rate of its free rows.

    A task without free rows in this half takes the rate of the free rows of all tasks that have some, scaled by
    nothing: only tasks that show both count for the difference, and that difference is applied to all affected rows.
    """
    matched = group.matched if group.matched is not None else group.rows
    task, n = people.task, int(people.task.max()) + 1
    with_, free = matched & half, ~matched & half
    n_with, n_free = np.bincount(task[with_], minlength=n), np.bincount(task[free], minlength=n)
    p_with = np.bincount(task[with_], weights=people.passed[with_], minlength=n)
    p_free = np.bincount(task[free], weights=people.passed[free], minlength=n)
    both = (n_with > 0) & (n_free > 0)
    if not both.any():
        return np.zeros(n)
    gap = np.zeros(n)
    gap[both] = p_free[both] / n_free[both] - p_with[both] / n_with[both]
    affected = np.bincount(task[matched], minlength=n)
    size = np.bincount(task, minlength=n)
    n_tasks = int((size > 0).sum())
    mean = float(np.average(gap[both], weights=affected[both])) if affected[both].sum() else 0.0
    # tasks that show only rows with the fault in this half take the mean of the others
    used = np.where(both, gap, mean)
    return np.where(affected > 0, used * affected / np.maximum(size, 1) / n_tasks, 0.0)

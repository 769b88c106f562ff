"""Estimate what a fix would win: within tasks, chosen on half of the repeats and estimated on the other half."""

from __future__ import annotations

import numpy as np

from blade.diagnose.cover import RARER, contrast
from blade.diagnose.population import Group, Mask, Population
from blade.model import Gain
from blade.stats.intervals import Z95, t_quantile

LEVEL = 0.95
DRAWS = 2000
CHOSEN = 0.05  # one-sided p on the half that chooses, from which the other half estimates


def gain(people: Population, group: Group) -> Gain | None:
    """The gain with its interval; None where no task shows both, or where passes define the fact."""
    if group.rung != "behaviour" or group.is_defined_by_passes or group.matched is None or not people.has_repeats:
        return None
    # rows that show the fact and that another group explains are neither with it nor free of it
    affected = group.rows | (group.matched & people.passed)
    used = affected | ~group.matched
    halves = _halves(people)
    uses = [
        half & used
        for half, other in ((halves, ~halves), (~halves, halves))
        if _is_chosen(people, affected, other & used)
    ]
    if not uses:
        return None
    parts = [_by_task(people, affected, half) for half in uses]
    total = float(np.mean([_total(*part) for part in parts]))
    if not total:
        return None
    n = parts[0][0].size
    draws = np.random.default_rng(0).integers(0, n, (DRAWS, n))
    # what stands in for tasks that do not show both is estimated anew in every draw
    sums = np.mean([[_total(gap[draw], weight[draw]) for draw in draws] for gap, weight in parts], axis=0)
    low, high = np.quantile(sums, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    wider = _small_sample(min(int(np.isfinite(gap).sum()) for gap, _ in parts))
    low, high = total - wider * (total - low), total + wider * (high - total)
    most = float(people.lost[group.rows].sum())  # no more can be won than these rows lose
    if low >= most:  # resampling rows that never vary shows no width: the rule of three bounds what n passes in a row prove
        n_free = int((~affected & used & np.isin(people.task, people.task[group.rows])).sum())
        low = most * (1 - 3 / max(n_free, 4))
    return Gain(min(float(low), most), min(total, most), min(float(high), most), LEVEL)


def _small_sample(n_tasks: int) -> float:
    """How much wider than resampling says an interval over few tasks must be: Student's t, and n - 1."""
    if n_tasks < 2:
        return 3.0
    return float(t_quantile((1 + LEVEL) / 2, n_tasks - 1) / Z95 * np.sqrt(n_tasks / (n_tasks - 1)))


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


def _by_task(people: Population, matched: Mask, half: Mask) -> tuple[np.ndarray, np.ndarray]:
    """Of each task, by how much rows without the fact pass more often in this half, and the points of all rows with it.

    Not a number where the half does not show both kinds of rows.
    """
    task = np.unique(people.task, return_inverse=True)[1]
    n = int(task.max()) + 1
    with_, free = matched & half, ~matched & half
    n_with, n_free = np.bincount(task[with_], minlength=n), np.bincount(task[free], minlength=n)
    p_with = np.bincount(task[with_], weights=people.passed[with_], minlength=n)
    p_free = np.bincount(task[free], weights=people.passed[free], minlength=n)
    gap = np.full(n, np.nan)
    both = (n_with > 0) & (n_free > 0)
    gap[both] = p_free[both] / n_free[both] - p_with[both] / n_with[both]
    weight = np.bincount(task[matched], minlength=n) / np.bincount(task, minlength=n) / n
    return gap, weight


def _total(gap: np.ndarray, weight: np.ndarray) -> float:
    """The points that all rows with the fact would win: tasks that do not show both take the mean of those that do."""
    known = np.isfinite(gap) & (weight > 0)
    if not known.any():
        return 0.0
    mean = np.average(gap[known], weights=weight[known])
    return float((gap[known] * weight[known]).sum() + mean * weight[~known].sum())

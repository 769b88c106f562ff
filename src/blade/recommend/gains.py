"""Turn the rows that fail with a mode into what its removal could win."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from blade.model import Gain, Judged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Bools, Floats

UNKNOWN = 0.5  # of the usual rate, where nothing like the task passes without the mode


class Estimate(msgspec.Struct, frozen=True):
    """A gain and what it rests on."""

    gain: Gain
    n_tasks: int
    n_within: int  # of these, tasks with repeats free of the mode
    basis: str


def estimate(judged: Judged, primary: Bools, shows: Bools) -> Estimate:
    """What the score could win if no row failed with a mode.

    `primary` marks the rows whose loss is booked under the mode, `shows` all rows that show it. A task's
    chance without it is that of its own repeats free of it; else that of all such rows, halved.
    """
    n_all = len(judged.task_keys)
    weight = 1.0 - judged.score
    size = np.bincount(judged.task, minlength=n_all)
    share = np.bincount(judged.task[primary], weights=weight[primary], minlength=n_all) / np.maximum(size, 1)
    free = ~shows & ~primary & ~judged.broken
    n_free = np.bincount(judged.task[free], minlength=n_all)
    won = np.bincount(judged.task[free], weights=judged.score[free], minlength=n_all)
    concerned = share > 0
    within = concerned & (n_free >= 2)
    usual = float(judged.score[free].mean()) if free.any() else 0.0
    chance = np.where(within, _shrunk(won, n_free, usual), UNKNOWN * usual)
    n_tasks = int(np.count_nonzero(size))
    low = float((share * chance)[within].sum()) / n_tasks
    point = float((share * chance)[concerned].sum()) / n_tasks
    high = float(share[concerned].sum()) / n_tasks
    n, n_within = int(np.count_nonzero(concerned)), int(np.count_nonzero(within))
    return Estimate(Gain(low, point, high), n, n_within, _basis(n, n_within, usual))


def voted(judged: Judged, primary: Bools, contents: Mapping[int, str]) -> Estimate:
    """What it would win to take of every task the result that most of its repeats share."""
    point = high = 0.0
    tasks = np.unique(judged.task[primary])
    known = 0
    for code in tasks.tolist():
        start, end = np.searchsorted(judged.task, (code, code + 1))
        rows = np.arange(start, end)[~judged.broken[start:end]]
        mean, best = float(judged.score[rows].mean()), float(judged.score[rows].max())
        high += best - mean
        told = [(contents.get(int(judged.rows[at]), ""), float(judged.score[at])) for at in rows]
        votes = Counter(content for content, _ in told if content)
        if votes:
            known += 1
            most = max(votes.values())
            winners = [content for content, n in votes.items() if n == most]
            worth = [np.mean([score for said, score in told if said == content]) for content in winners]
            point += float(np.mean(worth)) - mean
    n_tasks = len(np.unique(judged.task))
    booked = float(_lost(judged, primary))
    high = min(high / n_tasks, booked)
    point = min(max(point / n_tasks, 0.0), high)
    gain = Gain(0.0, point, high)
    basis = f"the commonest result of each task, in {known} of {len(tasks)} whose results can be compared"
    return Estimate(gain, len(tasks), known, basis)


def _lost(judged: Judged, primary: Bools) -> float:
    """The points of score that the rows of a mode lose."""
    size = np.bincount(judged.task, minlength=len(judged.task_keys))
    lost = (1.0 - judged.score[primary]) / size[judged.task[primary]]
    return float(lost.sum()) / int(np.count_nonzero(size))


def _shrunk(won: NDArray[Any], n: NDArray[Any], usual: float) -> Floats:
    """A task's own rate, drawn towards the usual one by two rows' worth."""
    return np.asarray((won + 2 * usual) / (n + 2))


def _basis(n: int, n_within: int, usual: float) -> str:
    tasks = "task" if n == 1 else "tasks"
    if not usual:
        return "nothing: no rollout without it scores, so what its removal would win is unknown"
    if not n_within:
        return f"extrapolated: no task has two repeats without it; half of the usual {usual:.0%} is taken"
    if n_within == n:
        return f"the repeats without it of the same {n} {tasks}"
    return f"the repeats without it in {n_within} of {n} {tasks}; extrapolated for the others"


def severity(judged: Judged, positions: dict[int, int]) -> Floats:
    """Severities by position as a column over the rows that count."""
    return np.array([float(positions.get(int(position), 0)) for position in judged.rows])

"""Turn two runs into paired tasks: what each scored on the tasks that both have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blade.model import Alignment, Side

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Floats, Ints


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
    found = np.full(n.size, np.nan)
    held = np.flatnonzero(n)
    if held.size:  # the rows of a task stand together
        starts = np.cumsum(n[held]) - n[held]
        found[held] = np.add.reduceat(values.astype(np.float64, copy=False), starts) / n[held]
    return found


def over_common(pair: Paired, values_a: NDArray[Any], values_b: NDArray[Any]) -> tuple[Floats, Floats]:
    """Row columns of both runs as means of the common tasks."""
    return means(pair.a, values_a)[pair.code_a], means(pair.b, values_b)[pair.code_b]


def _codes(side: Side, keys: tuple[str, ...]) -> Ints:
    if keys == side.judged.task_keys:
        return np.arange(len(keys))
    place = {key: code for code, key in enumerate(side.judged.task_keys)}
    return np.fromiter((place[key] for key in keys), np.int64, len(keys))

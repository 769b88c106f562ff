"""Turn severities of modes per rollout into what the score would be with the least-affected rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from blade import stats

if TYPE_CHECKING:
    from blade.model import Floats, Ints

DRAWS = 200


class Uplift(msgspec.Struct, frozen=True):
    """What the score gains when every task is judged by its rollouts least affected by a mode."""

    point: float
    p: float | None  # of at least this much when severities are shuffled within tasks
    null_high: float | None  # 97.5% of the shuffled gains
    uninformed: float  # share of tasks with the mode in all their rollouts, or in none


class Ablation:
    """The rows of a run with the severity of each mode; rows of a task stand together."""

    def __init__(self, task: Ints, score: Floats, severities: Mapping[str, Floats], seed: int = 0) -> None:
        self._score, self._severities = score, severities
        self._starts = (
            np.flatnonzero(np.r_[True, task[1:] != task[:-1]]) if task.size else np.zeros(0, np.int64)
        )
        self._n = np.diff(np.r_[self._starts, task.size])
        self._group = np.repeat(np.arange(self._starts.size), self._n)
        self._seed = seed

    def value(self, modes: frozenset[str]) -> float:
        """The mean over tasks of the mean score of the least-affected rollouts; ties are averaged."""
        if not modes:
            return self._of(np.zeros(self._score.size))
        return self._of(np.sum([self._severities[mode] for mode in sorted(modes)], axis=0))

    def _of(self, severity: Floats) -> float:
        if not self._starts.size:
            return 0.0
        least = np.minimum.reduceat(severity, self._starts)[self._group] >= severity - 1e-12
        total = np.add.reduceat(np.where(least, self._score, 0.0), self._starts)
        return float((total / np.add.reduceat(least.astype(np.float64), self._starts)).mean())

    @property
    def oracle(self) -> float:
        """The score with the best rollout of every task."""
        return float(np.maximum.reduceat(self._score, self._starts).mean()) if self._starts.size else 0.0

    def uplift(self, mode: str) -> Uplift:
        """The gain of one mode with its permutation null."""
        severity, empty = self._severities[mode], self.value(frozenset())
        point = self.value(frozenset([mode])) - empty
        low = np.minimum.reduceat(severity, self._starts)
        high = np.maximum.reduceat(severity, self._starts)
        uninformed = float((low == high).mean())
        if uninformed == 1:
            return Uplift(point, None, None, uninformed)
        rng = stats.seeded_rng("ablation", mode, str(self._seed))
        gains = np.array([self._of(self._shuffled(severity, rng)) - empty for _ in range(DRAWS)])
        p = float((1 + np.count_nonzero(gains >= point - 1e-12)) / (DRAWS + 1))
        return Uplift(point, p, float(np.quantile(gains, 0.975)), uninformed)

    def _shuffled(self, severity: Floats, rng: np.random.Generator) -> Floats:
        """The severities in another order within each task."""
        order = np.lexsort((rng.random(severity.size), self._group))
        return np.asarray(severity[order])

    def shares(self, modes: Sequence[str]) -> dict[str, float]:
        """The Shapley share of each mode in what all of them together could win."""
        return stats.shapley(modes, self.value, self._seed)

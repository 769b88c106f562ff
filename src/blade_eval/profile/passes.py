"""Turn the rewards of agents into pass@1, pass@k and variance, each with n and interval, by task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from blade import stats
from blade_eval.profile.entries import Rows, in_key_order
from blade_eval.profile.table import Floats, Ints


class Estimate(NamedTuple):
    """A mean over tasks."""

    value: float
    n_tasks: int
    interval: stats.Interval | None

    def as_json(self) -> dict[str, Any]:
        low, high, method = self.interval or (None, None, None)
        return {
            "value": self.value if math.isfinite(self.value) else None,
            "n_tasks": self.n_tasks,
            "ci95": [low, high] if method else None,
            "method": method,
        }


class Score(NamedTuple):
    """The rewards of one agent; the task is the unit, not the row."""

    agent: str
    n_rows: int  # with a reward
    n_without: int  # measured, but without a number for a reward
    n_masked: int
    threshold: float
    is_binary: bool
    mean: Estimate  # of the reward
    passing: list[Estimate]  # pass@1, pass@2, ... as far as a task has rows
    variance: stats.Variance | None
    buckets: tuple[int, int, int]  # tasks that always, sometimes, never pass
    tasks: list[tuple[int, int, float, float | None]]  # task, rows, mean, variance of its rows

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        always, sometimes, never = self.buckets
        return {
            "agent": self.agent,
            "rows": self.n_rows,
            "rows_without_reward": self.n_without,
            "rows_masked": self.n_masked,
            "pass_threshold": self.threshold,
            "mean_reward": self.mean.as_json(),
            **({"pass@1": self.passing[0].as_json()} if self.passing else {}),
            "pass@k": {str(k): one.as_json() for k, one in enumerate(self.passing, 1)},
            "variance": self.variance
            and {
                "within_tasks": self.variance.within,
                "between_tasks": self.variance.between,
                "icc": self.variance.icc,
            },
            "tasks": {"always": always, "sometimes": sometimes, "never": never},
            "per_task": [
                {"task": task, "rows": n, "mean": mean, "variance": spread}
                for task, n, mean, spread in self.tasks
            ],
        }


def scores(told: Rows, threshold: float = 1.0) -> list[Score]:
    """Agents by name."""
    rows = in_key_order(told)
    reward = np.full(rows.size, np.nan)
    for column in told.table.columns(rows):
        if column.name == "reward":
            reward[column.positions] = column.values
    masked = told.masked()
    task, agent = told.table.keys.task[rows], told.agent[rows]
    found = []
    for code in told.agents():
        mine = agent == code
        n_masked = int((told.agent[masked] == code).sum())
        found.append(_score(told.names[code], task[mine], reward[mine], n_masked, threshold))
    return found


def _score(name: str, task: Ints, reward: Floats, n_masked: int, threshold: float) -> Score:
    known = ~np.isnan(reward)
    n_without = int((~known).sum())
    task, reward = task[known], reward[known]
    numbers, starts, counts = np.unique(task, return_index=True, return_counts=True)
    passed = (reward >= threshold).astype(np.float64)
    c = np.add.reduceat(passed, starts) if starts.size else np.zeros(0)
    sums = np.add.reduceat(reward, starts) if starts.size else np.zeros(0)
    means = sums / counts
    is_binary = bool(((reward == 0) | (reward == 1)).all())
    variance = stats.variance_components(reward, starts, counts)
    passing = []
    for k, values in enumerate(_at_each_k(counts, c.astype(np.int64)), 1):
        interval = (
            stats.score_interval(values, counts, stats.variance_components(passed, starts, counts), True)
            if k == 1
            else stats.mean_interval(values)
        )
        passing.append(Estimate(float(values.mean()), values.size, interval))
    mean = Estimate(
        float(means.mean()) if means.size else float("nan"),
        means.size,
        stats.score_interval(means, counts, variance, is_binary) if means.size else None,
    )
    buckets = int((c == counts).sum()), int(((c > 0) & (c < counts)).sum()), int((c == 0).sum())
    return Score(
        name, reward.size, n_without, n_masked, threshold, is_binary, mean, passing, variance, buckets,
        _per_task(numbers, starts, counts, reward, means),
    )  # fmt: skip


def _at_each_k(n: Ints, c: Ints) -> Iterator[Floats]:
    """`stats.pass_at_k` for k = 1, 2, ... of the tasks that have k rows, to the bit; each from the last."""
    missed = np.ones(n.size)
    for drawn in range(int(n.max(initial=0))):
        has_another = n > drawn
        n, c, missed = n[has_another], c[has_another], missed[has_another]
        missed = missed * (np.maximum(n - c - drawn, 0) / (n - drawn))
        yield 1.0 - missed


def _per_task(
    numbers: Ints, starts: Ints, counts: Ints, reward: Floats, means: Floats
) -> list[tuple[int, int, float, float | None]]:
    squares = (reward - np.repeat(means, counts)) ** 2
    spread = np.add.reduceat(squares, starts) / np.maximum(counts - 1, 1) if starts.size else np.zeros(0)
    told = zip(numbers.tolist(), counts.tolist(), means.tolist(), spread.tolist(), strict=True)
    return [(task, n, mean, value if n > 1 else None) for task, n, mean, value in told]

"""Score the agents of a run by task: pass@1, pass@k and variance with intervals, and metrics of one's own."""

from __future__ import annotations

import math
import runpy
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from blade import stats
from blade.errors import UsageError
from blade_eval.profile.row_table import LONG, Floats, Ints, Row

if TYPE_CHECKING:
    from blade_eval.profile.statistics import Rollouts

Tasks = list[list[Row]]


class Estimate(NamedTuple):
    """A mean over tasks."""

    value: float
    n_tasks: int
    interval: stats.Interval | None

    def as_json(self) -> dict[str, Any]:
        low, high, method = self.interval or (None, None, None)
        value = self.value if math.isfinite(self.value) else None
        return {"value": value, "n_tasks": self.n_tasks, "ci95": [low, high] if method else None, "method": method}


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
        variance = self.variance
        parts = variance and (variance.within, variance.between, variance.icc)
        return {
            "agent": self.agent, "rows": self.n_rows, "rows_without_reward": self.n_without,
            "rows_masked": self.n_masked, "pass_threshold": self.threshold, "mean_reward": self.mean.as_json(),
            **({"pass@1": self.passing[0].as_json()} if self.passing else {}),
            "pass@k": {str(k): estimate.as_json() for k, estimate in enumerate(self.passing, 1)},
            "variance": parts and dict(zip(("within_tasks", "between_tasks", "icc"), parts, strict=True)),
            "tasks": dict(zip(("always", "sometimes", "never"), self.buckets, strict=True)),
            "per_task": [dict(zip(("task", "rows", "mean", "variance"), row, strict=True)) for row in self.tasks],
        }  # fmt: skip


def scores(rollouts: Rollouts, threshold: float = 1.0) -> list[Score]:
    rows = rollouts.measured
    cells = rollouts.table.cells(rows.index.to_numpy())
    is_reward = cells.column == rollouts.table.columns.get("reward", -1)
    reward = np.full(len(rows), np.nan)
    reward[cells.row[is_reward]] = cells.value[is_reward]
    task, agent = rows["task"].to_numpy(), rows["agent"].to_numpy()
    masked = rollouts.rows["agent"][rollouts.rows["masked"] != 0]
    return [
        _score(rollouts.names[code], task[agent == code], reward[agent == code], int((masked == code).sum()), threshold)
        for code in rollouts.agents
    ]


def _score(name: str, task: Ints, reward: Floats, n_masked: int, threshold: float) -> Score:
    known = ~np.isnan(reward)
    task, reward = task[known], reward[known]
    numbers, starts, counts = np.unique(task, return_index=True, return_counts=True)
    passed = (reward >= threshold).astype(np.float64)

    def by_task(values: Floats) -> Floats:
        return np.add.reduceat(values, starts) if starts.size else np.zeros(0)

    c, means = by_task(passed), by_task(reward) / counts
    is_binary = bool(((reward == 0) | (reward == 1)).all())
    variance = stats.variance_components(reward, starts, counts)
    passing = []
    for k, values in enumerate(_at_each_k(counts, c.astype(np.int64)), 1):
        spread = stats.variance_components(passed, starts, counts) if k == 1 else None
        interval = stats.score_interval(values, counts, spread, True) if k == 1 else stats.mean_interval(values)
        passing.append(Estimate(float(values.mean()), values.size, interval))
    mean = Estimate(float("nan"), 0, None)
    if means.size:
        interval = stats.score_interval(means, counts, variance, is_binary)
        mean = Estimate(float(means.mean()), means.size, interval)
    buckets = int((c == counts).sum()), int(((c > 0) & (c < counts)).sum()), int((c == 0).sum())
    squares = by_task((reward - np.repeat(means, counts)) ** 2) / np.maximum(counts - 1, 1)
    rows = zip(numbers.tolist(), counts.tolist(), means.tolist(), squares.tolist(), strict=True)
    tasks = [(number, n, mean, value if n > 1 else None) for number, n, mean, value in rows]
    return Score(
        name, reward.size, int((~known).sum()), n_masked, threshold, is_binary, mean, passing, variance, buckets,
        tasks,
    )  # fmt: skip


def _at_each_k(n: Ints, c: Ints) -> Iterator[Floats]:
    """`stats.pass_at_k` for k = 1, 2, ... of the tasks that have k rows, to the bit; each from the last."""
    missed = np.ones(n.size)
    for drawn in range(int(n.max(initial=0))):
        has_another = n > drawn
        n, c, missed = n[has_another], c[has_another], missed[has_another]
        missed = missed * (np.maximum(n - c - drawn, 0) / (n - drawn))
        yield 1.0 - missed


@dataclass(frozen=True)
class Hook:
    """The function of a file, which turns the tasks of one agent into named numbers."""

    path: Path
    metrics: Callable[[Tasks], Mapping[str, Any]]

    def by_agent(self, rollouts: Rollouts) -> dict[str, dict[str, float]]:
        """What it finds for each agent; what is no finite number is undefined, and left out."""
        tasks = rollouts.tasks(lambda row: stripped(rollouts.table.row(row)))
        return {name: self._numbers(mine) for name, mine in tasks.items()}

    def _numbers(self, tasks: Tasks) -> dict[str, float]:
        try:
            metrics = self.metrics(tasks)
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno for frame in frames if frame.filename == str(self.path)]
            where = f" in line {lines[-1]}" if lines else ""
            raise _failed(self.path, f"`metrics` failed{where}: {type(error).__name__}: {error}") from error
        if not isinstance(metrics, Mapping):
            raise _failed(self.path, f"`metrics` returned {type(metrics).__name__}, not a dict of numbers")
        numbers = {}
        for name, value in metrics.items():
            is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not isinstance(name, str) or not is_number:
                raise _failed(self.path, f"`metrics` returned {name!r}: {value!r}, which is no named number")
            if not (isinstance(value, int) and abs(value) >= 1 << 1023) and math.isfinite(value):
                numbers[name] = float(value)
        return numbers


def loaded(path: Path) -> Hook:
    if not path.is_file():
        raise _failed(path, "there is no such file")
    try:
        function = runpy.run_path(str(path)).get("metrics")
    except (Exception, SystemExit) as error:
        raise _failed(path, f"it does not load: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise _failed(path, "it defines no function `metrics`")
    return Hook(path, function)


def _failed(path: Path, reason: str) -> UsageError:
    hint = "define `def metrics(tasks): ...` which takes a list of lists of rows and returns a dict of numbers"
    return UsageError(f"{path}: {reason}", hint, "metrics-hook")


def stripped(row: Mapping[str, Any]) -> Row:
    """A row as the servers of the incumbent get it: of the response the usage alone, no attachments."""
    bare = {name: value for name, value in row.items() if name not in LONG and not name.startswith("ng_")}
    response = row.get("response")
    if isinstance(response, Mapping):
        names = ("usage", "incomplete_details")
        bare["response"] = {name: response[name] for name in names if name in response}
    return bare

"""Decide what the rewards of a run mean: what passes, which rows count, which number is the score, and the result of each task."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from itertools import repeat as endless
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blade import stats
from blade.model import Buckets, Coverage, Outcome, Repeat, RewardKind, Rollouts, TaskResult
from blade.model.run_rows import Bools, Floats, Ints

TOLERANCE = 1e-9  # verifiers write 0.9999999999999998 where they mean 1
MAX_LEVELS = 6  # rewards with more distinct values than this are continuous
REACHES_ONE = 0.05  # share of rows at 1 from which a pass rate says more than a mean

OUTCOMES: tuple[Outcome, ...] = tuple(Outcome)
CODE = {outcome: code for code, outcome in enumerate(OUTCOMES)}
NO_OUTCOME = -1  # rows with a reward that no threshold judges


@dataclass(frozen=True)
class Scoring:
    """How the rows of one run count.

    The arrays named `row_…` and `rows` have one entry per row that is not masked; `tasks`, `starts`,
    `n`, `c` and the task means one per task that has such a row; `outcome` one per row of the run.
    """

    threshold: float
    threshold_given: bool
    pass_field: str | None  # the 0/1 field that says what passes, where rewards leave [0, 1]
    reward_kind: RewardKind
    has_pass_rate: bool
    score_name: str  # pass_at_1 or mean_reward
    rows: Ints  # positions in `Rollouts`
    row_reward: Floats  # 0 where the row has no usable reward
    row_passed: Bools  # all False where there is no pass rate
    row_score: Floats  # what `score` averages: passes as 0 and 1, or the rewards
    unscored: Bools  # rows without a usable reward
    tasks: Ints  # codes into `Rollouts.task_keys`, ascending
    starts: Ints  # first row of each task
    n: Ints
    c: Ints  # passes
    task_means: Floats  # of row_score
    task_rewards: Floats  # of row_reward
    outcome: NDArray[np.int8]  # codes into OUTCOMES; NO_OUTCOME without a pass rate

    @property
    def score(self) -> float | None:
        """The headline: mean over tasks; None without a row that has a reward."""
        return float(self.task_means.mean()) if self.task_means.size and not self.is_unscored else None

    @property
    def is_unscored(self) -> bool:
        """Whether no row has a usable reward: then there are traces to read and nothing to lose."""
        return bool(self.unscored.all())

    @property
    def is_bounded(self) -> bool:
        """Whether `score` cannot leave [0, 1]."""
        return self.score_name == "pass_at_1" or self.reward_kind is not RewardKind.UNBOUNDED


def scoring(rollouts: Rollouts, threshold: float | None) -> Scoring:
    """Decide what the rewards of a run mean; `threshold` is what the user or `blade.toml` asked for."""
    rows = np.flatnonzero(~rollouts.masked)
    reward = rollouts.reward[rows]
    unscored = ~np.isfinite(reward)
    usable = reward[~unscored]
    kind = reward_kind(usable)
    pass_field, i = _pass_field(rollouts, rows) if threshold is None and kind is RewardKind.UNBOUNDED else (None, None)
    threshold = i if threshold is None else threshold
    actual = threshold is not None
    bar = 1.0 if threshold is None else float(threshold)
    # without a threshold 1 means a pass; one other value on all rows was computed per batch, and says nothing of a row
    is_copied = kind is RewardKind.CONSTANT and TOLERANCE < usable[0] < 1 - TOLERANCE
    has_pass_rate = actual or not (is_copied or kind is RewardKind.UNBOUNDED)
    row_reward = np.where(unscored, 0.0, reward)
    row_passed = ~unscored & (row_reward >= bar - TOLERANCE) & has_pass_rate
    at_one = int(np.count_nonzero(usable >= 1 - TOLERANCE))
    is_rate = has_pass_rate and (
        actual or kind in (RewardKind.BINARY, RewardKind.CONSTANT) or at_one >= REACHES_ONE * rows.size
    )
    row_score = row_passed.astype(np.float64) if is_rate else row_reward
    outcome = np.full(rollouts.task.size, CODE[Outcome.FAILED] if has_pass_rate else NO_OUTCOME, np.int8)
    outcome[rollouts.errored] = CODE[Outcome.ERRORED]
    outcome[rollouts.timed_out] = CODE[Outcome.TIMED_OUT]
    outcome[rows[row_passed]] = CODE[Outcome.PASSED]
    outcome[~np.isfinite(rollouts.reward)] = CODE[Outcome.MALFORMED]
    outcome[rollouts.masked] = CODE[Outcome.MASKED]
    tasks, starts, n = groups_of(rollouts.task[rows])
    c = _sums(row_passed.astype(np.int64), starts)
    task_rewards = _sums(row_reward, starts) / n
    return Scoring(
        threshold=bar, threshold_given=actual, pass_field=pass_field, reward_kind=kind, has_pass_rate=has_pass_rate,
        score_name="pass_at_1" if is_rate else "mean_reward", rows=rows, row_reward=row_reward, row_passed=row_passed,
        row_score=row_score, unscored=unscored, tasks=tasks, starts=starts, n=n, c=c,
        task_means=c / n if is_rate else task_rewards, task_rewards=task_rewards,
        outcome=outcome,
    )  # fmt: skip


def _pass_field(rollouts: Rollouts, rows: Ints) -> tuple[str | None, float | None]:
    """The strictest 0/1 field that rises with the reward, and the least reward at which it is 1."""
    reward = rollouts.reward[rows]
    best: tuple[str | None, float | None] = (None, None)
    for name, column in rollouts.fields.items():
        value = column.number[rows]
        present = np.isfinite(value) & np.isfinite(reward)
        if present.sum() < 0.9 * rows.size or set(np.unique(value[present]).tolist()) != {0.0, 1.0}:
            continue
        yes, no = reward[present & (value == 1)], reward[present & (value == 0)]
        i = float(yes.min())
        if i > float(no.max()) and (best[1] is None or i > best[1]):
            best = name, i
    return best


def reward_kind(rewards: Floats) -> RewardKind:
    """The type of the usable rewards of a run; without any, nothing speaks against binary."""
    if rewards.size == 0:
        return RewardKind.BINARY
    low, high = float(rewards.min()), float(rewards.max())
    if low < -TOLERANCE or high > 1 + TOLERANCE:
        return RewardKind.UNBOUNDED
    if rewards.size > 1 and high - low <= TOLERANCE:
        return RewardKind.CONSTANT
    if np.all((rewards <= TOLERANCE) | (rewards >= 1 - TOLERANCE)):
        return RewardKind.BINARY
    # the first rows mostly tell already
    has_few = all(np.unique(np.round(some, 9)).size <= MAX_LEVELS for some in (rewards[:4096], rewards))
    return RewardKind.ORDINAL if has_few else RewardKind.CONTINUOUS


def outcome_counts(coverage: Coverage, scoring: Scoring) -> dict[Outcome, int]:
    """Rollouts by outcome: rows as they were scored, keys where there is no row."""
    counts = np.bincount(scoring.outcome[scoring.outcome >= 0], minlength=len(OUTCOMES)).tolist()
    result = dict(zip(OUTCOMES, counts, strict=True))
    result[Outcome.MASKED] = coverage.masked
    result[Outcome.MISSING] = coverage.failed + coverage.lost
    return result


def outcomes(rollouts: Rollouts, scoring: Scoring) -> NDArray[Any]:
    """The `Outcome` of every row; None where a reward stands that no threshold judges."""
    names = np.array([*OUTCOMES, None], dtype=object)
    return names[scoring.outcome]


def begins(*columns: NDArray[Any]) -> Bools:
    """The rows of sorted columns in which some value is another than in the row before."""
    changes: Bools = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    rows: Bools = np.r_[np.ones(min(columns[0].size, 1), np.bool_), changes]
    return rows


def groups_of(task: NDArray[np.int32]) -> tuple[Ints, Ints, Ints]:
    """The task codes, the first row and the number of rows of each task of a sorted column."""
    starts = np.flatnonzero(begins(task))
    return task[starts].astype(np.int64), starts, np.diff(np.r_[starts, task.size])


def _sums(values: NDArray[Any], starts: Ints) -> NDArray[Any]:
    return np.add.reduceat(values, starts) if starts.size else values[:0]


def buckets(rollouts: Rollouts, scoring: Scoring) -> Buckets:
    """The task keys by raw counts; without a pass rate only the tasks without a scored row are listed."""
    bucket = _bucket_codes(rollouts, scoring)
    keys = np.array(rollouts.task_keys, dtype=object)
    return Buckets(rollouts.run, *(tuple(keys[bucket == code].tolist()) for code in range(4)))


def task_results(rollouts: Rollouts, coverage: Coverage, scoring: Scoring) -> tuple[TaskResult, ...]:
    """One result for every task seen anywhere, in the order of the keys."""
    n_tasks = len(rollouts.task_keys)
    names = ["always", "sometimes", "never", "missing", None]
    n, passed = np.zeros((2, n_tasks), np.int64)
    n[scoring.tasks], passed[scoring.tasks] = scoring.n, scoring.c
    rate, shrunk, low, high, sure = _rates(n_tasks, scoring)
    mean_reward = _at_tasks(n_tasks, scoring, scoring.task_rewards)
    columns: list[Any] = [
        endless(rollouts.run), rollouts.task_keys, rollouts.task_names,
        n.tolist(), passed.tolist() if scoring.has_pass_rate else endless(None),
        *(_nan_to_none(values) for values in (rate, mean_reward, shrunk, low, high)),
        [names[code] for code in _bucket_codes(rollouts, scoring).tolist()],
        _nan_to_none(sure), _repeats(rollouts, coverage, scoring),
    ]  # fmt: skip
    return tuple(map(TaskResult, *columns))


def _bucket_codes(rollouts: Rollouts, scoring: Scoring) -> Ints:
    """0 always, 1 sometimes, 2 never, 3 missing, 4 none of them."""
    codes = np.full(len(rollouts.task_keys), 3)
    codes[scoring.tasks] = np.select([not scoring.has_pass_rate, scoring.c == scoring.n, scoring.c == 0], [4, 0, 2], 1)
    return codes


def _rates(n_tasks: int, scoring: Scoring) -> list[Floats]:
    """Rate, shrunk rate, its bounds and the probability of the bucket; nan where there is none."""
    prior = stats.fit_beta_binomial(scoring.n, scoring.c)
    if prior is None or not scoring.has_pass_rate:
        return [np.full(n_tasks, np.nan)] * 5
    shrunk, low, high = stats.posterior(scoring.n, scoring.c, prior)
    sure = stats.p_bucket(scoring.n, scoring.c, prior)
    return [_at_tasks(n_tasks, scoring, values) for values in (scoring.c / scoring.n, shrunk, low, high, sure)]


def _at_tasks(n_tasks: int, scoring: Scoring, values: Any) -> Floats:
    out = np.full(n_tasks, np.nan)
    out[scoring.tasks] = values
    return out


def _nan_to_none(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


def _repeats(rollouts: Rollouts, coverage: Coverage, scoring: Scoring) -> list[tuple[Repeat, ...]]:
    """The rows of every task and the keys it lacks, by repeat number."""
    # Index -1 is a reward that no threshold judges; the wire says null.
    outcome: list[Any] = [*OUTCOMES, None]
    rewards = _nan_to_none(np.where(np.isfinite(rollouts.reward), rollouts.reward, np.nan))
    kinds = [outcome[code] for code in scoring.outcome.tolist()]
    numbers = rollouts.repeat.tolist()
    if scoring.reward_kind in (RewardKind.CONTINUOUS, RewardKind.UNBOUNDED):
        rows = list(map(Repeat, numbers, kinds, rewards))
    else:  # rows are equal by the thousands, and sharing them takes a third of the time
        rows = list(map(cache(Repeat), numbers, kinds, rewards))
    n_tasks = len(rollouts.task_keys)
    bounds = np.searchsorted(rollouts.task, np.arange(n_tasks + 1)).tolist()
    result = [tuple(rows[start:stop]) for start, stop in pairwise(bounds)]
    absent: dict[str, list[Repeat]] = defaultdict(list)
    for key, number in (*coverage.failed_keys, *coverage.lost_keys):
        absent[key].append(Repeat(number, Outcome.MISSING, None))
    for code, key in enumerate(rollouts.task_keys if absent else ()):
        if key in absent:
            result[code] = tuple(sorted((*result[code], *absent[key]), key=lambda each: each.repeat))
    return result

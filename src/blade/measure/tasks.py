"""Turn the repeats of every task into its rate, its bucket and how sure the bucket is."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from itertools import repeat as endless
from typing import TYPE_CHECKING, Any

import numpy as np

from blade import stats
from blade.measure.scoring import OUTCOMES, Scoring
from blade.model import Buckets, Coverage, Outcome, Repeat, RewardKind, Rollouts, TaskResult

if TYPE_CHECKING:
    from blade.model import Floats, Ints


def buckets(rollouts: Rollouts, scoring: Scoring) -> Buckets:
    """The task keys by raw counts; without a pass rate only the tasks without a scored row are listed."""
    bucket = _bucket_codes(rollouts, scoring)
    keys = np.array(rollouts.task_keys, dtype=object)
    return Buckets(rollouts.run, *(tuple(keys[bucket == code].tolist()) for code in range(4)))


def task_results(rollouts: Rollouts, coverage: Coverage, scoring: Scoring) -> tuple[TaskResult, ...]:
    """One result for every task seen anywhere, in the order of the keys."""
    n_tasks = len(rollouts.task_keys)
    names = ["always", "sometimes", "never", "missing", None]
    n = np.zeros(n_tasks, np.int64)
    n[scoring.tasks] = scoring.n
    passed = np.zeros(n_tasks, np.int64)
    passed[scoring.tasks] = scoring.c
    rate, shrunk, low, high, sure = _rates(n_tasks, scoring)
    mean_reward = _spread(n_tasks, scoring, scoring.task_rewards)
    columns: list[Any] = [
        endless(rollouts.run),
        rollouts.task_keys,
        rollouts.task_names,
        n.tolist(),
        passed.tolist() if scoring.has_pass_rate else endless(None),
        *(_nan_to_none(values) for values in (rate, mean_reward, shrunk, low, high)),
        [names[code] for code in _bucket_codes(rollouts, scoring).tolist()],
        _nan_to_none(sure),
        _repeats(rollouts, coverage, scoring),
    ]
    return tuple(map(TaskResult, *columns))


def _bucket_codes(rollouts: Rollouts, scoring: Scoring) -> Ints:
    """0 always, 1 sometimes, 2 never, 3 missing, 4 none of them."""
    codes = np.full(len(rollouts.task_keys), 3)
    if scoring.has_pass_rate:
        codes[scoring.tasks] = np.where(scoring.c == scoring.n, 0, np.where(scoring.c == 0, 2, 1))
    else:
        codes[scoring.tasks] = 4
    return codes


def _rates(n_tasks: int, scoring: Scoring) -> list[Floats]:
    """Rate, shrunk rate, its bounds and the probability of the bucket; nan where there is none."""
    prior = stats.fit_beta_binomial(scoring.n, scoring.c)
    if prior is None or not scoring.has_pass_rate:
        return [np.full(n_tasks, np.nan)] * 5
    shrunk, low, high = stats.posterior(scoring.n, scoring.c, prior)
    sure = stats.p_bucket(scoring.n, scoring.c, prior)
    return [_spread(n_tasks, scoring, values) for values in (scoring.c / scoring.n, shrunk, low, high, sure)]


def _spread(n_tasks: int, scoring: Scoring, values: Any) -> Floats:
    out = np.full(n_tasks, np.nan)
    out[scoring.tasks] = values
    return out


def _nan_to_none(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]


class _Shared(dict[tuple[int, Outcome, float | None], Repeat]):
    def __missing__(self, key: tuple[int, Outcome, float | None]) -> Repeat:
        found = self[key] = Repeat(*key)
        return found


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
        rows = list(map(_Shared().__getitem__, zip(numbers, kinds, rewards, strict=True)))
    n_tasks = len(rollouts.task_keys)
    bounds = np.searchsorted(rollouts.task, np.arange(n_tasks + 1)).tolist()
    found = [tuple(rows[start:stop]) for start, stop in pairwise(bounds)]
    absent: dict[str, list[Repeat]] = defaultdict(list)
    for key, number in (*coverage.failed_keys, *coverage.lost_keys):
        absent[key].append(Repeat(number, Outcome.MISSING, None))
    if absent:
        code_of = {key: code for code, key in enumerate(rollouts.task_keys)}
        for key, lacking in absent.items():
            if (code := code_of.get(key)) is not None:
                found[code] = tuple(sorted((*found[code], *lacking), key=lambda each: each.repeat))
    return found

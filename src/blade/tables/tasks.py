"""Count each task of a run: its rows, passes, rate, bucket, gold, and the rows that are missing."""

from __future__ import annotations

import numpy as np

from blade.formats.assemble import Assembled
from blade.tables.arrays import Array, masked
from blade.tables.rollouts import Columns, Judged

BUCKETS = ("always", "sometimes", "never", "missing")


def tasks(run: Assembled, judged: Judged, gold: Array) -> Columns:
    """One row for every task that was seen anywhere."""
    rollouts, coverage = run.rollouts, run.coverage
    n_tasks = len(rollouts.task_keys)
    counted = ~rollouts.masked
    task = rollouts.task[counted]
    n = np.bincount(task, minlength=n_tasks)
    passes = np.bincount(task, weights=judged.passed[counted].astype(float), minlength=n_tasks).astype(
        np.int64
    )
    reward = np.nan_to_num(rollouts.reward[counted], posinf=0.0, neginf=0.0)
    total = np.bincount(task, weights=reward, minlength=n_tasks)
    is_gone = (n == 0) | (not judged.has_pass_rate)
    share = passes / np.maximum(n, 1)
    bucket = np.where(n == 0, 3, np.where(passes == n, 0, np.where(passes == 0, 2, 1)))
    names = np.array([*BUCKETS, None], object)
    if not judged.has_pass_rate:
        bucket = np.where(n == 0, 3, 4)
    golds = np.full(n_tasks, None, object)
    golds[rollouts.task[::-1]] = gold[::-1]
    return {
        "task": np.array(rollouts.task_keys, object),
        "task_name": np.array(rollouts.task_names, object),
        "n": n,
        "passes": masked(passes, is_gone),
        "rate": masked(share, is_gone),
        "reward": masked(total / np.maximum(n, 1), n == 0),
        "bucket": names[bucket],
        "gold": golds,
        "expected": coverage.expected_per_task,
        "missing": coverage.missing_per_task,
    }

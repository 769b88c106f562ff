"""Count what was expected of a run and what came: expected = scored + failed + masked + lost."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blade.formats.keys import Kept, key_order
from blade.model import Coverage, Rollouts

Key = tuple[str, int]


def coverage(
    rollouts: Rollouts,
    settled: Kept,
    expected: set[Key] | None,
    failed: dict[Key, str],
    unnumbered_copies: int,
) -> Coverage:
    """Count the keys of a run and name those that are not scored."""
    n_tasks = len(rollouts.task_keys)
    first = np.ones(len(rollouts.task), bool)
    first[1:] = (rollouts.task[1:] != rollouts.task[:-1]) | (rollouts.repeat[1:] != rollouts.repeat[:-1])
    group = np.cumsum(first) - 1
    n_keys = int(first.sum())
    all_masked = np.ones(n_keys, bool)
    np.logical_and.at(all_masked, group, rollouts.masked)  # a key with one valid row is scored
    key_task, key_repeat = rollouts.task[first], rollouts.repeat[first]
    per_task = np.bincount(key_task, minlength=n_tasks)
    seen_failed = _only_failed(rollouts, key_task, key_repeat, failed)
    failed_per_task = _per_task(rollouts, seen_failed)
    modal = _modal(per_task + failed_per_task)
    lost = _lost(rollouts, key_task, key_repeat, expected, seen_failed, modal)
    lost_per_task = _per_task(rollouts, lost)
    masked_per_task = np.bincount(key_task[all_masked], minlength=n_tasks).astype(np.int64)
    masked = int(all_masked.sum())
    unexpected = 0
    if expected is not None:
        seen = zip((rollouts.task_keys[t] for t in key_task.tolist()), key_repeat.tolist(), strict=True)
        unexpected = sum(key not in expected for key in seen)
        modal = _modal(_per_task(rollouts, expected)) if expected else modal
    return Coverage(
        expected_from="materialized inputs" if expected is not None else "inferred: tasks x modal repeats",
        expected=n_keys + len(seen_failed) + len(lost),
        scored=n_keys - masked,
        failed=len(seen_failed),
        masked=masked,
        lost=len(lost),
        duplicates=settled.n_identical + settled.n_differing,
        identical_duplicates=settled.n_identical,
        superseded=settled.n_superseded,
        unnumbered_copies=unnumbered_copies,
        unexpected=unexpected,
        repeats=modal,
        expected_per_task=per_task + failed_per_task + lost_per_task,
        missing_per_task=masked_per_task + failed_per_task + lost_per_task,
        failed_keys=tuple(seen_failed),
        failed_classes=tuple(failed[key] for key in seen_failed),
        lost_keys=tuple(lost),
        masked_keys=_named(rollouts, key_task[all_masked], key_repeat[all_masked]),
        duplicate_keys=_named(
            rollouts, rollouts.task[list(settled.differing)], rollouts.repeat[list(settled.differing)]
        ),
    )


def _named(rollouts: Rollouts, tasks: NDArray[Any], repeats: NDArray[Any]) -> tuple[Key, ...]:
    return tuple(
        (rollouts.task_keys[t], int(r)) for t, r in zip(tasks.tolist(), repeats.tolist(), strict=True)
    )


def _only_failed(
    rollouts: Rollouts, key_task: NDArray[Any], key_repeat: NDArray[Any], failed: dict[Key, str]
) -> list[Key]:
    """Keys that failed and were never completed by a later attempt."""
    if not failed:
        return []
    done = set(_named(rollouts, key_task, key_repeat))
    return sorted(failed.keys() - done, key=lambda key: (key_order(key[0]), key[1]))


def _modal(counts: NDArray[Any]) -> int:
    """The commonest number of repeats; the larger one of a tie."""
    counts = counts[counts > 0]
    if not len(counts):
        return 0
    shares = np.bincount(counts)
    return int(len(shares) - 1 - np.argmax(shares[::-1]))


def _per_task(rollouts: Rollouts, keys: Collection[Key]) -> NDArray[np.int64]:
    """How many of the keys each task has."""
    if not keys:
        return np.zeros(len(rollouts.task_keys), np.int64)
    place = {key: number for number, key in enumerate(rollouts.task_keys)}
    return np.bincount([place[task] for task, _ in keys], minlength=len(place)).astype(np.int64)


def _lost(
    rollouts: Rollouts,
    key_task: NDArray[Any],
    key_repeat: NDArray[Any],
    expected: set[Key] | None,
    failed: list[Key],
    modal: int,
) -> list[Key]:
    """Expected keys that left no trace."""
    if expected is not None:
        missing = expected - set(_named(rollouts, key_task, key_repeat)) - set(failed)
        return sorted(missing, key=lambda key: (key_order(key[0]), key[1]))
    counts = np.bincount(key_task, minlength=len(rollouts.task_keys)) + _per_task(rollouts, failed)
    short = np.flatnonzero(counts < modal)
    if not len(short):
        return []
    usual = _usual_repeats(key_repeat, modal)
    have: dict[int, set[int]] = {int(task): set() for task in short}
    is_short = np.isin(key_task, short)
    for task, repeat in zip(key_task[is_short].tolist(), key_repeat[is_short].tolist(), strict=True):
        have[task].add(repeat)
    place = {rollouts.task_keys[task]: task for task in have}
    for name, repeat in failed:
        if name in place:
            have[place[name]].add(repeat)
    found = []
    for code in short.tolist():
        free = [repeat for repeat in usual if repeat not in have[code]]
        found += [(rollouts.task_keys[code], repeat) for repeat in free[: modal - int(counts[code])]]
    return found


def _usual_repeats(key_repeat: NDArray[Any], modal: int) -> list[int]:
    """The repeat indices a task usually has, commonest first, then in order."""
    values, counts = np.unique(key_repeat, return_counts=True)
    ranked = sorted(zip((-counts).tolist(), values.tolist(), strict=True))
    usual = sorted(value for _, value in ranked[:modal])
    extra = max(usual, default=-1) + 1
    return usual + list(range(extra, extra + modal))

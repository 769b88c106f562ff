"""Real rewards of each task into the expected best and worst of k draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from blade.model import Floats


def best_of_k(rewards: ArrayLike, k: int) -> float:
    """Mean over all C(n,k) draws of the largest reward = Σ C(i−1,k−1)/C(n,k)·r_(i); nan where n < k."""
    return _of_one_task(rewards, k, best=True)


def worst_of_k(rewards: ArrayLike, k: int) -> float:
    """Mean over all C(n,k) draws of the smallest reward = Σ C(n−i,k−1)/C(n,k)·r_(i); nan where n < k."""
    return _of_one_task(rewards, k, best=False)


def best_of_k_by_task(rewards: ArrayLike, starts: ArrayLike, counts: ArrayLike, k: int) -> Floats:
    """`best_of_k` of every task; its rewards are rising and begin at `starts`."""
    return _by_task(rewards, starts, counts, k, best=True)


def worst_of_k_by_task(rewards: ArrayLike, starts: ArrayLike, counts: ArrayLike, k: int) -> Floats:
    """`worst_of_k` of every task; its rewards are rising and begin at `starts`."""
    return _by_task(rewards, starts, counts, k, best=False)


def _of_one_task(rewards: ArrayLike, k: int, *, best: bool) -> float:
    rising = np.sort(np.asarray(rewards, np.float64))
    if k < 1 or rising.size < k:
        return math.nan
    return float(_weighted(rising[None, :], k, best=best)[0])


def _by_task(rewards: ArrayLike, starts: ArrayLike, counts: ArrayLike, k: int, *, best: bool) -> Floats:
    values = np.asarray(rewards, np.float64)
    first, n_rows = np.asarray(starts, np.int64), np.asarray(counts, np.int64)
    out = np.full(n_rows.size, np.nan)
    by_count = np.argsort(n_rows, kind="stable")
    borders = np.flatnonzero(np.diff(n_rows[by_count])) + 1
    for tasks in np.split(by_count, borders):
        count = int(n_rows[tasks[0]]) if tasks.size else 0
        if 1 <= k <= count:
            block = values[first[tasks, None] + np.arange(count)]
            out[tasks] = _weighted(block, k, best=best)
    return out


def _weighted(block: Floats, k: int, *, best: bool) -> Floats:
    weights = _weights_of_best(block.shape[1], k)
    mean = block @ (weights if best else weights[::-1])
    # Weights sum to one only up to rounding; a mean above every reward would fall out of [0, 1].
    bounded: Floats = np.clip(mean, block[:, 0], block[:, -1])
    return bounded


def _weights_of_best(n: int, k: int) -> Floats:
    """C(i−1,k−1)/C(n,k) for i = 1..n, from k/n at i = n downwards, so nothing overflows."""
    i = np.arange(n, k, -1.0)
    weights = np.zeros(n)
    weights[k - 1 :] = np.cumprod(np.concatenate(([k / n], (i - k) / (i - 1))))[::-1]
    return weights

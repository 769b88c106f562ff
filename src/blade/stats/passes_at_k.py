"""Compute pass@k, pass^k, agreement of repeats, best and worst of k, and the majority vote of k, task by task."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from blade.model import Bools, Floats, Ints


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """P(a pass among k of the n rows) = 1 − C(n−c,k)/C(n,k) (Chen et al. 2021, eq. 1); nan where n < k."""
    return _of_draws(n, c, k, lambda rows, passes: 1.0 - _all_drawn(rows, rows - passes, k))


def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """P(k of the n rows all pass) = C(c,k)/C(n,k) (Yao et al. 2024, tau-bench); nan where n < k."""
    return _of_draws(n, c, k, lambda rows, passes: _all_drawn(rows, passes, k))


def self_agreement(n: ArrayLike, c: ArrayLike) -> Floats:
    """P(two rows of the task agree) = [c(c−1)+(n−c)(n−c−1)]/[n(n−1)], unbiased; nan where n < 2."""
    return per_pair(n, c, 2, lambda n, c: (c * (c - 1) + (n - c) * (n - c - 1)) / (n * (n - 1)))


def flip_rate(n: ArrayLike, c: ArrayLike) -> Floats:
    """P(two rows of the task differ) = 2c(n−c)/[n(n−1)], the null for flips between runs; nan where n < 2."""
    return per_pair(n, c, 2, lambda n, c: 2 * c * (n - c) / (n * (n - 1)))


def _of_draws(n: ArrayLike, c: ArrayLike, k: int, formula: Callable[[Ints, Ints], Floats]) -> Floats:
    if k < 1:
        return np.full(np.broadcast(np.atleast_1d(n), np.atleast_1d(c)).shape, np.nan)
    return per_pair(n, c, k, formula)


def _all_drawn(n: Ints, marked: Ints, k: int) -> Floats:
    """C(marked,k)/C(n,k) as a product: no factorial to overflow, no logarithm to round."""
    drawn = np.arange(k).reshape(-1, *[1] * n.ndim)
    chances: Floats = np.multiply.reduce(np.maximum(marked - drawn, 0) / (n - drawn), axis=0)
    return chances


def best_of_k_by_task(
    rewards: ArrayLike, starts: ArrayLike, counts: ArrayLike, k: int, worst: bool = False
) -> Floats:
    """The mean best, or worst, reward of k rows of every task; its rewards are rising and begin at `starts`."""
    values = np.asarray(rewards, np.float64)
    first, n_rows = np.asarray(starts, np.int64), np.asarray(counts, np.int64)
    out = np.full(n_rows.size, np.nan)
    by_count = np.argsort(n_rows, kind="stable")
    borders = np.flatnonzero(np.diff(n_rows[by_count])) + 1
    for tasks in np.split(by_count, borders):
        count = int(n_rows[tasks[0]]) if tasks.size else 0
        if 1 <= k <= count:
            block = values[first[tasks, None] + np.arange(count)]
            # C(i−1,k−1)/C(n,k) for i = 1..n, from k/n at i = n downwards, so nothing overflows
            i = np.arange(count, k, -1.0)
            weights = np.zeros(count)
            weights[k - 1 :] = np.cumprod(np.concatenate(([k / count], (i - k) / (i - 1))))[::-1]
            # Weights sum to one only up to rounding; a mean above every reward would fall out of [0, 1].
            out[tasks] = np.clip(block @ (weights[::-1] if worst else weights), block[:, 0], block[:, -1])
    return out


def majority_at_k(counts_by_answer: Sequence[tuple[int, float]], n_none: int, k: int) -> float:
    """maj@k: mean over all C(n,k) draws of the mean score among the answers tied for most votes.

    `counts_by_answer` holds (rows, score) of each answer; the `n_none` rows without an answer never
    vote, and a draw without a vote scores 0 (Wang et al. 2023, self-consistency). nan where n < k.
    """
    answers = tuple(sorted((int(count), float(score)) for count, score in counts_by_answer if count > 0))
    n = sum(count for count, _ in answers) + n_none
    if k < 1 or n < k or n_none < 0:
        return math.nan
    return _majority(answers, n_none, k)


@lru_cache(maxsize=1 << 16)
def _majority(answers: tuple[tuple[int, float], ...], n_none: int, k: int) -> float:
    n = sum(count for count, _ in answers) + n_none
    # Every draw of k rows weighs share^k(1−share)^(n−k) alike, so any share gives the same mean;
    # near k/n the binomial weights neither overflow nor vanish as C(n,k) would.
    share = (k + 0.5) / (n + 1)
    ballots = [(_binomial(count, share, k), score) for count, score in answers]
    silent = np.zeros(k + 1)
    silent[: n_none + 1] = _binomial(n_none, share, k)
    most = min(k, max((count for count, _ in answers), default=0))
    won = sum(_won_with(votes, ballots, silent) for votes in range(1, most + 1))
    return min(1.0, max(0.0, won / float(_binomial(n, share, k)[k])))


def _won_with(votes: int, ballots: list[tuple[Floats, float]], silent: Floats) -> float:
    """Weight of the draws won with exactly `votes`, times the mean score of their winners.

    The state is indexed by [weight, weight × summed scores of winners][winners so far][rows drawn].
    """
    k = silent.size - 1
    state = np.zeros((2, k // votes + 1, k + 1))
    state[0, 0] = silent
    for chance, score in ballots:
        after = state * chance[0]
        for cast in range(1, min(votes, chance.size)):
            after[:, :, cast:] += state[:, :, :-cast] * chance[cast]
        if chance.size > votes:
            tied = state[:, :-1, :-votes] * chance[votes]
            tied[1] += tied[0] * score
            after[:, 1:, votes:] += tied
        state = after
    return float((state[1, 1:, k] / np.arange(1, state.shape[1])).sum())


def _binomial(n: int, share: float, most: int) -> Floats:
    """Chances of 0, 1, ... `most` successes among n, each as likely as `share`."""
    log_odds, log_none = math.log(share / (1 - share)), n * math.log(1 - share)
    top = math.lgamma(n + 1)
    successes = range(min(n, most) + 1)
    logs = [top - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_odds + log_none for i in successes]
    return np.exp(logs)


def valid_pairs(n: ArrayLike, c: ArrayLike, least: int) -> tuple[Ints, Ints, Bools]:
    """The pairs with n >= `least` and 0 <= c <= n, and which tasks they are."""
    rows, passes = np.broadcast_arrays(*np.atleast_1d(np.asarray(n, np.int64), np.asarray(c, np.int64)))
    valid: Bools = (rows >= least) & (passes >= 0) & (passes <= rows)
    return rows[valid], passes[valid], valid


def distinct_pairs(n: Ints, c: Ints) -> tuple[Ints, Ints, Ints]:
    """Distinct (n, c), and for each task the place of its own among them."""
    if n.size == 0:
        return n, c, n
    width = int(n.max()) + 1
    key = n * width + c
    span = width * width
    if span > 4 * n.size + 4096:
        result, place = np.unique(key, return_inverse=True)
    else:  # a table beats a sort tenfold, and repeats are few in almost every run
        result = np.flatnonzero(np.bincount(key, minlength=span))
        table = np.zeros(span, np.int64)
        table[result] = np.arange(result.size)
        place = table[key]
    return result // width, result % width, place


def per_pair(n: ArrayLike, c: ArrayLike, least: int, formula: Callable[[Ints, Ints], Floats]) -> Floats:
    """`formula` for every task along the last axis; nan where n < `least` or c is impossible."""
    rows, passes, valid = valid_pairs(n, c, least)
    distinct_n, distinct_c, place = distinct_pairs(rows, passes)
    values = np.asarray(formula(distinct_n, distinct_c), np.float64)
    out = np.full((*values.shape[:-1], valid.size), np.nan)
    out[..., valid] = values[..., place]
    return out

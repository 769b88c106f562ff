"""Votes of one task into the expected score of its majority answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from blade.model import Floats


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
    ballots = [(_binomial(count, share), score) for count, score in answers]
    silent = np.zeros(k + 1)
    silent[: n_none + 1] = _binomial(n_none, share)[: k + 1]
    most = min(k, max((count for count, _ in answers), default=0))
    won = sum(_won_with(votes, ballots, silent) for votes in range(1, most + 1))
    return min(1.0, max(0.0, won / float(_binomial(n, share)[k])))


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


def _binomial(n: int, share: float) -> Floats:
    log_odds, log_none = math.log(share / (1 - share)), n * math.log(1 - share)
    top = math.lgamma(n + 1)
    logs = [
        top - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_odds + log_none for i in range(n + 1)
    ]
    return np.exp(logs)

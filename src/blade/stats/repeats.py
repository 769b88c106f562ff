"""Rows and passes of each task into pass@k, pass^k, G-Pass and agreement."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from blade.stats.pairs import per_pair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from blade.model import Floats, Ints


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """P(a pass among k of the n rows) = 1 − C(n−c,k)/C(n,k) (Chen et al. 2021, eq. 1); nan where n < k."""
    return _of_draws(n, c, k, lambda rows, passes: 1.0 - _all_drawn(rows, rows - passes, k))


def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Floats:
    """P(k of the n rows all pass) = C(c,k)/C(n,k) (Yao et al. 2024, tau-bench); nan where n < k."""
    return _of_draws(n, c, k, lambda rows, passes: _all_drawn(rows, passes, k))


def g_pass(n: ArrayLike, c: ArrayLike, k: int, tau: float) -> Floats:
    """P(at least ⌈τk⌉ of k rows pass), hypergeometric (Liu et al. 2024, G-Pass@k); nan where n < k.

    One pass is the least asked for, so that τ → 0 is pass@k.
    """
    # 0.28·25 is 7.000000000000001 in floats and must not ask for 8.
    least = max(1, math.ceil(tau * k - 1e-9))
    return _of_draws(n, c, k, lambda rows, passes: _hypergeometric_tail(rows, passes, k, least))


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


def _hypergeometric_tail(n: Ints, c: Ints, k: int, least: int) -> Floats:
    log_factorial = _log_factorials(int(n.max(initial=k)))

    def log_choose(of: Ints, take: int) -> Floats:
        chosen: Floats = log_factorial[of] - log_factorial[take] - log_factorial[of - take]
        return chosen

    tail = np.zeros(n.shape)
    for passes in range(least, k + 1):
        possible = (passes <= c) & (k - passes <= n - c)
        rows, good = n[possible], c[possible]
        ways = log_choose(good, passes) + log_choose(rows - good, k - passes)
        tail[possible] += np.exp(ways - log_choose(rows, k))
    return np.minimum(tail, 1.0)


@lru_cache(maxsize=8)
def _log_factorials(largest: int) -> Floats:
    return np.array([math.lgamma(i + 1.0) for i in range(largest + 1)])

"""Turn a table of runs by tasks into how each task agrees with the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from blade.model import Floats

_ROUNDS = 50
_PULL = 0.25  # inverse variance of the prior on abilities and difficulties, on the logit scale


def item_rest(rates: ArrayLike) -> Floats:
    """Correlation over runs of each task with the sum of the others; nan where one of them does not vary."""
    x = np.asarray(rates, np.float64)
    rest = x.sum(axis=1, keepdims=True) - x
    dx, dr = x - x.mean(axis=0), rest - rest.mean(axis=0)
    spread = np.sqrt((dx**2).sum(axis=0) * (dr**2).sum(axis=0))
    found: Floats = np.full(x.shape[1], np.nan)
    np.divide((dx * dr).sum(axis=0), spread, out=found, where=spread > 1e-12)
    return found


def loevinger(rates: ArrayLike) -> Floats:
    """Loevinger's H of each task: its covariances with the others over the largest that their rates allow."""
    x = np.asarray(rates, np.float64)
    centred = x - x.mean(axis=0)
    # sorted alike, two tasks covary as much as they can; for 0 and 1 that is min(p, q) - pq
    ranked = np.sort(x, axis=0) - x.mean(axis=0)
    seen = (centred * (centred.sum(axis=1, keepdims=True) - centred)).sum(axis=0)
    most = (ranked * (ranked.sum(axis=1, keepdims=True) - ranked)).sum(axis=0)
    found: Floats = np.full(x.shape[1], np.nan)
    np.divide(seen, most, out=found, where=most > 1e-12)
    return found


def rasch(n: ArrayLike, c: ArrayLike) -> Floats:
    """The chance of every run on every task if one ability and one difficulty decide (Rasch 1960).

    Found by Newton's steps on the posterior with a wide normal prior, which keeps tasks that all runs pass
    or all fail finite.
    """
    rows, passes = np.asarray(n, np.float64), np.asarray(c, np.float64)
    ability = np.zeros((rows.shape[0], 1))
    ease = np.zeros((1, rows.shape[1]))
    for _ in range(_ROUNDS):
        for axis in (1, 0):
            chance = 1 / (1 + np.exp(-(ability + ease)))
            weight = (rows * chance * (1 - chance)).sum(axis=axis, keepdims=True) + _PULL
            slope = (passes - rows * chance).sum(axis=axis, keepdims=True)
            if axis == 1:
                ability = ability + np.clip((slope - _PULL * ability) / weight, -1, 1)
            else:
                ease = ease + np.clip((slope - _PULL * ease) / weight, -1, 1)
    found: Floats = 1 / (1 + np.exp(-(ability + ease)))
    return found

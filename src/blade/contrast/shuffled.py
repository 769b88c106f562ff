"""Turn features and outcomes of many tasks into p-values that shuffled outcomes would not give."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from blade.stats import seeded_rng

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Bools, Floats

    Matrix = NDArray[np.float32]

SLACK = 1e-4  # statistics are sums of 32-bit floats
FEW, MANY = 199, 1999  # shuffles of a whole run: the least that can show .05, and enough to tell .04 from .06
_WORK = 4e9  # multiplications that the shuffles of a run may cost
_BLOCK = 1_000_000  # random numbers drawn at a time
EXACT = 5000  # labellings of one task that are all tried; beyond, so many are drawn
_SCREEN = 199  # labellings that are tried first
BAR = 0.05


def unpacked(bits: Sequence[int], n: int) -> Bools:
    """Features as rows, rollouts as columns."""
    width = (n + 7) // 8
    packed = np.frombuffer(b"".join(one.to_bytes(width, "little") for one in bits), np.uint8)
    flat = np.unpackbits(packed.reshape(len(bits), width), axis=1, bitorder="little")
    return flat[:, :n].astype(bool)


def variance(shows: Bools, fails: int) -> Floats:
    """Of the number of failing rollouts with each feature, if outcomes were dealt at random in a task."""
    n = shows.shape[1]
    with_it = shows.sum(1).astype(np.float64)
    found: Floats = with_it * (n - with_it) * fails * (n - fails) / (n * n * max(n - 1, 1))
    return found


class Stratum:
    """One task: which rollouts fail, and which show each of some features of the run."""

    def __init__(self, shows: Bools, columns: NDArray[np.int64], failed: Bools) -> None:
        self.shows, self.columns, self.failed = shows, columns, failed

    @property
    def n(self) -> int:
        return int(self.failed.size)


def max_adjusted(strata: Sequence[Stratum], n_features: int, z: Floats, scale: Floats) -> Floats:
    """Adjusted p of each |z|: how often shuffling outcomes within tasks gives some feature as large a one."""
    rows = sum(stratum.n for stratum in strata)
    times = int(np.clip(_WORK / max(1, rows * n_features), FEW, MANY))
    total = np.zeros((times, n_features), np.float32)
    rng = seeded_rng("contrast", "shuffled outcomes")
    for block in _blocks(sorted(strata, key=lambda stratum: stratum.n), times):
        total += _dealt(block, times, rng) @ _centred(block, n_features)
    largest = np.sort(np.abs(total * (1 / scale).astype(np.float32)).max(1))
    reached = times - np.searchsorted(largest, np.abs(z) - SLACK)
    return (1 + reached) / (1 + times)


def _blocks(strata: Sequence[Stratum], times: int) -> Iterator[list[Stratum]]:
    block: list[Stratum] = []
    for stratum in strata:
        if block and times * (len(block) + 1) * stratum.n > _BLOCK:
            yield block
            block = []
        block.append(stratum)
    if block:
        yield block


def _centred(block: Sequence[Stratum], n_features: int) -> Matrix:
    """Rollouts as rows: 1 or 0 less the share of the task that shows the feature."""
    found = np.zeros((sum(stratum.n for stratum in block), n_features), np.float32)
    start = 0
    for stratum in block:
        shows = stratum.shows.astype(np.float32)
        found[start : start + stratum.n, stratum.columns] = (shows - shows.mean(1, keepdims=True)).T
        start += stratum.n
    return found


def _dealt(block: Sequence[Stratum], times: int, rng: np.random.Generator) -> Matrix:
    """Outcomes dealt anew within each task, a row for each time: 1 where a rollout is made to fail."""
    widest = max(stratum.n for stratum in block)
    drawn = rng.random((times, len(block), widest))
    for at, stratum in enumerate(block):
        drawn[:, at, stratum.n :] = 2.0
    fails = np.array([int(stratum.failed.sum()) for stratum in block])
    bar = np.take_along_axis(np.sort(drawn, axis=2), (fails - 1)[None, :, None], axis=2)
    real = np.arange(widest) < np.array([[stratum.n] for stratum in block])
    return (drawn <= bar)[:, real].astype(np.float32)


# ---- One task ----------------------------------------------------------------------------------


def task_adjusted(shows: Bools, failed: Bools) -> tuple[float, int] | None:
    """Of one task the adjusted p of its strongest feature, and which that is; None if none can be shown.

    The p counts the labellings with as many failures under which some feature is as strong.
    """
    n, fails = int(failed.size), int(failed.sum())
    if math.comb(n, fails) < 1 / BAR or not shows.size:
        return None
    distinct, first = np.unique(shows, axis=0, return_index=True)
    scale = np.sqrt(variance(distinct, fails))
    usable = scale > 0
    if not usable.any():
        return None
    rates = (distinct[usable] - distinct[usable].mean(1, keepdims=True)) / scale[usable, None]
    strength = np.abs(rates @ failed)
    best = float(strength.max())
    strongest = int(first[usable][strength >= best - SLACK].min())
    labellings = _labellings(n, fails)
    exact = math.comb(n, fails) <= EXACT
    if not exact:
        screened = _reached(rates, labellings[:_SCREEN], best)
        if screened > 2 * BAR * _SCREEN:
            return (1 + screened) / (1 + _SCREEN), strongest
    reached = _reached(rates, labellings, best)
    p = reached / len(labellings) if exact else (1 + reached) / (1 + len(labellings))
    return p, strongest


def _reached(rates: Floats, labellings: NDArray[np.float32], best: float) -> int:
    strongest = np.abs(labellings @ rates.T.astype(np.float32)).max(1)
    return int(np.count_nonzero(strongest >= best - SLACK))


@lru_cache(maxsize=64)
def _labellings(n: int, fails: int) -> NDArray[np.float32]:
    """Ways to choose which of n rollouts fail: all of them, or many at random."""
    if math.comb(n, fails) <= EXACT:
        chosen = np.array(list(combinations(range(n), fails)))
    else:
        drawn = seeded_rng("contrast", "labellings", str(n), str(fails)).random((EXACT - 1, n))
        chosen = np.argsort(drawn, axis=1)[:, :fails]
    found = np.zeros((len(chosen), n), np.float32)
    np.put_along_axis(found, chosen, 1.0, axis=1)
    return found

"""Turn the tasks of two runs into points and the band that noise alone would fill."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from blade.model import Comparison, Report, TaskResult
from blade.report.change.words import candidate_keys

MAX_SPOTS = 400  # distinct points; more are gathered on a grid
GRID = 25  # steps of that grid along each axis
EXACT = 100  # repeats up to which the band is exact; beyond, a normal approximation serves
Z = 1.959963984540054  # 97.5% of the normal distribution


class Spot(NamedTuple):
    """Tasks that share a rate in the baseline and one in the candidate."""

    x: float
    y: float
    n: int
    side: str  # better, worse (both outside the band), or noise


class Scatter(NamedTuple):
    spots: tuple[Spot, ...]
    n_tasks: int
    repeats: tuple[int, int]  # the usual ones of a task, by which the band is drawn
    band: tuple[tuple[float, float, float], ...]  # rate in the baseline, lowest and highest in the candidate
    gathered: bool  # spots stand for cells of a grid

    def beyond(self) -> int:
        return sum(spot.n for spot in self.spots if spot.side != "noise")


def scatter(report: Report, comparison: Comparison) -> Scatter | None:
    """The common tasks as points; None where the report lacks them, or where tasks have no repeats."""
    is_rate = comparison.score_name.startswith("pass")
    before, after = (_tasks(report, name, is_rate) for name in (comparison.baseline, comparison.candidate))
    other = candidate_keys(comparison)
    keys = [(key, other.get(key, key)) for key in comparison.alignment.common]
    keys = [(a, b) for a, b in keys if a in before and b in after]
    if not keys:
        return None
    pairs = Counter((*before[a], *after[b]) for a, b in keys)
    repeats = _usual(pairs)
    if is_rate and repeats == (1, 1):  # four corners, which the buckets before and after tell as well
        return None
    half = _half_width(comparison, repeats)
    spots: Counter[tuple[float, float, str]] = Counter()
    for (sum_a, n_a, sum_b, n_b), n in pairs.items():
        x, y = sum_a / n_a, sum_b / n_b
        if is_rate:
            noise = is_noise(round(sum_a), n_a, round(sum_b), n_b)
        else:
            noise = half is None or abs(y - x) <= half
        spots[x, y, "noise" if noise or x == y else "better" if y > x else "worse"] += n
    gathered = len(spots) > MAX_SPOTS
    spots = _gathered(spots) if gathered else spots
    found = tuple(Spot(x, y, n, side) for (x, y, side), n in sorted(spots.items()))
    values = [one for spot in found for one in (spot.x, spot.y)]
    band = binary_band(*repeats) if is_rate else _wide_band(half, min(values), max(values))
    return Scatter(found, len(keys), repeats, band, gathered)


def _tasks(report: Report, run: str, is_rate: bool) -> dict[str, tuple[float, int]]:
    """Task -> passes (or sum of rewards) and repeats."""
    found: dict[str, tuple[float, int]] = {}
    for task in report.tasks:
        if task.run == run and task.n and (total := _total(task, is_rate)) is not None:
            found[task.task] = (total, task.n)
    return found


def _total(task: TaskResult, is_rate: bool) -> float | None:
    if is_rate:
        return None if task.passed is None else float(task.passed)
    if task.mean_reward is None or not math.isfinite(task.mean_reward):
        return None
    return task.mean_reward * task.n


def _usual(pairs: Counter[tuple[float, int, float, int]]) -> tuple[int, int]:
    """The most frequent numbers of repeats; of equally frequent ones the largest."""
    seen: Counter[tuple[int, int]] = Counter()
    for (_, n_a, _, n_b), n in pairs.items():
        seen[n_a, n_b] += n
    return max(seen, key=lambda at: (seen[at], min(at), max(at)))


def _half_width(comparison: Comparison, repeats: tuple[int, int]) -> float | None:
    """How far the difference of two task means of one model strays in 95 of 100 cases."""
    power = comparison.power
    if power is None or power.sigma2_a is None or power.sigma2_b is None:
        return None
    return Z * math.sqrt(max(0.0, power.sigma2_a / repeats[0] + power.sigma2_b / repeats[1]))


def is_noise(c_a: int, n_a: int, c_b: int, n_b: int) -> bool:
    """Whether one rate for both runs gives such counts in more than 5 of 100 cases (Fisher, two-sided)."""
    if max(n_a, n_b) > EXACT:
        rate = (c_a + c_b) / (n_a + n_b)
        se = math.sqrt(rate * (1 - rate) * (1 / n_a + 1 / n_b))
        return abs(c_b / n_b - c_a / n_a) <= Z * se + 1e-12
    return c_b in _likely(n_a, n_b, c_a + c_b)


@lru_cache(maxsize=4096)
def _likely(n_a: int, n_b: int, total: int) -> frozenset[int]:
    """The passes of the candidate, of `total` in both runs, that noise would give."""
    possible = range(max(0, total - n_a), min(n_b, total) + 1)
    ways = {c: math.comb(n_b, c) * math.comb(n_a, total - c) for c in possible}
    everything = sum(ways.values())
    return frozenset(c for c, w in ways.items() if 20 * sum(v for v in ways.values() if v <= w) > everything)


def binary_band(n_a: int, n_b: int) -> tuple[tuple[float, float, float], ...]:
    """For every rate in the baseline the lowest and highest in the candidate that noise would give."""
    found = []
    for c_a in range(0, n_a + 1, max(1, n_a // 50)):
        inside = [c_b for c_b in range(n_b + 1) if is_noise(c_a, n_a, c_b, n_b)]
        found.append((c_a / n_a, min(inside) / n_b, max(inside) / n_b))
    return tuple(found)


def _wide_band(half: float | None, low: float, high: float) -> tuple[tuple[float, float, float], ...]:
    if half is None or low == high:
        return ()
    steps = [low + at * (high - low) / 40 for at in range(41)]
    return tuple((x, x - half, x + half) for x in steps)


def _gathered(spots: Counter[tuple[float, float, str]]) -> Counter[tuple[float, float, str]]:
    """The spots moved to the nearest point of a grid over their range."""
    values = [one for x, y, _ in spots for one in (x, y)]
    low, step = min(values), (max(values) - min(values)) / GRID or 1.0
    found: Counter[tuple[float, float, str]] = Counter()
    for (x, y, side), n in spots.items():
        found[low + round((x - low) / step) * step, low + round((y - low) / step) * step, side] += n
    return found

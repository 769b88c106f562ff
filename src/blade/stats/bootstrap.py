"""Resample tasks for an interval of any function of their means, with seeds that draw the same on every machine."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_CELLS = 4_000_000  # weights held at once
_MANY = 4096  # distinct tasks from which a normal weight stands for a multinomial one


def task_bootstrap(
    columns: ArrayLike, statistic: Callable[[NDArray[Any]], NDArray[Any]], draws: int = 2000,
    seed: tuple[str, ...] = (), level: float = 0.95,
) -> tuple[float, float] | None:
    """Percentile interval of `statistic` over tasks drawn anew; None below two tasks, or
    where no draw gives a number.

    `columns` is tasks x values; `statistic` takes draws x means and gives one number a draw. Tasks with the
    same values are one cell of a multinomial, so that a hundred thousand tasks cost what their values cost.
    """
    table = np.asarray(columns, np.float64)
    if table.ndim == 1:
        table = table[:, None]
    n = table.shape[0]
    if n < 2 or not np.isfinite(table).all():
        return None
    cells, counts = _distinct(table)
    rng = seeded_rng("task bootstrap", *seed)
    means = (
        _normal_means(table, draws, rng) if len(cells) > _MANY else _drawn_means(cells, counts, draws, rng)
    )
    result = statistic(means)
    result = result[np.isfinite(result)]
    if not result.size:
        return None
    low, high = np.quantile(result, [0.5 - level / 2, 0.5 + level / 2])
    return float(low), float(high)


def _distinct(table: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    starts = np.flatnonzero(np.r_[True, (ordered[1:] != ordered[:-1]).any(1)])
    return ordered[starts], np.diff(np.r_[starts, len(ordered)])


def _drawn_means(
    cells: NDArray[Any], counts: NDArray[Any], draws: int, rng: np.random.Generator
) -> NDArray[Any]:
    n = int(counts.sum())
    size = max(1, min(draws, _CELLS // len(cells)))
    parts = []
    for start in range(0, draws, size):
        weights = rng.multinomial(n, counts / n, size=min(size, draws - start))
        parts.append(weights @ cells / n)
    return np.concatenate(parts)


def _normal_means(table: NDArray[Any], draws: int, rng: np.random.Generator) -> NDArray[Any]:
    """Means of thousands of distinct tasks vary as a normal law does: drawn from it at once."""
    spread = np.atleast_2d(np.cov(table.T, ddof=1)) / len(table)
    drawn: NDArray[Any] = rng.multivariate_normal(table.mean(0), spread, size=draws)
    return drawn


def seeded_rng(*parts: str) -> np.random.Generator:
    """A generator seeded by `parts`: their order counts, and ("ab", "c") is not ("a", "bc")."""
    digest = blake2b(digest_size=16)
    for part in parts:
        # Lone surrogates occur in task ids read from broken JSON.
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return np.random.default_rng(int.from_bytes(digest.digest(), "big"))

"""Turn columns and groups of rows into five statistics a group, rounded as pandas rounds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from blade.evaluate.profile.table import Column, Floats, Ints

STATISTICS = ("mean", "max", "min", "median", "std")
_CHUNK = 4096  # groups taken at a time


def described(columns: Sequence[Column], counts: Ints) -> Iterator[dict[str, float]]:
    """One set of statistics a group; the groups follow one another, `counts` rows each.

    The names are grouped by statistic. What is undefined is left out; only in a group in which no column
    has a standard deviation, that of the columns which all its rows have is 0.
    """
    ends = np.cumsum(counts)
    for first in range(0, counts.size, _CHUNK):
        part = counts[first : first + _CHUNK]
        end = int(ends[first + part.size - 1])
        yield from _chunk(columns, part, end - int(part.sum()), end)


def _chunk(columns: Sequence[Column], counts: Ints, begin: int, end: int) -> Iterator[dict[str, float]]:
    names: list[str] = []
    found: list[Floats] = []
    present: list[Ints] = []
    for column in columns:
        low, high = np.searchsorted(column.positions, (begin, end))
        if low < high:
            rows = np.full(end - begin, np.nan)
            rows[column.positions[low:high] - begin] = column.values[low:high]
            values, n_present = five(rows, counts)
            names.append(column.name)
            found.append(values)
            present.append(n_present)
    if not names:
        yield from ({} for _ in range(counts.size))
        return
    table = np.stack(found)  # column x statistic x group
    spread = table[:, STATISTICS.index("std")]
    alone = np.isnan(spread).all(axis=0) & (np.stack(present) == counts)
    spread[alone] = 0.0
    keys = [f"{statistic}/{name}" for statistic in STATISTICS for name in names]
    by_group = table.transpose(2, 1, 0).reshape(counts.size, -1).tolist()
    for values_of_one in by_group:
        yield {key: value for key, value in zip(keys, values_of_one, strict=True) if value == value}


def five(rows: Floats, counts: Ints) -> tuple[Floats, Ints]:
    """Statistic x group, and how many values each group has; absent values are nan."""
    starts = np.cumsum(counts) - counts
    out = np.full((len(STATISTICS), counts.size), np.nan)
    n_present = np.zeros(counts.size, np.int64)
    for count in np.unique(counts):
        groups = np.flatnonzero(counts == count)
        if not count:
            continue
        if groups.size == 1:  # of all rows of an agent no copy is made
            block = rows[starts[groups[0]] : starts[groups[0]] + count][None, :]
        else:
            block = rows[starts[groups][:, None] + np.arange(count)]
        n_present[groups], out[:, groups] = _of_block(block)
    return out, n_present


def _of_block(block: Floats) -> tuple[Ints, Floats]:
    """How many values each line of a block has, and its statistics."""
    here = ~np.isnan(block)
    n: Ints = here.sum(axis=1)
    with np.errstate(all="ignore"):
        # Sums along a contiguous axis are numpy's pairwise ones; the last bits of the files depend on them.
        mean = np.where(here, block, 0.0).sum(axis=1) / n
        squares = np.where(here, (mean[:, None] - block) ** 2, 0.0).sum(axis=1)
        std = np.sqrt(squares / np.where(n > 1, n - 1, np.nan))
        rising = np.sort(block, axis=1)  # nan comes last
        line = np.arange(n.size)
        median = (
            rising[line, np.maximum(n - 1, 0) // 2] + rising[line, np.minimum(n // 2, block.shape[1] - 1)]
        ) / 2
    largest = rising[line, np.maximum(n - 1, 0)]
    found = np.stack([mean, largest, rising[:, 0], median, std])
    found[:, n == 0] = np.nan
    return n, found

"""Turn columns and groups of rows into five statistics a group, rounded as pandas rounds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from blade_eval.profile.table import Column, Floats, Ints

STATISTICS = ("mean", "max", "min", "median", "std")
_MOST_GROUPS = 4096  # taken at a time, and so many columns x groups
_MOST_CELLS = 1 << 16


def described(columns: Sequence[Column], counts: Ints) -> Iterator[dict[str, float]]:
    """One set of statistics a group; the groups follow one another, `counts` rows each.

    The names are grouped by statistic. What is undefined is left out; only in a group in which no column
    has a standard deviation, that of the columns which all its rows have is 0.
    """
    yield from _part(columns, counts, 0, int(counts.sum()))


def _part(columns: Sequence[Column], counts: Ints, begin: int, end: int) -> Iterator[dict[str, float]]:
    """Halved until columns x groups are few; where rows have columns of their own, each half has fewer."""
    here = [part for column in columns if (part := cut(column, begin, end)).positions.size]
    n = counts.size
    if n > _MOST_GROUPS or (n > 1 and len(here) * n > _MOST_CELLS):
        middle = begin + int(counts[: n // 2].sum())
        yield from _part(here, counts[: n // 2], begin, middle)
        yield from _part(here, counts[n // 2 :], middle, end)
    else:
        yield from _small(here, counts, begin, end)


def cut(column: Column, begin: int, end: int) -> Column:
    """What the column has in these rows."""
    low, high = np.searchsorted(column.positions, (begin, end))
    return Column(column.name, column.positions[low:high], column.values[low:high])


def _small(columns: Sequence[Column], counts: Ints, begin: int, end: int) -> Iterator[dict[str, float]]:
    names: list[str] = []
    found: list[Floats] = []
    present: list[Ints] = []
    for column in columns:
        rows = spread_out(column, begin, end, counts.size == 1)
        values, n_present = five(rows, counts if rows.size == end - begin else np.array([rows.size]))
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


def spread_out(column: Column, begin: int, end: int, is_one_group: bool) -> Floats:
    """The column's value in each of these rows, nan where it has none.

    Of one group with up to two values only these and one gap are given: how they are summed cannot differ.
    But which of 0.0 and -0.0 is the larger depends on where they stand.
    """
    n = column.positions.size
    if is_one_group and n <= 2 < end - begin and (n == 1 or column.values.any()):
        return np.append(column.values, np.nan)
    rows = np.full(end - begin, np.nan)
    rows[column.positions - begin] = column.values
    return rows


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
        middle = (
            rising[line, np.maximum(n - 1, 0) // 2] + rising[line, np.minimum(n // 2, block.shape[1] - 1)]
        )
        median = middle / 2 + 0.0  # that of pandas is never -0.0
    found = np.stack([mean, largest(block, here), smallest(block, here), median, std])
    found[:, n == 0] = np.nan
    return n, found


def smallest(values: Floats, here: NDArray[np.bool_]) -> Floats:
    """The least along the last axis; of 0.0 and -0.0 the one that pandas has, which fills gaps like this."""
    least: Floats = np.where(here, values, np.inf).min(axis=-1)
    return least


def largest(values: Floats, here: NDArray[np.bool_]) -> Floats:
    """The greatest."""
    most: Floats = np.where(here, values, -np.inf).max(axis=-1)
    return most

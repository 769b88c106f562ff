"""Turn the rows of agents into statistics of each repeat, and of the repeats' means across repeats."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from blade.stats.intervals import special
from blade_eval.profile.statistics import cut, largest, smallest, spread_out
from blade_eval.profile.table import Column, Floats, Ints

# A metric that starts or ends so is a statistic of something, not itself a result of a repeat.
_PREFIXES = tuple(
    f"{name}/" for name in "max min median std sem se p25 p75 ci_low_95 ci_high_95 histogram".split()
)
_SUFFIXES = (
    "/max", "/min", "/median", "/p5", "/p25", "/p75", "/p95", "/ci_low_95", "/ci_high_95", "/ci_lower",
    "/ci_upper", "_ci_lower", "_ci_upper", "_ci95_lower", "_ci95_upper", "/_ng_attempt_index",
    "/std_dev_across_runs",
    "/std_err_across_runs", "/avg_sample_std_dev",
)  # fmt: skip
_NAMES = frozenset(
    "_ng_task_index _ng_rollout_index _ng_attempt_index sample_count missing_count num_repeats num_rollouts "
    "expected_num_rollouts missing_num_rollouts reward_profile_completion_pct token_usage_version".split()
)
_INDEX = "_ng_rollout_index"


def is_primary(name: str) -> bool:
    """Is it a result of a repeat, of which statistics across repeats are taken."""
    bare = name.removeprefix("mean/")
    return not (
        name.startswith(_PREFIXES) or name.endswith(_SUFFIXES) or "_across_repeats/" in name or bare in _NAMES
    )


def by_repeat(
    columns: Sequence[Column], repeats: Ints, counts: Ints, expected: Mapping[int, int] | None = None
) -> Iterator[dict[str, Any]]:
    """The entries of one agent: rows by repeat and task, `counts` of each of `repeats`."""
    by_name = sorted(columns, key=lambda column: column.name)
    end = 0
    for repeat, count in zip(repeats.tolist(), counts.tolist(), strict=True):
        begin, end = end, end + count
        missing = max(0, expected.get(repeat, count) - count) if expected else 0
        entry: dict[str, Any] = {_INDEX: repeat, "sample_count": count, "missing_count": missing}
        for column in by_name:
            part = cut(column, begin, end)
            if part.positions.size:
                rows = spread_out(part, begin, end, True)
                entry.update((f"{name}/{column.name}", value) for name, value in _described(rows))
        yield entry


def _described(rows: Floats) -> Iterator[tuple[str, float]]:
    here = ~np.isnan(rows)
    values = rows[here]
    n = values.size
    mean = float(np.where(np.isnan(rows), 0.0, rows).sum()) / n
    yield "mean", mean
    yield "median", float(np.median(values))
    if n > 1:
        std = _std(rows, mean, n)
        sem = std / math.sqrt(n)
        yield "std", std
        yield "sem", sem
    yield "min", float(smallest(rows, here))
    yield "max", float(largest(rows, here))
    yield "p25", float(np.quantile(values, 0.25))
    yield "p75", float(np.quantile(values, 0.75))
    if n > 1:
        low, high = student(mean, sem, n)
        yield "ci_low_95", low
        yield "ci_high_95", high


def across(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Each repeat's value of a primary metric as one observation; empty for fewer than two repeats."""
    if len(entries) < 2:
        return {}
    names = dict.fromkeys(name for entry in entries for name in entry if is_primary(name))
    found: dict[str, float] = {}
    for metric in names:
        values = [entry[metric] for entry in entries if metric in entry]
        numbers = np.array(
            [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
        )
        found.update((f"{name}_across_repeats/{metric}", value) for name, value in _spread(numbers))
    return found


def _spread(values: Floats) -> Iterator[tuple[str, float]]:
    n = values.size
    if not n:
        return
    mean = float(values.sum()) / n
    yield "mean", mean
    yield "median", float(np.median(values))
    if n > 1:
        std = _std(values, mean, n)
        yield "std", std
    yield "min", float(values.min())
    yield "max", float(values.max())
    if n > 1:
        se = std / math.sqrt(n)
        low, high = student(mean, se, n)
        yield "se", se
        yield "ci_low_95", low
        yield "ci_high_95", high


def _std(rows: Floats, mean: float, n: int) -> float:
    with np.errstate(over="ignore"):
        squares = (mean - rows) ** 2
    return math.sqrt(float(np.where(np.isnan(rows), 0.0, squares).sum()) / (n - 1))


def student(mean: float, sem: float, n: int) -> tuple[float, float]:
    """Mean ± t · sem with n - 1 degrees of freedom, not clipped to where rewards can lie."""
    if sem == 0:
        return mean, mean
    half = float(special().stdtrit(n - 1, 0.975)) * sem
    return mean - half, mean + half

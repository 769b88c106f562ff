"""Compare measures beside the score, such as pass@k and effort."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.behaviour_shifts import efforts
from blade.compare.exchange import upright
from blade.compare.task_pairs import Paired, over_common
from blade.model import Derived

if TYPE_CHECKING:
    from blade.model import Floats, Ints

# Effort -> what it counts, in the order of print.
UNITS = {
    "output_tokens": "tokens",
    "reasoning_tokens": "tokens",
    "total_tokens": "tokens",
    "turns": "turns",
    "tool_calls": "calls",
    "seconds": "seconds",
    "cost_usd": "dollars",
}
_ORDER = {name: place for place, name in enumerate(UNITS)}
RATIO_OF = "output_tokens"
DISTINCT = 200  # values of tasks; a mean over more is normal, and drawing them takes its time
BOOTSTRAP = "task bootstrap"
FEWER = "task bootstrap; each task at the fewer of its repeats in the two runs"
NO_INTERVAL = "no interval: all tasks change alike"


def derived(pair: Paired) -> tuple[Derived, ...]:
    """Every measure of both runs over the common tasks, those of passing where something says what passes.

    All are computed with the runs in the order of their names and then turned, so that exchanging baseline
    and candidate turns every sign and moves no digit.
    """
    first, is_turned = upright(pair)
    entries = (*_of_passes(first), *_of_effort(first))
    return tuple(_turned(entry) for entry in entries) if is_turned else entries


def _turned(entry: Derived) -> Derived:
    low = None if entry.high is None else 0.0 - entry.high
    high = None if entry.low is None else 0.0 - entry.low
    return Derived(
        entry.name, entry.k, entry.candidate, entry.baseline, 0.0 - entry.change, low, high, entry.n, entry.method, entry.unit
    )


# ---- Passing --------------------------------------------------------------------------------------


def _of_passes(pair: Paired) -> Iterator[Derived]:
    if not pair.n_a.size or not (pair.a.judged.judged and pair.b.judged.judged):
        return
    n_a, n_b = pair.n_a, pair.n_b
    rate_a, rate_b = over_common(pair, pair.a.judged.passed, pair.b.judged.passed)
    c_a, c_b = np.rint(rate_a * n_a).astype(np.int64), np.rint(rate_b * n_b).astype(np.int64)
    if {pair.a.score_name, pair.b.score_name} != {"pass_at_1"}:
        yield _mean(pair, "pass_at_1", rate_a, rate_b)
    fewer = np.minimum(n_a, n_b)
    for name, formula in (("pass_at_k", stats.pass_at_k), ("pass_hat_k", stats.pass_hat_k)):
        for k in _ks(fewer):
            enough = fewer >= k
            yield _mean(pair, name, formula(n_a[enough], c_a[enough], k), formula(n_b[enough], c_b[enough], k), k)
    if not (fewer > 1).any():  # with one row a task these are the pass rate
        return
    # With more repeats more tasks are solved once, and fewer always: both runs are asked for the same number.
    method = BOOTSTRAP if (n_a == n_b).all() else FEWER
    for name, formula in (("solved", stats.pass_at_k), ("consistency", stats.pass_hat_k)):
        before, after = _at(formula, n_a, c_a, fewer), _at(formula, n_b, c_b, fewer)
        yield _mean(pair, name, before, after, method=method)


def _ks(fewer: Ints) -> Iterator[int]:
    """2, 4, 8 ... as long as at least half of the tasks have as many rows in both runs."""
    k = 2
    while 2 * int(np.count_nonzero(fewer >= k)) >= fewer.size:
        yield k
        k *= 2


def _at(formula: Callable[[Ints, Ints, int], Floats], n: Ints, c: Ints, k: Ints) -> Floats:
    """pass@k or pass^k with a k of each task's own."""
    values = np.empty(n.size)
    for tries in np.unique(k).tolist():
        values[k == tries] = formula(n[k == tries], c[k == tries], tries)
    return values


# ---- Effort ---------------------------------------------------------------------------------------


def _of_effort(pair: Paired) -> Iterator[Derived]:
    """Means over tasks of their rollouts' mean; of output tokens the ratio too."""
    columns_of = {name: (before, after) for name, before, after in efforts(pair)}
    for name in sorted(columns_of, key=lambda name: (_ORDER.get(name, len(_ORDER)), name)):
        before, after = columns_of[name]
        yield _mean(pair, name, before, after, unit=UNITS.get(name, name))
        # rows are hostile, and may report fewer tokens than none
        if name == RATIO_OF and _is_amount(before) and _is_amount(after):
            yield _ratio(pair, name, before, after)


def _is_amount(values: Floats) -> bool:
    return bool(values.min() >= 0 and values.any())


def _ratio(pair: Paired, name: str, before: Floats, after: Floats) -> Derived:
    """The ratio as a difference of logarithms, which turns its sign with the runs; its exp is the ratio."""
    low_mean, high_mean = float(before.mean()), float(after.mean())
    change = math.log(high_mean) - math.log(low_mean)
    # A task's share in the change: first derivatives of the logarithms of both means.
    shares = change + (after / high_mean - 1.0) - (before / low_mean - 1.0)

    def log_ratio(means: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # a draw without a token is no number, and is left out
            ratio: Floats = np.log(means[:, 1]) - np.log(means[:, 0])
        return ratio

    low, high, method = _interval(pair, np.column_stack([before, after]), shares, log_ratio, f"log {name}")
    return Derived(
        f"log_{name}", None, math.log(low_mean), math.log(high_mean), change, low, high, before.size, method,
        "log ratio",
    )  # fmt: skip


# ---- Intervals ------------------------------------------------------------------------------------


def _mean(
    pair: Paired,
    name: str,
    before: Floats,
    after: Floats,
    k: int | None = None,
    unit: str = "rate",
    method: str = BOOTSTRAP,
) -> Derived:
    d = after - before
    low, high, how = _interval(pair, d[:, None], d, lambda means: means[:, 0], f"{name} {k}")
    how = how if how != BOOTSTRAP else method
    level_a, level_b = float(before.mean()), float(after.mean())
    return Derived(name, k, level_a, level_b, level_b - level_a, low, high, d.size, how, unit)


def _interval(
    pair: Paired, columns: Floats, values: Floats, statistic: Callable[[Floats], Floats], name: str
) -> tuple[float | None, float | None, str]:
    """Of `statistic`, or where tasks are many and differ, of the mean of the `values` that stand for it."""
    distinct = np.unique(values).size
    if distinct < 2:
        return None, None, NO_INTERVAL
    if distinct > DISTINCT:
        change = stats.mean_change(values)
        return (None, None, NO_INTERVAL) if change is None else (change.low, change.high, change.method)
    interval = stats.task_bootstrap(columns, statistic, seed=(pair.a.run, pair.b.run, name))
    return (None, None, NO_INTERVAL) if interval is None else (*interval, BOOTSTRAP)

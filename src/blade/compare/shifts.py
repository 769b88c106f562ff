"""Compare pass@k, effort, outcomes, behaviours and errors of two runs on their common tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec.structs import replace

from blade import stats
from blade.compare.task_pairs import Paired, known_means, means, passes, row_places, upright
from blade.model import Derived, Floats, Ints, Shift

LISTED = 30  # behaviours, and as many signatures
TESTED = 60  # the most frequent of both runs together, which does not look at where they are
FEWEST = 6  # tasks that differ: with five, signs alone cannot give a p of .05
ALPHA = 0.05
TURNED = {"appeared": "disappeared", "disappeared": "appeared", "more": "less", "less": "more"}
# Effort -> what it counts, in the order of print.
UNITS = {
    "output_tokens": "tokens", "reasoning_tokens": "tokens", "total_tokens": "tokens", "turns": "turns",
    "tool_calls": "calls", "seconds": "seconds", "cost_usd": "dollars",
}  # fmt: skip
RATIO_OF = "output_tokens"
DISTINCT = 200  # values of tasks; a mean over more is normal, and drawing them takes its time
BOOTSTRAP = "task bootstrap"
FEWER = "task bootstrap; each task at the fewer of its repeats in the two runs"
NO_INTERVAL = "no interval: all tasks change alike"


_Entry = TypeVar("_Entry", Shift, Derived)


class _Measured(NamedTuple):
    """One thing in both runs, by task."""

    kind: str
    name: str
    before: Floats
    after: Floats
    step: float  # what one rollout more or less adds to a task


def shifts(pair: Paired) -> tuple[tuple[Shift, ...], int]:
    """What changed, surest first within each kind; and how many behaviours and signatures are left out.

    Everything is a rate or a mean of each task; p is adjusted within a kind. Traces were read of both runs or of
    neither: what one does not show, it has not. Only the frequent are tested, those alike in every task are not told.
    """
    first, is_turned = upright(pair)
    ranked = _tested(_outcomes(first)) + _tested(_Measured("effort", *effort, 0.0) for effort in efforts(first))
    n_left = 0
    for kind in ("behaviour", "signature"):
        names, measured = _traced(first, kind)
        of_kind = _tested(measured)
        ranked += of_kind[:LISTED]
        n_left += len(of_kind[LISTED:]) + len(names[TESTED:])
    return tuple(map(_turned, ranked) if is_turned else ranked), n_left


def _turned(entry: _Entry) -> _Entry:
    """What it says with baseline and candidate exchanged."""
    low, high = (None if end is None else 0.0 - end for end in (entry.high, entry.low))
    back = replace(entry, baseline=entry.candidate, candidate=entry.baseline, change=0.0 - entry.change, low=low, high=high)
    return replace(back, status=TURNED.get(back.status, back.status)) if isinstance(back, Shift) else back


# ---- What is measured -----------------------------------------------------------------------------


def _outcomes(pair: Paired) -> Iterator[_Measured]:
    """Errors, time-outs and the like, as far as both runs tell of them."""
    for name in sorted(pair.a.flags.keys() & pair.b.flags.keys()):
        before, after = (means(side, side.flags[name])[codes] for side, codes, _ in pair.runs)
        if before.any() or after.any():
            yield _Measured("outcome", name, before, after, pair.step)


def efforts(pair: Paired) -> Iterator[tuple[str, Floats, Floats]]:
    """Tokens, turns and the like: the mean of a rollout in each run, of tasks for which both report it."""
    for name in sorted(pair.a.effort.keys() & pair.b.effort.keys()):
        before, after = (known_means(side, side.effort[name], codes) for side, codes, _ in pair.runs)
        both = np.isfinite(before) & np.isfinite(after)
        # A column of zeros reports nothing: the format has no such thing.
        if before[both].any() or after[both].any():
            yield name, before[both], after[both]


def _traced(pair: Paired, kind: str) -> tuple[list[str], Iterator[_Measured]]:
    """All that traces show of one kind, the most frequent first, and the frequent of it measured."""
    by_run = [side.behaviours if kind == "behaviour" else side.signatures for side in (pair.a, pair.b)]
    places = [row_places(side, codes) for side, codes, _ in pair.runs]
    n_rows: Counter[str] = Counter()
    for rows_of, place in zip(by_run, places, strict=True):
        n_rows.update({name: int(np.count_nonzero(place[rows] >= 0)) for name, rows in rows_of.items()})
    names = sorted(+n_rows, key=lambda name: (-n_rows[name], name))  # of which common tasks show some

    def measured() -> Iterator[_Measured]:
        nowhere = np.zeros(0, np.int64)
        for name in names[:TESTED]:
            before, after = (
                np.bincount(place[rows_of.get(name, nowhere)] + 1, minlength=n.size + 1)[1:] / n  # -1 is no common task
                for rows_of, place, n in zip(by_run, places, (pair.n_a, pair.n_b), strict=True)
            )
            if (before != after).any():
                yield _Measured(kind, name, before, after, pair.step)

    return names, measured()


# ---- What is said of it ---------------------------------------------------------------------------


def _tested(measured: Iterable[_Measured]) -> list[Shift]:
    """All of one kind, surest first."""
    pairs = [_compared(measure) for measure in measured]
    adjusted = stats.benjamini_hochberg([shift.p if n >= FEWEST else None for shift, n in pairs])
    ranked = [replace(shift, p_adjusted=p, status=_status(shift, p)) for (shift, _), p in zip(pairs, adjusted, strict=True)]
    return sorted(ranked, key=lambda shift: (math.inf if shift.p_adjusted is None else shift.p_adjusted, -abs(shift.change), shift.name))


def _compared(measure: _Measured) -> tuple[Shift, int]:
    """A shift that is not judged yet, and how many tasks differ in it."""
    d, before, after = measure.after - measure.before, float(measure.before.mean()), float(measure.after.mean())
    # the size of a large difference: rates go from 0 to 1
    largest = float(np.abs(d).max()) or float((measure.before + measure.after).mean()) / 2
    unit = largest if measure.kind == "effort" else 1.0
    change = stats.mean_change(d / unit, measure.step)
    shown: tuple[float, float | None, float | None, float | None] = (after - before, None, None, None)
    if change is not None:
        shown = (change.estimate * unit, change.low * unit, change.high * unit, change.p)
    return Shift(measure.kind, measure.name, before, after, *shown, None, d.size, "unclear"), int(np.count_nonzero(d))


def _status(shift: Shift, p_adjusted: float | None) -> str:
    if p_adjusted is None or p_adjusted > ALPHA or not shift.change:
        return "unclear"
    if shift.kind != "effort" and shift.baseline == 0:
        return "appeared"
    if shift.kind != "effort" and shift.candidate == 0:
        return "disappeared"
    return "more" if shift.change > 0 else "less"


# ---- Measures beside the score --------------------------------------------------------------------


def derived(pair: Paired) -> tuple[Derived, ...]:
    """Every measure of both runs over the common tasks, those of passing where something says what passes."""
    first, is_turned = upright(pair)
    entries = (*_of_passes(first), *_of_effort(first))
    return tuple(map(_turned, entries)) if is_turned else entries


def _of_passes(pair: Paired) -> Iterator[Derived]:
    if (passing := passes(pair)) is None:
        return
    (n_a, c_a), (n_b, c_b) = (pair.n_a, passing[0]), (pair.n_b, passing[1])
    if {pair.a.score_name, pair.b.score_name} != {"pass_at_1"}:
        rates = [means(side, side.judged.passed)[codes] for side, codes, _ in pair.runs]
        yield _mean(pair, "pass_at_1", rates[0], rates[1])
    fewer = np.minimum(n_a, n_b)
    # 2, 4, 8 ... as long as at least half of the tasks have as many rows in both runs
    ks = [1 << i for i in range(1, int(np.sort(fewer)[fewer.size // 2]).bit_length())]
    for name, formula in (("pass_at_k", stats.pass_at_k), ("pass_hat_k", stats.pass_hat_k)):
        for k in ks:
            enough = fewer >= k
            yield _mean(pair, name, formula(n_a[enough], c_a[enough], k), formula(n_b[enough], c_b[enough], k), k)
    if not (fewer > 1).any():  # with one row a task these are the pass rate
        return
    # With more repeats more tasks are solved once, and fewer always: both runs are asked for the same number.
    method = BOOTSTRAP if (n_a == n_b).all() else FEWER
    for name, formula in (("solved", stats.pass_at_k), ("consistency", stats.pass_hat_k)):
        before, after = _each_with_its_k(formula, n_a, c_a, fewer), _each_with_its_k(formula, n_b, c_b, fewer)
        yield _mean(pair, name, before, after, method=method)


def _each_with_its_k(formula: Callable[[Ints, Ints, int], Floats], n: Ints, c: Ints, k: Ints) -> Floats:
    values = np.empty(n.size)
    for tries in np.unique(k).tolist():
        values[k == tries] = formula(n[k == tries], c[k == tries], tries)
    return values


def _of_effort(pair: Paired) -> Iterator[Derived]:
    """Means over tasks of their rollouts' mean; of output tokens the ratio too."""
    columns = {name: (before, after) for name, before, after in efforts(pair)}
    for name in (*(name for name in UNITS if name in columns), *(name for name in columns if name not in UNITS)):
        before, after = columns[name]
        yield _mean(pair, name, before, after, unit=UNITS.get(name, name))
        # rows are hostile, and may report fewer tokens than none
        if name == RATIO_OF and all(bool(values.min() >= 0 and values.any()) for values in (before, after)):
            yield _ratio(pair, name, before, after)


def _ratio(pair: Paired, name: str, before: Floats, after: Floats) -> Derived:
    """The ratio as a difference of logarithms, which turns its sign with the runs; its exp is the ratio."""
    low_mean, high_mean = float(before.mean()), float(after.mean())
    change = math.log(high_mean) - math.log(low_mean)
    # A task's share in the change: first derivatives of the logarithms of both means.
    shares = change + (after / high_mean - 1.0) - (before / low_mean - 1.0)

    def log_ratio(columns: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # a draw without a token is no number, and is left out
            ratio: Floats = np.log(columns[:, 1]) - np.log(columns[:, 0])
        return ratio

    low, high, method = _interval(pair, np.column_stack([before, after]), shares, log_ratio, f"log {name}")
    baseline, candidate = math.log(low_mean), math.log(high_mean)
    return Derived(f"log_{name}", None, baseline, candidate, change, low, high, before.size, method, "log ratio")


def _mean(
    pair: Paired, name: str, before: Floats, after: Floats, k: int | None = None, unit: str = "rate", method: str = BOOTSTRAP
) -> Derived:
    d = after - before
    low, high, how = _interval(pair, d[:, None], d, lambda columns: columns[:, 0], f"{name} {k}")
    how = how if how != BOOTSTRAP else method
    level_a, level_b = float(before.mean()), float(after.mean())
    return Derived(name, k, level_a, level_b, level_b - level_a, low, high, d.size, how, unit)


def _interval(
    pair: Paired, columns: Floats, values: Floats, statistic: Callable[[Floats], Floats], name: str
) -> tuple[float | None, float | None, str]:
    """Of `statistic`, or where tasks are many and differ, of the mean of the `values` that stand for it."""
    distinct = np.unique(values).size
    if distinct > DISTINCT:
        change = stats.mean_change(values)
        return (None, None, NO_INTERVAL) if change is None else (change.low, change.high, change.method)
    seed = (pair.a.run, pair.b.run, name)
    interval = stats.task_bootstrap(columns, statistic, seed=seed) if distinct > 1 else None
    return (None, None, NO_INTERVAL) if interval is None else (*interval, BOOTSTRAP)

"""Reconcile the numbers that an evaluation reported with ours: equal, explained by other rows, or neither."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from blade import stats
from blade.measure.outcome_rates import sorted_within_tasks
from blade.measure.scoring import Scoring, begins, groups_of
from blade.model import Compared, Coverage, Floats, Ints, ReportedNumber, Rollouts

RELATIVE = 1e-9
AGREES = "agrees"
NOT_RECOMPUTED = "not recomputed: BLADE has no definition of this name"
UNEXPLAINED = "differs, not explained by masked, failed or duplicate rows: the file may be stale or computed on other rows"
NULLS_LEFT_OUT = "rows without a usable reward are left out there and count as 0 here"
STATISTIC = re.compile(r"(mean|max|min|median|std)/(.+)")
PASS_AT = re.compile(r"pass@(\d{1,6})(?:\[avg-of-(\d{1,6})\])?/([^/]+)(?:/(std_dev|std_err)_across_runs)?")
PROFILED = "mean over tasks of mean/reward"
OF_REPEAT = re.compile(r"repeat (\d{1,9})/(mean|std)")
USAGE = ("input_tokens", "output_tokens", "total_tokens", "reasoning_tokens", "cost_usd")


@dataclass(frozen=True)
class Table:
    """One column over a choice of rows, by task; rows without a value are left out, as Gym does."""

    values: Floats
    starts: Ints
    n: Ints

    def first(self, k: int) -> Floats:
        """The values of the first k rows of each task, nan where it has fewer."""
        place = self.starts[:, None] + np.arange(k)
        within = np.arange(k) < self.n[:, None]
        return np.where(within, self.values[np.where(within, place, 0)], np.nan)


Formula = Callable[[Table], float]


def compared(
    run: str, reported: Sequence[ReportedNumber], rollouts: Rollouts, coverage: Coverage, scoring: Scoring
) -> Iterator[Compared]:
    """Each reported number beside ours; where Gym defines it otherwise, its formula on our rows decides."""
    choices, counts = list(_row_choices(rollouts, scoring)), _counts(rollouts, coverage, scoring)
    for number in reported:
        ours, why = (
            _explained_count(number, counts[number.name], coverage) if number.name in counts
            else _explained(number, rollouts, scoring, choices)
        )
        if why == UNEXPLAINED and (gone := coverage.identical_duplicates + coverage.superseded):
            why += f"; {gone:,} duplicate or superseded rows are left out here"
        yield Compared(run, number.file, number.name, number.value, ours, why)


def _explained(
    number: ReportedNumber, rollouts: Rollouts, scoring: Scoring, choices: Sequence[tuple[str, Ints]]
) -> tuple[float | None, str]:
    """Our value, and which formula on which of the choices of rows gives the one that was reported."""
    result = _definition(number.name, rollouts)
    if result is None or not scoring.rows.size:
        return None, NOT_RECOMPUTED if result is None else "not recomputed: no scored row"
    column, formula, what = result
    ours = _our_closest(number.name, scoring) if column is rollouts.reward else None
    if _equal(number.value, ours):
        return ours, AGREES
    if ours is not None and _equal(number.value, 100 * ours):
        return ours, f"{AGREES}: reported in percent"
    otherwise = "" if ours is None else NULLS_LEFT_OUT
    for rows, positions in choices:
        theirs = formula(_table(column, positions, rollouts))
        if ours is None and not math.isnan(theirs):
            ours = theirs
        if _equal(number.value, theirs):
            reasons = ", ".join(reason for reason in (what, rows) if reason) or otherwise
            return ours, f"{AGREES}: {reasons}" if reasons else AGREES
    return ours, UNEXPLAINED


def _equal(a: float, b: float | None) -> bool:
    return b is not None and math.isclose(a, b, rel_tol=RELATIVE, abs_tol=1e-12)


def _row_choices(rollouts: Rollouts, scoring: Scoring) -> Iterator[tuple[str, Ints]]:
    """Which rows another tool may have counted, the likeliest first."""
    yield "", scoring.rows
    if rollouts.masked.any():
        yield "with the masked rows", np.arange(rollouts.task.size)
    if rollouts.copies.any():
        yield "with the identical duplicates", np.repeat(scoring.rows, 1 + rollouts.copies[scoring.rows])
    first = begins(rollouts.task, rollouts.repeat)
    if not first.all():
        for which, remainder in (("first", first), ("last", np.r_[first[1:], True])):
            of_key = f"the {which} row of each duplicate key"
            yield f"with {of_key}", np.flatnonzero(remainder & ~rollouts.masked)
            if rollouts.masked.any():
                yield f"with the masked rows and {of_key}", np.flatnonzero(remainder)


def _table(column: Floats, positions: Ints, rollouts: Rollouts) -> Table:
    remainder = positions[np.isfinite(column[positions])]
    return Table(column[remainder], *groups_of(rollouts.task[remainder])[1:])


def _column(name: str, rollouts: Rollouts) -> Floats | None:
    if name == "reward":
        return rollouts.reward
    if name in USAGE:
        values: Floats = getattr(rollouts, name)
        return values if np.isfinite(values).any() else None
    field = rollouts.fields.get(name)
    return field.number if field is not None and np.isfinite(field.number).any() else None


def _definition(name: str, rollouts: Rollouts) -> tuple[Floats, Formula, str] | None:
    """The column a name is about, Gym's formula for it, and how that differs from ours in words."""
    if name == PROFILED:
        return rollouts.reward, _mean_over_tasks, ""
    if match := STATISTIC.fullmatch(name):
        statistic, column = match[1], _column(match[2], rollouts)
    elif match := OF_REPEAT.fullmatch(name):
        statistic, column = match[2], np.where(rollouts.repeat == int(match[1]), rollouts.reward, np.nan)
    else:
        return _definition_of_passes(name, rollouts)
    return None if column is None else (column, lambda table: _statistic(statistic, table.values), "")


def _definition_of_passes(name: str, rollouts: Rollouts) -> tuple[Floats, Formula, str] | None:
    """The same for `pass@k/accuracy`, `pass@1[avg-of-k]/accuracy` and the spread of repeats."""
    if not (match := PASS_AT.fullmatch(name)):
        return None
    k, first, spread = int(match[1]), match[2], match[4]
    column = rollouts.reward if match[3] == "accuracy" else _column(match[3], rollouts)
    if column is None or k < 1 or (first is None and spread) or (first is not None and k != 1):
        return None
    if first is None:
        usable = column[np.isfinite(column)]
        is_binary = bool(np.all((usable == 0) | (usable == 1)))
        what = "in percent" if is_binary else f"best of the first {k} rows of each task, in percent"
        return column, lambda table: _gym_pass_at(table, k), what
    j = int(first)
    if j < 1:
        return None
    if spread:
        root = math.sqrt(j) if spread == "std_err" else 1.0
        return column, lambda table: _across_runs(table, j) / root, "spread of repeat means, in percent"
    what = f"mean of the first {j} rows of each task, in percent"
    return column, lambda table: _gym_average(table, j), what


def _mean_over_tasks(table: Table) -> float:
    return float((np.add.reduceat(table.values, table.starts) / table.n).mean()) if table.n.size else math.nan


def _statistic(statistic: str, values: Floats) -> float:
    if not values.size:
        return math.nan
    if statistic == "std":
        # A group of one row has no spread; Gym then writes 0.
        return float(values.std(ddof=1)) if values.size > 1 else 0.0
    return float(getattr(np, statistic)(values))


def _gym_pass_at(table: Table, k: int) -> float:
    """NeMo Gym's pass@k: unbiased for tasks whose values are 0 and 1, else the best of the first k."""
    has_k = table.n >= k
    if not has_k.any():
        return math.nan
    is_binary = np.minimum.reduceat((table.values == 0) | (table.values == 1), table.starts)
    c = np.add.reduceat((table.values == 1).astype(np.int64), table.starts)
    best = np.full(table.n.size, np.nan)
    best[has_k] = table.first(k)[has_k].max(axis=1)
    by_task = np.where(is_binary, stats.pass_at_k(table.n, c, k), best)
    return 100 * float(by_task[has_k].mean())


def _gym_average(table: Table, k: int) -> float:
    if not table.n.size:
        return math.nan
    return 100 * float(np.nanmean(table.first(min(k, int(table.n.max()))), axis=1).mean())


def _across_runs(table: Table, k: int) -> float:
    """Sample standard deviation of the mean over tasks at each of the first k places."""
    if k < 2 or not table.n.size or table.n.max() < k:
        return math.nan
    return 100 * float(np.nanmean(table.first(k), axis=0).std(ddof=1))


def _our_closest(name: str, scoring: Scoring) -> float | None:
    """Our measure of the reward that asks the same question; None where Gym's own definition is all there is."""
    if name == "mean/reward":
        return float(scoring.row_reward.mean())
    match = PASS_AT.fullmatch(name)
    if name == PROFILED or (match is not None and match[2] and not match[4]):
        return float(scoring.task_rewards.mean())
    if match is None or match[4]:
        return None
    # For rewards of 0 and 1 the best of k is pass@k.
    rising = sorted_within_tasks(scoring)
    values = stats.best_of_k_by_task(rising, scoring.starts, scoring.n, int(match[1]))
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else None


def _counts(rollouts: Rollouts, coverage: Coverage, scoring: Scoring) -> dict[str, int]:
    n_tasks = int(np.count_nonzero(np.diff(rollouts.task, prepend=-1)))
    return {
        "num_rollouts": rollouts.task.size,
        "num_samples": rollouts.task.size,
        "num_tasks": n_tasks,
        "tasks": n_tasks,
        "num_repeats": coverage.repeats,
        "expected_num_rollouts": coverage.expected,
        "missing_num_rollouts": coverage.failed + coverage.lost,
        "coverage/measured_rollouts": scoring.rows.size,
        "coverage/masked_rollouts": int(rollouts.masked.sum()),
        "coverage/measured_tasks": scoring.n.size,
        "coverage/fully_masked_tasks": n_tasks - scoring.n.size,
    }


def _explained_count(number: ReportedNumber, ours: int, coverage: Coverage) -> tuple[float, str]:
    if number.value == ours:
        return ours, AGREES
    identical, superseded = coverage.identical_duplicates, coverage.superseded
    others = {
        "with the identical duplicates": ours + identical,
        "with the superseded attempts": ours + superseded,
        "with the identical duplicates and superseded attempts": ours + identical + superseded,
        "without the surplus rows of duplicate keys": ours - (coverage.duplicates - identical),
        "with the failed rows": ours + coverage.failed,
    }
    if "rollouts" in number.name or "samples" in number.name:
        for why, value in others.items():
            if number.value == value:
                return ours, f"{AGREES}: {why}"
    return ours, UNEXPLAINED

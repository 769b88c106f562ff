"""Measure a metric of a gate's policy: its change between two runs, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from blade import stats
from blade.compare.change_verdict import ALPHA, NEW
from blade.compare.gate_policy import LOSSES, OUTCOMES, Limit
from blade.compare.rejudgements import rejudged
from blade.compare.several_runs import answer
from blade.compare.task_pairs import Paired, means, paired, passes, rows_of
from blade.model import Bools, Comparison, Derived, Floats, Side

RATE = "rate"  # the unit of what is told in percent
TOO_FEW = "there are too few common tasks"
UNMET = "no rollout of either run meets the condition"
UNREPORTED = "the runs do not report it"


@dataclass(frozen=True)
class Measured:
    """One metric of two runs over their common tasks."""

    baseline: float
    candidate: float
    own: float  # the candidate's value that is compared with a floor
    change: float
    low: float | None  # 95% interval
    high: float | None
    bound: float | None  # one-sided 95% bound on the side that is worse
    is_exact_bound: bool  # False: an end of the 95% interval is used instead
    p: float | None  # that nothing changed; None: the interval alone tells
    n: int  # tasks
    unit: str
    remark: str = ""  # what a reader must know before trusting it


class Evidence(NamedTuple):
    """What a gate looks at beside the comparisons, by run or by query."""

    coverages: Mapping[str, tuple[int, int]]  # rows scored and expected
    sides: Mapping[str, Side]  # for metrics that a comparison does not hold: of a slice, an outcome, another k
    by_task: Callable[[str, str], Mapping[str, float]] | None  # a query and a run -> its value for each task
    remarks: Mapping[str, str]  # of queries: which names in them no row has


def measured(limit: Limit, comparison: Comparison, evidence: Evidence, question: str) -> Measured | str:
    """The metric, or why there is none."""
    if limit.query is None and limit.slice is None:
        if limit.name in ("score", comparison.score_name):
            return _score(comparison, question)
        entry = next((derived for derived in comparison.derived if (derived.name, derived.k) == (limit.name, limit.k)), None)
        if entry is not None:
            return _of_derived(limit, entry)
        if limit.k is None and limit.name not in (*LOSSES, *OUTCOMES):
            return UNREPORTED
    sides = [evidence.sides.get(run) for run in (comparison.baseline, comparison.candidate)]
    if sides[0] is None or sides[1] is None or (limit.query is not None and evidence.by_task is None):
        return "the rows of the runs are not at hand"
    pair = paired(sides[0], sides[1], comparison.alignment)
    if limit.query is not None:
        return _of_query(limit, limit.query, pair, evidence)
    return _of_tries(limit, pair, limit.k) if limit.k is not None else _of_rows(limit, pair, question)


def _score(comparison: Comparison, question: str) -> Measured | str:
    tested = answer(comparison, question)
    baseline, candidate = comparison.common_baseline, comparison.common_candidate
    if tested is None or tested.estimate is None or baseline is None or candidate is None:
        return TOO_FEW
    own = candidate if comparison.score_candidate is None else comparison.score_candidate
    is_exact = tested.low90 is not None
    return Measured(
        baseline, candidate, own, tested.estimate, tested.low, tested.high, tested.low90 if is_exact else tested.low, is_exact,
        tested.p, len(comparison.alignment.common), _unit(comparison.score_name),
    )  # fmt: skip


def _unit(score_name: str) -> str:
    return RATE if score_name == "pass_at_1" else "reward"


def _of_derived(limit: Limit, entry: Derived) -> Measured:
    """A measure beside the score. Its 95% interval is all there is; an end of it is a bound too, of 97.5%."""
    low, high = entry.low, entry.high
    if low is None or high is None:  # all tasks change alike
        alike = stats.mean_change(np.full(entry.n, entry.change))
        low, high = (None, None) if alike is None else (alike.low, alike.high)
    still = stats.mean_change(np.zeros(entry.n)) if entry.unit == RATE else None
    if still is not None and low is not None and high is not None:
        # a bootstrap trusts tasks that happen not to differ; so few of them leave at least this open
        low, high = min(low, entry.change + still.low), max(high, entry.change + still.high)
    bound = high if limit.is_cost else low
    before, after = entry.baseline, entry.candidate
    return Measured(before, after, after, entry.change, low, high, bound, False, None, entry.n, entry.unit)


def _of_query(limit: Limit, query: str, pair: Paired, evidence: Evidence) -> Measured | str:
    """A query of the policy over the common tasks in which both runs have such rollouts."""
    assert evidence.by_task is not None
    before, after = evidence.by_task(query, pair.a.run), evidence.by_task(query, pair.b.run)
    keys_a, keys_b = pair.a.judged.task_keys, pair.b.judged.task_keys
    codes = zip(pair.code_a.tolist(), pair.code_b.tolist(), strict=True)
    values = [(before.get(keys_a[a]), after.get(keys_b[b])) for a, b in codes]
    both = np.array([couple for couple in values if None not in couple], np.float64).reshape(-1, 2)
    remarks = (UNMET if _is_unmet(query, before, after) else "", evidence.remarks.get(query, ""))
    remark = "; ".join(part for part in remarks if part)
    if len(both) < 2:
        return remark or TOO_FEW
    unit = RATE if ((both >= 0) & (both <= 1)).all() else ""
    measure = _of_means(limit, both[:, 0], both[:, 1], stats.mean_change(both[:, 1] - both[:, 0]), unit)
    return measure if isinstance(measure, str) else replace(measure, remark=remark)


def _is_unmet(query: str, before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    """Whether a query has a condition that no rollout of either run meets."""
    if " where " not in " ".join(query.lower().split()):
        return False
    is_count = query.lstrip().lower().startswith("count")  # of each task the share of its rollouts
    return not any((*before.values(), *after.values())) if is_count else not before and not after


def _of_tries(limit: Limit, pair: Paired, k: int) -> Measured | str:
    """pass@k or pass^k for a k that the comparison does not tell."""
    if (passing := passes(pair)) is None:
        return "no threshold says what passes"
    enough = np.minimum(pair.n_a, pair.n_b) >= k
    if not enough.any():
        return f"no task has {k} repeats in both runs"
    formula = stats.pass_at_k if limit.name == "pass_at_k" else stats.pass_hat_k
    before, after = (formula(n[enough], c[enough], k) for n, c in zip((pair.n_a, pair.n_b), passing, strict=True))
    return _of_means(limit, before, after, stats.mean_change(after - before, pair.step), RATE)


def _of_rows(limit: Limit, pair: Paired, question: str) -> Measured | str:
    """The score of a slice, how often rows end in one way, or what is lost on one side of the losses."""
    chosen: Bools = np.ones(pair.d.size, bool)
    unit, sides = RATE, (pair.a, pair.b)
    if limit.slice is not None:
        inside = _in_slice(pair, *limit.slice)
        if isinstance(inside, str):
            return inside
        chosen, unit = inside, _unit(pair.a.score_name)
        values = [side.judged.score for side in sides]
    elif limit.name in OUTCOMES:
        flag = OUTCOMES[limit.name]
        if any(flag not in side.flags for side in sides):
            return UNREPORTED
        values = [side.flags[flag].astype(np.float64) for side in sides]
    elif not pair.is_bounded:
        return "rewards leave the range 0 to 1, so nothing says what is lost"
    else:
        values = [_lost(side, LOSSES[limit.name]) for side in rejudged(pair)]
    columns = zip(pair.runs, values, strict=True)
    before, after = (means(side, column)[codes][chosen] for (side, codes, _), column in columns)
    if question == NEW:
        return _of_means(limit, before, after, stats.mean_change(after - before, pair.step), unit)
    return _of_means(limit, before, after, stats.within_change(rows_of(pair, *values).of(chosen), pair.step), unit)


def _of_means(limit: Limit, before: Floats, after: Floats, change: stats.Change | None, unit: str) -> Measured | str:
    """A change of task means, with its bound."""
    if change is None:
        return TOO_FEW
    bound = change.interval(1 - 2 * ALPHA)[1 if limit.is_cost else 0]
    baseline, candidate = float(before.mean()), float(after.mean())
    return Measured(
        baseline, candidate, candidate, change.estimate, change.low, change.high, bound, True, change.p, before.size, unit
    )


def _lost(side: Side, kinds: Sequence[str]) -> Floats:
    """By row: the points it loses to these sides of the losses."""
    is_kind = np.array([name in kinds for name, _ in side.modes] + [False])  # mode -1 takes the last
    points: Floats = np.where(is_kind[side.mode], 1 - side.judged.score, 0.0)
    return points


def _in_slice(pair: Paired, field: str, value: str) -> Bools | str:
    """Common tasks of this value, or why there are none; where only one run states the field, it counts."""
    fields = sorted({*pair.a.slices, *pair.b.slices})
    if field not in fields:
        others = f"; it can be {', '.join(fields)}" if fields else ""
        return f"the runs have no field {field} to slice by{others}"
    columns = []
    for side, codes, _ in pair.runs:
        of_task, labels = side.slices.get(field, (np.full(len(side.judged.task_keys), -1), ()))
        wanted = labels.index(value) if value in labels else -2
        columns.append((of_task[codes] == wanted, of_task[codes] < 0))
    (is_a, none_a), (is_b, none_b) = columns
    inside: Bools = (is_a | none_a) & (is_b | none_b) & ~(none_a & none_b)
    return inside if inside.any() else f"no common task has {field}={value}"

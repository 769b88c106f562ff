"""Measure a metric of a gate's policy: its change between two runs, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.change_verdict import ALPHA, NEW
from blade.compare.gate_policy import LOSSES, OUTCOMES, Limit
from blade.compare.rejudgements import rejudged
from blade.compare.several_runs import answer
from blade.compare.task_pairs import Paired, means, over_common, paired
from blade.model import Comparison, Derived, Side

if TYPE_CHECKING:
    from blade.model import Bools, Floats

RATE = "rate"  # the unit of what is told in percent
TOO_FEW = "there are too few common tasks"
UNMET = "no rollout of either run meets the condition"


@dataclass(frozen=True)
class Measured:
    """One metric of two runs over their common tasks."""

    baseline: float
    candidate: float
    own: float  # the candidate's value that a floor is held against
    change: float
    low: float | None  # 95% interval
    high: float | None
    bound: float | None  # one-sided 95% bound on the side that is worse
    is_exact_bound: bool  # False: an end of the 95% interval stands in for it
    p: float | None  # that nothing changed; None: the interval alone tells
    n: int  # tasks
    unit: str
    remark: str = ""  # what a reader must know before trusting it


ByTask = Callable[[str, str], Mapping[str, float]]  # a query and a run -> its value for each task


def measured(
    limit: Limit,
    comparison: Comparison,
    sides: Mapping[str, Side],
    question: str,
    by_task: ByTask | None = None,
    remarks: Mapping[str, str] | None = None,
) -> Measured | str:
    """The metric, or why there is none; `remarks` says of queries which names in them no row has."""
    if limit.query is not None:
        return _of_query(limit, comparison, sides, by_task, (remarks or {}).get(limit.query, ""))
    if limit.slice is None and limit.name in ("score", comparison.score_name):
        return _score(comparison, question)
    entry = next((derived for derived in comparison.derived if _is_meant(limit, derived)), None)
    if entry is not None and limit.slice is None:
        return _of_derived(limit, entry)
    if limit.slice is None and limit.k is None and limit.name not in (*LOSSES, *OUTCOMES):
        return "the runs do not report it"
    if comparison.baseline not in sides or comparison.candidate not in sides:
        return "the rows of the runs are not at hand"
    pair = paired(sides[comparison.baseline], sides[comparison.candidate], comparison.alignment)
    return _of_tries(limit, pair) if limit.k is not None else _of_rows(limit, pair, question)


def _score(comparison: Comparison, question: str) -> Measured | str:
    tested = answer(comparison, question)
    baseline, candidate = comparison.common_baseline, comparison.common_candidate
    if tested is None or tested.estimate is None or baseline is None or candidate is None:
        return TOO_FEW
    own = comparison.score_candidate
    return Measured(
        baseline=baseline,
        candidate=candidate,
        own=candidate if own is None else own,
        change=tested.estimate,
        low=tested.low,
        high=tested.high,
        bound=tested.low if tested.low90 is None else tested.low90,
        is_exact_bound=tested.low90 is not None,
        p=tested.p,
        n=len(comparison.alignment.common),
        unit=_unit(comparison.score_name),
    )


def _unit(score_name: str) -> str:
    return RATE if score_name == "pass_at_1" else "reward"


def _is_meant(limit: Limit, entry: Derived) -> bool:
    return (entry.name, entry.k) == (limit.name, limit.k)


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
    return Measured(
        baseline=entry.baseline,
        candidate=entry.candidate,
        own=entry.candidate,
        change=entry.change,
        low=low,
        high=high,
        bound=high if limit.is_cost else low,
        is_exact_bound=False,
        p=None,
        n=entry.n,
        unit=entry.unit,
    )


# ---- From the rows --------------------------------------------------------------------------------


def _of_query(
    limit: Limit, comparison: Comparison, sides: Mapping[str, Side], by_task: ByTask | None, unknown: str
) -> Measured | str:
    """A query of the policy over the common tasks in which both runs have such rollouts."""
    if by_task is None or comparison.baseline not in sides or comparison.candidate not in sides:
        return "the rows of the runs are not at hand"
    pair = paired(sides[comparison.baseline], sides[comparison.candidate], comparison.alignment)
    before = by_task(str(limit.query), comparison.baseline)
    after = by_task(str(limit.query), comparison.candidate)
    keys_a, keys_b = pair.a.judged.task_keys, pair.b.judged.task_keys
    codes = zip(pair.code_a.tolist(), pair.code_b.tolist(), strict=True)
    values = [(before.get(keys_a[a]), after.get(keys_b[b])) for a, b in codes]
    both = np.array([couple for couple in values if None not in couple], np.float64).reshape(-1, 2)
    is_unmet = _is_unmet(str(limit.query), before, after)
    remark = "; ".join(part for part in (UNMET if is_unmet else "", unknown) if part)
    if len(both) < 2:
        return remark or TOO_FEW
    is_share = bool(((both >= 0) & (both <= 1)).all())
    measure = _of_means(
        limit, both[:, 0], both[:, 1], stats.mean_change(both[:, 1] - both[:, 0]), RATE if is_share else ""
    )
    return measure if isinstance(measure, str) else replace(measure, remark=remark)


def _is_unmet(query: str, before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    """Whether a query has a condition that no rollout of either run meets."""
    if " where " not in " ".join(query.lower().split()):
        return False
    is_count = query.lstrip().lower().startswith("count")  # of each task the share of its rollouts
    return not any((*before.values(), *after.values())) if is_count else not before and not after


def _of_tries(limit: Limit, pair: Paired) -> Measured | str:
    """pass@k or pass^k for a k that the comparison does not tell."""
    k = limit.k or 1
    if not (pair.a.judged.judged and pair.b.judged.judged):
        return "no threshold says what passes"
    passed = over_common(pair, pair.a.judged.passed, pair.b.judged.passed)
    enough = np.minimum(pair.n_a, pair.n_b) >= k
    if not enough.any():
        return f"no task has {k} repeats in both runs"
    formula = stats.pass_at_k if limit.name == "pass_at_k" else stats.pass_hat_k
    before, after = (
        formula(n[enough], np.rint(rate[enough] * n[enough]).astype(np.int64), k)
        for n, rate in zip((pair.n_a, pair.n_b), passed, strict=True)
    )
    return _of_means(limit, before, after, stats.mean_change(after - before, pair.step), RATE)


def _of_rows(limit: Limit, pair: Paired, question: str) -> Measured | str:
    """The score of a slice, how often rows end in one way, or what is lost on one side of the losses."""
    chosen: Bools = np.ones(pair.d.size, bool)
    unit = RATE
    if limit.slice is not None:
        inside = _in_slice(pair, *limit.slice)
        if isinstance(inside, str):
            return inside
        chosen, values = inside, (pair.a.judged.score, pair.b.judged.score)
        unit = _unit(pair.a.score_name)
    elif limit.name in OUTCOMES:
        flag = OUTCOMES[limit.name]
        if flag not in pair.a.flags or flag not in pair.b.flags:
            return "the runs do not report it"
        values = (pair.a.flags[flag].astype(np.float64), pair.b.flags[flag].astype(np.float64))
    elif not (pair.a.is_bounded and pair.b.is_bounded):
        return "rewards leave the range 0 to 1, so nothing says what is lost"
    else:
        a, b = rejudged(pair)
        values = (_lost(a, LOSSES[limit.name]), _lost(b, LOSSES[limit.name]))
    rows, before, after = _rows(pair, values, chosen)
    if question == NEW:
        return _of_means(limit, before, after, stats.mean_change(after - before, pair.step), unit)
    return _of_means(limit, before, after, stats.within_change(rows, pair.step), unit)


def _of_means(
    limit: Limit, before: Floats, after: Floats, change: stats.Change | None, unit: str
) -> Measured | str:
    """A change of task means, with its bound."""
    if change is None:
        return TOO_FEW
    low90, high90 = change.interval(1 - 2 * ALPHA)
    return Measured(
        baseline=float(before.mean()),
        candidate=float(after.mean()),
        own=float(after.mean()),
        change=change.estimate,
        low=change.low,
        high=change.high,
        bound=high90 if limit.is_cost else low90,
        is_exact_bound=True,
        p=change.p,
        n=before.size,
        unit=unit,
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
    for side, codes in ((pair.a, pair.code_a), (pair.b, pair.code_b)):
        of_task, labels = side.slices.get(field, (np.full(len(side.judged.task_keys), -1), ()))
        wanted = labels.index(value) if value in labels else -2
        columns.append((of_task[codes] == wanted, of_task[codes] < 0))
    (is_a, none_a), (is_b, none_b) = columns
    inside: Bools = (is_a | none_a) & (is_b | none_b) & ~(none_a & none_b)
    return inside if inside.any() else f"no common task has {field}={value}"


def _rows(pair: Paired, values: tuple[Floats, Floats], chosen: Bools) -> tuple[stats.Rows, Floats, Floats]:
    """Sums of row values by chosen task, and their means."""
    n_a, n_b = pair.n_a[chosen], pair.n_b[chosen]
    means_a, means_b = (
        means(pair.a, values[0])[pair.code_a][chosen],
        means(pair.b, values[1])[pair.code_b][chosen],
    )
    squares_a = means(pair.a, values[0] ** 2)[pair.code_a][chosen] * n_a
    squares_b = means(pair.b, values[1] ** 2)[pair.code_b][chosen] * n_b
    is_binary = all(bool(np.isin(column, (0.0, 1.0)).all()) for column in values)
    rows = stats.Rows(n_a, n_b, means_a * n_a, means_b * n_b, squares_a, squares_b, is_binary)
    return rows, means_a, means_b

"""Explain why the scores of runs differ, in terms that add up to the change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from blade.compare.alignment import align
from blade.compare.bridge import bridge, with_clean
from blade.compare.change_verdict import EQUIVALENT, SMALL, judgement
from blade.compare.change_views import movers, views
from blade.compare.flips import churn, flips, sure_flips, transitions
from blade.compare.rejudgements import rejudged
from blade.compare.run_settings import config_diff, effects, separation, signed
from blade.compare.several_runs import adjusted, matrix, series
from blade.compare.shifts import derived, shifts
from blade.compare.task_pairs import Paired, means, paired
from blade.model import MARGIN, Alignment, Comparison, Setting, Side

__all__ = ["MARGIN", "adjusted", "brief", "compare", "effects", "matrix", "series"]

LARGEST = 1e12  # of a reward, beyond which sums of squares lose the differences


def compare(a: Side, b: Side, margin: float = MARGIN) -> Comparison:
    """Say everything about the change from baseline `a` to candidate `b`."""
    comparison, pair = _compared(a, b, margin)
    if pair is None:
        return comparison
    a, b = rejudged(pair)
    pair = with_clean(dataclasses.replace(pair, a=a, b=b))
    terms, note = bridge(pair)
    further = views(pair, terms, comparison.config_diff, comparison.separable)
    moved, left_out = shifts(pair)
    more = f"{left_out:,} further behaviours and errors that did not clearly change are not listed"
    return replace(
        comparison, bridge=terms, bridge_note=note, views=further,
        movers=movers(pair, terms, further, comparison.config_diff), flips=flips(pair), churn=churn(pair),
        sure=sure_flips(pair), transitions=transitions(pair), shifts=moved, derived=derived(pair),
        notes=(*comparison.notes, more) if left_out else comparison.notes,
    )  # fmt: skip


def brief(a: Side, b: Side, margin: float = MARGIN) -> Comparison:
    """The verdicts alone."""
    return _compared(a, b, margin)[0]


def _compared(a: Side, b: Side, margin: float) -> tuple[Comparison, Paired | None]:
    """Two runs with their verdicts, and their tasks in pairs; or why they cannot be compared."""
    alignment = align(a, b)
    score_a, score_b = _score(a), _score(b)
    diff = config_diff(a, b, alignment)
    if alignment.added or alignment.removed or alignment.modified:  # the task set is a setting too
        n_a, n_b = (len(np.unique(side.judged.task)) for side in (a, b))
        after = f"{n_b:,} tasks, {len(alignment.common):,} the same"
        diff += (Setting("dataset", f"{n_a:,} tasks", after, "data", mechanical=True, counts=False),)
    empty = Comparison(
        a.run, b.run, b.score_name, score_a, score_b, None, None, None, None, alignment, None, None, margin,
        None, config_diff=diff,
    )  # fmt: skip
    if (why := _refusal(a, b, alignment)) is not None:
        return replace(empty, refused=why), None
    pair = paired(a, b, alignment)
    judged = judgement(pair, margin)
    hashes_a, hashes_b = np.sort(a.row_hash), np.sort(b.row_hash)  # 0 stands for a row that has none
    identical = bool(hashes_a.size and hashes_a[0] and np.array_equal(hashes_a, hashes_b))
    separable, missing = separation(diff, a, b)
    return replace(
        empty, delta=None if score_a is None or score_b is None else score_b - score_a,
        delta_common=float(pair.d.mean()), common_baseline=float(pair.mean_a.mean()),
        common_candidate=float(pair.mean_b.mean()), verdict=EQUIVALENT if identical else judged.verdict,
        verdict_new_tasks=EQUIVALENT if identical else judged.verdict_new_tasks, power=judged.power,
        tests=judged.tests, separable=separable, missing_run=missing, identical=identical,
        notes=tuple(_notes(alignment, pair, identical)),
    ), pair


def _score(side: Side) -> float | None:
    task_means = means(side, side.judged.score)
    task_means = task_means[~np.isnan(task_means)]
    return float(task_means.mean()) if task_means.size else None


def _refusal(a: Side, b: Side, alignment: Alignment) -> str | None:
    """Why the two cannot be compared, if they cannot."""
    if not a.judged.rows.size or not b.judged.rows.size:
        empty = a.run if not a.judged.rows.size else b.run
        return f"{empty} has no scored rollout"
    for side in (a, b):
        if "no usable reward" in side.flags and side.flags["no usable reward"].all():
            return f"{side.run} has no usable reward in any row"
        if float(np.abs(side.judged.score).max()) > LARGEST:
            return f"rewards of {side.run} are too large to compare (beyond {LARGEST:g})"
    if a.score_name != b.score_name:
        return (
            f"the scores are of different kinds: {a.run} has {a.score_name}, {b.run} has {b.score_name}; "
            "--pass-threshold judges both alike"
        )
    if a.threshold != b.threshold and a.score_name == "pass_at_1":
        return f"the runs pass at different rewards ({a.threshold:g} and {b.threshold:g}); --pass-threshold judges both alike"
    if alignment.common:
        return None
    if alignment.modified:
        return f"all {len(alignment.modified):,} tasks with the same key have different content, so they are not the same"
    return f"the runs have no task in common ({_some(alignment.removed)} against {_some(alignment.added)})"


def _some(keys: tuple[str, ...]) -> str:
    listed = ", ".join(keys[:3])
    return f"{listed} and {len(keys) - 3:,} more" if len(keys) > 3 else listed or "none"


def _notes(alignment: Alignment, pair: Paired, identical: bool) -> Iterator[str]:
    if identical:
        yield "both runs hold the same rows: there is nothing to compare"
    lost = alignment.missing_baseline or alignment.missing_candidate
    if alignment.added or alignment.removed or alignment.modified or lost:
        yield f"verdicts rest on the {len(alignment.common):,} tasks both runs have; the effect of the others on the score is in the bridge"
    if pair.n_a.mean() != pair.n_b.mean():
        yield (
            f"repeats differ: {pair.n_a.mean():.3g} a task in {pair.a.run}, {pair.n_b.mean():.3g} in {pair.b.run}; "
            "every task counts the same"
        )
    yield from _missing(pair)
    if not identical and 0 < abs(float(pair.d.mean())) < SMALL:
        yield (
            f"the change is below {100 * SMALL:g} points: resources, timeouts, images or sampling "
            "can move a score by as much, so it needs settings that match"
        )


def _missing(pair: Paired) -> Iterator[str]:
    """What rollouts without a score could do to the change, if common tasks lack some."""
    lost_a, lost_b = (np.maximum(side.expected[codes] - n, 0) for side, codes, n in pair.runs)
    n_lost = int(lost_a.sum() + lost_b.sum())
    if not n_lost or not pair.is_bounded:
        return
    (worst_a, best_a), (worst_b, best_b) = (
        # if all that is missing had failed, and if all had passed
        (float((mean * n / (n + lost)).mean()), float(((mean * n + lost) / (n + lost)).mean()))
        for mean, n, lost in ((pair.mean_a, pair.n_a, lost_a), (pair.mean_b, pair.n_b, lost_b))
    )
    low, high = 100 * (worst_b - best_a), 100 * (best_b - worst_a)
    yield (
        f"{n_lost:,} expected rollouts of the common tasks have no score ({int(lost_a.sum()):,} in "
        f"{pair.a.run}, {int(lost_b.sum()):,} in {pair.b.run}) and are not counted: whatever they would "
        f"have scored, the change lies between {signed(low, '.1f')} and {signed(high, '.1f')} points"
    )

"""Explain why the scores of runs differ, in terms that add up to the change."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec.structs import replace

from blade.compare import change_verdict as verdicts
from blade.compare.alignment import align
from blade.compare.behaviour_shifts import shifts
from blade.compare.bridge import bridge
from blade.compare.change_verdict import EQUIVALENT, judgement
from blade.compare.change_views import views
from blade.compare.checkpoints import series
from blade.compare.flips import churn, flips, sure_flips, transitions
from blade.compare.losses import with_clean
from blade.compare.movers import movers
from blade.compare.other_measures import derived
from blade.compare.rejudgements import rejudged
from blade.compare.run_settings import config_diff, effects, separation, signed
from blade.compare.several_runs import adjusted, matrix
from blade.compare.task_pairs import Paired, means, paired
from blade.model import MARGIN, Alignment, Comparison, Setting, Side

if TYPE_CHECKING:
    from blade.model import Floats, Ints

__all__ = ["MARGIN", "adjusted", "brief", "compare", "effects", "matrix", "series"]

LARGEST = 1e12  # of a reward, beyond which sums of squares lose the differences


def compare(a: Side, b: Side, margin: float = MARGIN) -> Comparison:
    """Say everything about the change from baseline `a` to candidate `b`."""
    alignment = align(a, b)
    partial = _compared(a, b, alignment, margin)
    if partial.comparison.refused is not None or partial.pair is None:
        return partial.comparison
    pair = partial.pair
    a, b = rejudged(pair)
    pair = with_clean(dataclasses.replace(pair, a=a, b=b))
    terms, note = bridge(pair)
    diff, separable = partial.comparison.config_diff, partial.comparison.separable
    further = views(pair, terms, diff, separable)
    moved, left_out = shifts(pair)
    swing = churn(pair)
    notes = [*partial.comparison.notes]
    if left_out:
        notes.append(f"{left_out:,} further behaviours and errors that did not clearly change are not listed")
    return replace(
        partial.comparison,
        bridge=terms,
        bridge_note=note,
        views=further,
        movers=movers(pair, terms, further, diff),
        flips=flips(pair),
        churn=swing,
        sure=sure_flips(pair),
        transitions=transitions(pair),
        shifts=moved,
        derived=derived(pair),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )


def brief(a: Side, b: Side, margin: float = MARGIN) -> Comparison:
    """The verdicts alone."""
    return _compared(a, b, align(a, b), margin).comparison


class _Partial(NamedTuple):
    comparison: Comparison
    pair: Paired | None


def _compared(a: Side, b: Side, alignment: Alignment, margin: float) -> _Partial:
    score_a, score_b = _score(a), _score(b)
    diff = (*config_diff(a, b, alignment), *_data(alignment, a, b))
    empty = Comparison(
        a.run, b.run, b.score_name, score_a, score_b, None, None, None, None, alignment, None, None, margin,
        None, config_diff=diff,
    )  # fmt: skip
    why = _refusal(a, b, alignment)
    if why is not None:
        return _Partial(replace(empty, refused=why), None)
    pair = paired(a, b, alignment)
    judged = judgement(pair, margin)
    identical = _are_identical(a, b)
    separable, missing = separation(diff, a, b)
    comparison = replace(
        empty,
        delta=None if score_a is None or score_b is None else score_b - score_a,
        delta_common=float(pair.d.mean()),
        common_baseline=float(pair.mean_a.mean()),
        common_candidate=float(pair.mean_b.mean()),
        verdict=EQUIVALENT if identical else judged.verdict,
        verdict_new_tasks=EQUIVALENT if identical else judged.verdict_new_tasks,
        power=judged.power,
        tests=judged.tests,
        separable=separable,
        missing_run=missing,
        identical=identical,
        notes=_notes(a, b, alignment, pair, identical),
    )
    return _Partial(comparison, pair)


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
        return (
            f"the runs pass at different rewards ({a.threshold:g} and {b.threshold:g}); "
            "--pass-threshold judges both alike"
        )
    if alignment.common:
        return None
    if alignment.modified:
        return f"all {len(alignment.modified):,} tasks with the same key have different content, so they are not the same"
    return f"the runs have no task in common ({_some(alignment.removed)} against {_some(alignment.added)})"


def _some(keys: tuple[str, ...]) -> str:
    listed = ", ".join(keys[:3])
    return f"{listed} and {len(keys) - 3:,} more" if len(keys) > 3 else listed or "none"


def _data(alignment: Alignment, a: Side, b: Side) -> list[Setting]:
    """The task set as a setting, where it differs."""
    if not (alignment.added or alignment.removed or alignment.modified):
        return []
    n_a, n_b = (len(np.unique(side.judged.task)) for side in (a, b))
    after = f"{n_b:,} tasks, {len(alignment.common):,} the same"
    return [Setting("dataset", f"{n_a:,} tasks", after, "data", mechanical=True, counts=False)]


def _are_identical(a: Side, b: Side) -> bool:
    """Whether the runs hold the same rows, whatever their order."""
    if a.row_hash.size != b.row_hash.size or not a.row_hash.size:
        return False
    if (a.row_hash == 0).any() or (b.row_hash == 0).any():
        return False
    return bool((np.sort(a.row_hash) == np.sort(b.row_hash)).all())


def _notes(a: Side, b: Side, alignment: Alignment, pair: Paired, identical: bool) -> tuple[str, ...]:
    notes = []
    if identical:
        notes.append("both runs hold the same rows: there is nothing to compare")
    outside = (alignment.added, alignment.removed, alignment.modified)
    lost = (alignment.missing_baseline, alignment.missing_candidate)
    if any(outside) or any(lost):
        notes.append(
            f"verdicts rest on the {len(alignment.common):,} tasks both runs have; "
            "the effect of the others on the score is in the bridge"
        )
    if pair.n_a.mean() != pair.n_b.mean():
        notes.append(
            f"repeats differ: {pair.n_a.mean():.3g} a task in {a.run}, {pair.n_b.mean():.3g} in {b.run}; "
            "every task counts the same"
        )
    notes += _missing(pair)
    shown = abs(float(pair.d.mean()))
    if not identical and 0 < shown < verdicts.SMALL:
        notes.append(
            f"the change is below {100 * verdicts.SMALL:g} points: resources, timeouts, images or sampling "
            "can move a score by as much, so it needs settings that match"
        )
    return tuple(notes)


def _missing(pair: Paired) -> list[str]:
    """What rollouts without a score could do to the change, if common tasks lack some."""
    lost_a = np.maximum(pair.a.expected[pair.code_a] - pair.n_a, 0)
    lost_b = np.maximum(pair.b.expected[pair.code_b] - pair.n_b, 0)
    n_lost = int(lost_a.sum() + lost_b.sum())
    if not n_lost or not (pair.a.is_bounded and pair.b.is_bounded):
        return []
    worst_a, best_a = _bounds(pair.mean_a, pair.n_a, lost_a)
    worst_b, best_b = _bounds(pair.mean_b, pair.n_b, lost_b)
    low, high = 100 * (worst_b - best_a), 100 * (best_b - worst_a)
    return [
        f"{n_lost:,} expected rollouts of the common tasks have no score ({int(lost_a.sum()):,} in "
        f"{pair.a.run}, {int(lost_b.sum()):,} in {pair.b.run}) and are not counted: whatever they would "
        f"have scored, the change lies between {signed(low, '.1f')} and {signed(high, '.1f')} points"
    ]


def _bounds(mean: Floats, n: Ints, lost: Ints) -> tuple[float, float]:
    """The score if all that is missing had failed, and if all had passed."""
    whole = n + lost
    return float((mean * n / whole).mean()), float(((mean * n + lost) / whole).mean())

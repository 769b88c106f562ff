"""Split the change of a score into terms: other tasks, lost tasks, then failure groups with what each takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import msgspec
import numpy as np

from blade import stats
from blade.compare.task_pairs import Paired, TaskSets, counts, mean, reach, row_places, summed, task_sets
from blade.model import OTHER, SIDES, Bools, Floats, Ints, Side, Term

MODEL, UNDETERMINED = "model", "undetermined"
UNEXPLAINED = (UNDETERMINED, OTHER)
UNSCORED = ("data", "no usable reward")
REST = "other groups ("  # how many, and a bracket
MAX_MODES = 12  # of the model's; the others are one term
COMPOSITION = ("composition", "missing")  # sides of the terms that are not about the common tasks

_NOTE = (
    "This is accounting, not causation: each rollout that loses points counts for one failure group, and a group "
    "that goes away lets rollouts fail in other ways. Rollouts that something outside the model broke count for "
    "what their task would score without them. The groups are found in all compared runs together, so they may "
    "differ from those of a run by itself."
)
_UNBOUNDED = "There are no failure groups: scores leave the range 0 to 1, so no full score says what a row lost."


def bridge(pair: Paired) -> tuple[tuple[Term, ...], str]:
    """Terms that add up to the change of the headline score, and what to know before reading them."""
    sets = task_sets(pair)
    if not (sets.n_common or (sets.codes_a.size and sets.codes_b.size)):
        return (), "A run without a counted row has no score."
    if not sets.n_common:
        change = stats.two_means(sets.mean_a, sets.mean_b)
        return (
            term_of("other tasks", sets.delta, change, 2 * reach(pair), "composition", sets.n_all),
        ), "The runs share no task."
    modes = _modes(pair) if pair.is_bounded else ()
    if not modes:
        change = stats.mean_change(pair.d, pair.step)
        modes = (term_of("change on the common tasks", mean(pair.d), change, reach(pair), "task", pair.d.size),)
    return (*composition(pair, sets), *modes), _NOTE if pair.is_bounded else _UNBOUNDED


def term_of(name: str, value: float, change: stats.Change | None, widest: float, side: str, n: int) -> Term:
    """Where the tasks do not say how sure a term is, it may be anything that is possible."""
    if change is None:
        return Term(name, value, min(-widest, value), max(widest, value), None, side, n)
    return Term(name, value, change.low, change.high, change.p, side, n)


# ---- Tasks that are not common ---------------------------------------------------------------------


def composition(pair: Paired, sets: TaskSets) -> tuple[Term, ...]:
    """What tasks outside the common ones add: each moves its run's mean away from that of the common."""
    alignment, n = pair.alignment, sets.n_common
    kinds_a = _kinds(pair.a, sets.codes_a[n:], alignment.modified, alignment.missing_candidate)
    kinds_b = _kinds(
        pair.b, sets.codes_b[n:], alignment.modified_candidate or alignment.modified, alignment.missing_baseline
    )
    a, b = (-1, sets.mean_a, kinds_a), (1, sets.mean_b, kinds_b)
    terms = []
    for name, side, kind, runs in (
        ("added tasks", "composition", _OTHERS, (b,)),
        ("removed tasks", "composition", _OTHERS, (a,)),
        ("modified tasks", "composition", _MODIFIED, (a, b)),
        ("tasks the candidate lost", "missing", _MISSING, (a,)),
        ("tasks the baseline lost", "missing", _MISSING, (b,)),
    ):
        groups = [(sign, x, x[n:][kinds == kind]) for sign, x, kinds in runs if (kinds == kind).any()]
        if groups:
            terms.append(_outside(name, side, groups, n, reach(pair)))
    return tuple(terms)


_OTHERS, _MODIFIED, _MISSING = range(3)


def _kinds(side: Side, codes: Ints, modified: Sequence[str], missing: Sequence[str]) -> Ints:
    """What each task outside the common ones is."""
    known = dict.fromkeys(missing, _MISSING) | dict.fromkeys(modified, _MODIFIED)
    return np.array([known.get(side.judged.task_keys[code], _OTHERS) for code in codes.tolist()], np.int64)


def _outside(
    name: str, side: str, groups: Sequence[tuple[int, Floats, Floats]], n_common: int, widest: float
) -> Term:
    """One term of some tasks of one run or of both (sign, all tasks, those of the term), sure as its difference from the common ones is."""
    value, most, n = 0.0, 0.0, 0
    parts: list[stats.Change | None] = []
    p: float | None = None
    for sign, x, outside in groups:
        common, share = x[:n_common], outside.size / x.size
        value += sign * share * (mean(outside) - mean(common))
        most += share * widest
        n = max(n, outside.size)
        change = stats.two_means(common, outside)
        # Welch's trusts a small group that happens not to vary, and has no answer if neither does.
        p = stats.two_groups(common, outside)
        if change is not None:
            known = [p_value for p_value in (p, change.p) if p_value is not None]
            change = change._replace(se=share * change.se, p=max(known, default=None))
        parts.append(change)
    term = term_of(name, value, _added_up(value, parts), most, side, n)
    return msgspec.structs.replace(term, p=p) if term.p is None and len(groups) == 1 else term


def _added_up(value: float, parts: Sequence[stats.Change | None]) -> stats.Change | None:
    """The sum of independent changes; None where one of them is not known (Satterthwaite 1946)."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    variance = math.fsum(part.se**2 for part in known)
    df = variance**2 / math.fsum(part.se**4 / part.df for part in known)
    change = stats.student(value, value, math.sqrt(variance), df, "Welch t")
    return change._replace(p=known[0].p) if len(known) == 1 else change


# ---- The common tasks ------------------------------------------------------------------------------


def is_named(term: Term) -> bool:
    """Whether a term of the common tasks is one failure group, and says which."""
    return not term.term.startswith(REST)


def model_modes(pair: Paired, least: int) -> int:
    """Named modes of the model that take points in so many rows of common tasks, told apart or not."""
    modes, by_run = _losses(pair)
    rows = np.bincount(np.concatenate([codes[losses.rows] for losses, codes in by_run]), minlength=len(modes)).tolist()
    return sum(n >= least and side == MODEL for (side, _), n in zip(modes, rows, strict=True))


def _losses(pair: Paired) -> tuple[list[tuple[str, str]], list[tuple[Lost, Ints]]]:
    """The modes of both runs, and of each run its losses and the modes of its rows; what nobody named is unexplained."""
    modes = list(dict.fromkeys((*pair.a.modes, *pair.b.modes, UNEXPLAINED)))
    by_run = []
    for side, common, _ in pair.runs:
        places = np.array([modes.index(mode) for mode in (*side.modes, UNEXPLAINED)], np.int64)
        by_run.append((lost(side, common), places[side.mode]))  # -1 is the last
    return modes, by_run


def _modes(pair: Paired) -> tuple[Term, ...]:
    """One term for each mode, by side; small ones of the model's together."""
    modes, by_run = _losses(pair)
    totals = [losses.totals(codes, len(modes)).tolist() for losses, codes in by_run]
    slots, slot_of = _slots(dict(zip(modes, zip(*totals, strict=True), strict=True)))
    by_slot = list(zip(*(losses.by_task(slot_of[codes], len(slots)) for losses, codes in by_run), strict=True))
    terms = []
    for (side, name), (a, b) in zip(slots, by_slot, strict=True):
        concerned = int(np.count_nonzero((a != 0) | (b != 0)))
        change = _agreed(pair, a, b, stats.mean_change(a - b, pair.step))
        terms.append(term_of(name, mean(a - b), change, 1.0, side, concerned))
    models = [place for place, term in enumerate(terms) if term.side in (MODEL, UNDETERMINED)]
    with_excess = _with_excess([terms[place] for place in models], [by_slot[place] for place in models], pair.step)
    for place, term in zip(models, with_excess, strict=True):
        terms[place] = term
    return tuple(terms)


def _agreed(pair: Paired, a: Floats, b: Floats, change: stats.Change | None) -> stats.Change | None:
    """A change of losses with a p that an exchange of rows within tasks agrees to: unequal numbers of rows skew rare losses."""
    if change is None or change.p is None:
        return change
    lost_a: Floats = np.abs(a) * pair.n_a
    lost_b: Floats = np.abs(b) * pair.n_b
    rows = stats.Rows(pair.n_a, pair.n_b, lost_a, lost_b, lost_a, lost_b, pair.is_binary)
    if not stats.is_lopsided(rows):
        return change
    these = stats.within_change(rows, pair.step)
    return change if these is None or these.p is None else change._replace(p=max(change.p, these.p))


def _slots(sizes: dict[tuple[str, str], tuple[float, float]]) -> tuple[list[tuple[str, str]], Ints]:
    """The terms in their order, and for each mode of the table the term that it belongs to."""
    sides = {side: place for place, side in enumerate(SIDES)}
    seen = [mode for mode, (a, b) in sizes.items() if a or b]

    def rank(mode: tuple[str, str]) -> tuple[int, bool, float, str]:
        moved = -round(abs(sizes[mode][0] - sizes[mode][1]), 12)  # below, the order of additions would sort
        return sides.get(mode[0], len(sides)), mode == UNEXPLAINED, moved, mode[1]

    seen.sort(key=rank)
    rest = [mode for mode in seen if mode[0] == MODEL][MAX_MODES:]
    together = (MODEL, f"{REST}{len(rest)})")
    slots = list(dict.fromkeys(together if mode in rest else mode for mode in seen))
    places = {mode: slots.index(together if mode in rest else mode) for mode in seen}
    return slots, np.array([places.get(mode, 0) for mode in sizes], np.int64)


def _with_excess(terms: Sequence[Term], by_mode: Sequence[tuple[Floats, Floats]], step: float) -> list[Term]:
    """The model's modes with what each would be if all had changed by the same factor, and the p of that.

    The mode that stands out most pushes the others the other way: rows that end early by one fail by no
    other. So each of these must stand out among the others alone as well.
    """
    if not terms:
        return []
    excesses = [_excess(mode, by_mode, step) for mode in by_mode]
    # Surest first, then largest; two modes that are all there is are equally sure but for rounding.
    order = [
        (round(math.log10(max(p, 1e-300)), 6), -round(abs(term.value), 12), term.term)
        for term, (_, p) in zip(terms, excesses, strict=True)
    ]
    first = order.index(min(order))
    others = [*by_mode[:first], *by_mode[first + 1 :]]
    replaced = []
    for i, (term, (expected, p)) in enumerate(zip(terms, excesses, strict=True)):
        if i != first:
            p = max(p, _excess(by_mode[i], others, step)[1])
        replaced.append(msgspec.structs.replace(term, expected=expected, p_excess=p))
    return replaced


def _excess(of_mode: tuple[Floats, Floats], by_mode: Sequence[tuple[Floats, Floats]], step: float) -> tuple[float, float]:
    """What a mode would be as its share of the change of all of them, and the p that it is no other.

    The share of a mode is that of the losses of both runs together; it is estimated from the same tasks, and
    the last part of `excess`, whose mean is 0, is what that adds to the spread.
    """
    all_a, all_b = (np.sum(losses, axis=0) for losses in zip(*by_mode, strict=True))
    moved, moved_all = of_mode[0] - of_mode[1], all_a - all_b
    size, size_all = of_mode[0] + of_mode[1], all_a + all_b
    whole_size, change = float(size_all.mean()), float(moved_all.mean())
    share = float(size.mean()) / whole_size  # a term without any loss is no term
    excess = moved - share * moved_all - change / whole_size * (size - share * size_all)
    change_of_excess = stats.mean_change(excess, step)
    return share * change, 1.0 if change_of_excess is None or change_of_excess.p is None else change_of_excess.p


# ---- Losses, booked on failure groups ---------------------------------------------------------------


@dataclass(frozen=True)
class Lost:
    """The rows of one run that lose points on common tasks."""

    rows: Ints  # of the run's counted rows
    task: Ints  # place among the common tasks
    points: Floats  # what the row takes from the mean of its task
    n_tasks: int

    def totals(self, group: Ints, n_groups: int) -> Floats:
        """What all tasks together lose to each group; `group` by counted row."""
        return summed(group[self.rows], self.points, n_groups)

    def by_task(self, group: Ints, n_groups: int) -> list[Floats]:
        """What each task loses to each group."""
        own = group[self.rows].astype(np.int16)  # few groups, and small numbers sort quickly
        order = np.argsort(own, kind="stable")
        ends = np.searchsorted(own[order], np.arange(n_groups + 1))
        parts = [order[start:end] for start, end in pairwise(ends.tolist())]
        return [summed(self.task[part], self.points[part], self.n_tasks) for part in parts]


def lost(side: Side, common: Ints) -> Lost:
    """The losses of a run on common tasks.

    A row that was spoiled says nothing of its task: it loses what its task would gain without it.
    So a clean row loses its share of the clean rows, and the spoiled ones of a task together the rest of
    what the task loses.
    """
    place = row_places(side, common)
    rows = np.flatnonzero((side.judged.score < 1) & (place >= 0))
    task = place[rows]
    points = 1.0 - side.judged.score[rows]
    n = counts(side)[common]
    is_bad = spoiled(side)[rows]
    if not is_bad.any():
        return Lost(rows, task, points / n[task], common.size)
    n_clean = n - np.bincount(task[is_bad], minlength=common.size)
    clean = summed(task[~is_bad], points[~is_bad], common.size) / np.maximum(n_clean, 1)
    bad = summed(task[is_bad], points[is_bad], common.size)
    whole = summed(task, points, common.size) / n
    shared = np.where(bad > 0, (whole - clean) / np.where(bad > 0, bad, 1.0), 0.0)
    own = np.where(is_bad, points * shared[task], points / np.maximum(n_clean, 1)[task])
    return Lost(rows, task, own, common.size)


def spoiled(side: Side) -> Bools:
    """Rows that something outside the model spoiled, so that they measure nothing; by counted row."""
    bad = [mode[0] == "infrastructure" or mode == UNSCORED for mode in side.modes]
    is_spoiled: Bools = np.array([*bad, False], bool)[side.mode]  # -1 is the last
    return is_spoiled


def booked(side: Side, rows: Ints | Bools, group: tuple[str, str]) -> Side:
    """The run with what these rows lose booked on one failure group."""
    modes = side.modes if group in side.modes else (*side.modes, group)
    mode = side.mode.copy()
    mode[rows] = modes.index(group)
    return msgspec.structs.replace(side, mode=mode, modes=modes)


def with_clean(pair: Paired) -> Paired:
    """The pair with tasks that one run has no clean row of, which compare nothing, booked in both runs on what spoiled them."""
    bad_a, bad_b = spoiled(pair.a), spoiled(pair.b)
    if not (bad_a.any() or bad_b.any()):
        return pair
    spoils_a, spoils_b = _spoilers(pair.a, pair.code_a, bad_a), _spoilers(pair.b, pair.code_b, bad_b)
    return replace(
        pair, a=_rebooked(pair.a, pair.code_a, pair.b, np.where(spoils_a < 0, spoils_b, -1)),
        b=_rebooked(pair.b, pair.code_b, pair.a, np.where(spoils_b < 0, spoils_a, -1)),
    )


def _spoilers(side: Side, codes: Ints, bad: Bools) -> Ints:
    """The mode that spoiled all rows of each common task; -1 where a row is clean."""
    n = counts(side)
    left = n - np.bincount(side.judged.task[bad], minlength=n.size)
    first = np.minimum(np.searchsorted(side.judged.task, codes), side.mode.size - 1)
    modes: Ints = np.where(left[codes] == 0, side.mode[first], -1)
    return modes


def _rebooked(side: Side, codes: Ints, other: Side, spoilers: Ints) -> Side:
    """A run with its losses on some tasks booked under modes of the other run."""
    of_task = np.full(len(side.judged.task_keys), -1)
    of_task[codes] = spoilers
    wanted = of_task[side.judged.task]
    for code in np.unique(spoilers[spoilers >= 0]).tolist():
        side = booked(side, (wanted == code) & (side.mode >= 0), other.modes[code])
    return side

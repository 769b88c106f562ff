"""Claim the terms that moved the score, surest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.bridge import COMPOSITION, MODEL, is_named, model_modes
from blade.compare.change_verdict import rows_of
from blade.compare.change_views import NAME, labelled
from blade.compare.run_settings import signed
from blade.compare.task_pairs import Paired, TaskSets, task_sets
from blade.model import Mover, Setting, Side, Term, View

if TYPE_CHECKING:
    from blade.model import Ints

LEVEL = 0.05  # of comparisons in which nothing changed, at most this share claims anything
MIN_TASKS = 5  # fewer cannot be told from chance, and would only make the others harder to tell
BRIDGE = "bridge"
_MECHANICAL = (*COMPOSITION, "infrastructure", "task or verifier")
_LIMITED = ("truncat", "cut off", "timeout", "timed out", "context", "limit", "budget")


@dataclass(frozen=True)
class _Candidate:
    view: str
    term: Term
    p: float  # by which it is claimed
    p_excess: float  # by which it is ranked
    is_mechanical: bool


def movers(
    pair: Paired,
    bridge: Sequence[Term],
    views: Sequence[View],
    config_diff: Sequence[Setting],
) -> tuple[Mover, ...]:
    """Claim the terms that are beyond noise, corrected for all that were looked at (Holm 1979).

    The largest failure group that moved with the score needs no more than that. Any other group, and any slice,
    must also have moved by more than its share: otherwise a change of everything alike would claim them all.
    """
    sets = task_sets(pair)
    limit_changed = any(setting.kind == "limit" for setting in config_diff)
    candidates = [*_of_bridge(bridge, limit_changed), *_of_slices(pair, sets, views)]
    # Modes that are told together were looked at, too: it is the largest changes that are told apart.
    n_modes = sum(1 for candidate in candidates if candidate.term.side == MODEL)
    unseen = [1.0] * max(0, model_modes(pair, MIN_TASKS) - n_modes)
    adjusted = stats.holm([*(candidate.p for candidate in candidates), *unseen])
    claimed = [(claim, p) for claim, p in zip(candidates, adjusted, strict=False) if p is not None and p <= LEVEL]
    claimed.sort(key=lambda claim: _rank(claim[0]))
    return tuple(_mover(pair, sets, candidate, p) for candidate, p in claimed)


def _rank(candidate: _Candidate) -> tuple[bool, float, float, str, str]:
    term = candidate.term
    return not candidate.is_mechanical, candidate.p_excess, -abs(term.value), candidate.view, term.term


def _of_bridge(bridge: Sequence[Term], limit_changed: bool) -> Iterator[_Candidate]:
    largest = _largest(bridge)
    for term in bridge:
        if term.p is None:
            continue
        if term.side == MODEL:
            if not is_named(term) or term.n < MIN_TASKS:
                continue
            excess = max(term.p, 1.0 if term.p_excess is None else term.p_excess)
            is_limit = limit_changed and any(word in term.term.lower() for word in _LIMITED)
            yield _Candidate(BRIDGE, term, term.p if term is largest else excess, excess, is_limit)
        elif term.side in (*_MECHANICAL, "data"):
            yield _Candidate(BRIDGE, term, term.p, term.p, term.side in _MECHANICAL)


def _largest(bridge: Sequence[Term]) -> Term | None:
    """The failure group of the model that takes most of the change of the common tasks, in its direction."""
    change = sum(term.value for term in bridge if term.side not in COMPOSITION)
    named = [term for term in bridge if term.side == MODEL and is_named(term) and term.value * change > 0]
    return max(named, key=lambda term: abs(term.value), default=None)


def _of_slices(pair: Paired, sets: TaskSets, views: Sequence[View]) -> Iterator[_Candidate]:
    """Rates of labels; labels that mark the same tasks count once."""
    seen: set[tuple[bytes, bytes]] = set()
    for view in views:
        if not view.name.startswith(NAME):
            continue
        field = view.name.removeprefix(NAME)
        labels = labelled(pair, sets, field)
        place = {f"{field}={label}": i for i, label in enumerate(labels.labels)}
        for term in view.terms:
            i = place.get(term.term)
            if term.side != "slice" or term.p is None or term.p_excess is None or i is None:
                continue
            marked = (labels.cell_a == i).tobytes(), (labels.cell_b == i).tobytes()
            if term.n < MIN_TASKS or not labels.is_named[i] or marked in seen:
                continue
            seen.add(marked)
            p = max(term.p, term.p_excess, _exchanged(pair, field, labels.labels[i]))
            yield _Candidate(view.name, term, p, p, False)


def _exchanged(pair: Paired, field: str, label: str) -> float:
    """p of an exchange of rows within the tasks of a slice, where the runs have different numbers of rows."""
    rows = rows_of(pair)
    if field not in pair.a.slices or not stats.is_lopsided(rows):
        return 0.0
    codes, labels = pair.a.slices[field]
    inside = codes[pair.code_a] == (labels.index(label) if label in labels else -2)
    chosen = stats.Rows(
        rows.n_a[inside],
        rows.n_b[inside],
        rows.sum_a[inside],
        rows.sum_b[inside],
        rows.squares_a[inside],
        rows.squares_b[inside],
        rows.is_binary,
    )
    change = stats.within_change(chosen, pair.step) if inside.any() else None
    return 0.0 if change is None or change.p is None else change.p


def _mover(pair: Paired, sets: TaskSets, candidate: _Candidate, p: float) -> Mover:
    term = candidate.term
    rollouts, beside = shown(pair, term) if candidate.view == BRIDGE else ((), ())
    return Mover(
        view=candidate.view,
        term=term.term,
        side=term.side,
        value=term.value,
        low=term.low,
        high=term.high,
        p_adjusted=p,
        share=term.value / sets.delta if abs(sets.delta) > 1e-9 else None,
        mechanical=candidate.is_mechanical,
        text=_text(pair, sets, term),
        rollouts=rollouts,
        beside=beside,
    )


def _text(pair: Paired, sets: TaskSets, term: Term) -> str:
    """Say in one sentence what moved, how much, what its share would be, and on how many tasks it rests."""
    is_bounded = pair.a.is_bounded and pair.b.is_bounded
    name = term.term if term.side in ("slice", *COMPOSITION) else f"{term.term} ({term.side})"
    moved = f"{name} accounts for {_amount(term.value, is_bounded)}"
    if term.expected is not None:
        even = _signed(term.expected, is_bounded)
        moved += f"; in proportion to the losses of both runs it would be {even}"
    n_all = sets.n_all if term.side in ("slice", *COMPOSITION) else sets.n_common
    return f"{moved} ({term.n} of {n_all} tasks concerned)"


def _amount(value: float, is_bounded: bool) -> str:
    return f"{_signed(value, is_bounded)} {'points' if is_bounded else 'of the mean reward'}"


def _signed(value: float, is_bounded: bool) -> str:
    return signed(100 * value, ".1f") if is_bounded else signed(value, ".3g")


MANY = 5  # rollouts from which it is said what they have in common
MOST = 0.6  # of them must show another fact for it to be said
LISTED = 5


def shown(pair: Paired, term: Term) -> tuple[tuple[tuple[str, str, int], ...], tuple[str, ...]]:
    """List run, task and repeat of some rollouts booked under the term, of the run that has more of them; and
    what most of these show as well, in words."""
    rows_a, rows_b = _rows(pair.a, pair.code_a, term), _rows(pair.b, pair.code_b, term)
    more_in_a = (rows_a.size, pair.a.run) > (rows_b.size, pair.b.run)
    side, rows = (pair.a, rows_a) if more_in_a else (pair.b, rows_b)
    judged = side.judged
    listed = tuple(
        (side.run, judged.task_keys[int(judged.task[row])], int(judged.repeat[row])) for row in rows[:LISTED]
    )
    return listed, _beside(side, rows, term)


def _rows(side: Side, common: Ints, term: Term) -> Ints:
    codes = [code for code, mode in enumerate(side.modes) if mode == (term.side, term.term)]
    return np.flatnonzero(np.isin(side.mode, codes) & np.isin(side.judged.task, common))


def _beside(side: Side, rows: Ints, term: Term) -> tuple[str, ...]:
    if rows.size < MANY or term.side != "model":
        return ()
    also = []
    for name, others in side.behaviours.items():
        n = int(np.isin(rows, others).sum())
        if name != term.term and n >= MOST * rows.size:
            also.append((-n, name))
    return tuple(
        f"{-n} of its {rows.size} failing rollouts in {side.run} also show: {name}"
        for n, name in sorted(also)[:2]
    )

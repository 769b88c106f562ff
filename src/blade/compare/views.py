"""Split the change in further ways: by slice, by task, by setting, by outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.bridge import COMPOSITION
from blade.compare.losses import lost
from blade.compare.pairing import Paired
from blade.compare.settings import changed
from blade.compare.slice_view import fields, slice_view
from blade.compare.task_sets import mean, reach, task_sets
from blade.compare.task_view import NOTE, task_terms
from blade.model import Setting, Side, Term, View

if TYPE_CHECKING:
    from blade.model import Ints

# A row that shows several counts for the first.
OUTCOMES = ("errored", "timed out", "truncated", "no usable reward")
OTHER_FAILURES = "other failures"


def views(
    pair: Paired, delta_terms: Sequence[Term], config_diff: Sequence[Setting], separable: bool | None
) -> tuple[View, ...]:
    """Every view adds up to the same change as `delta_terms`, the terms of the bridge."""
    sets = task_sets(pair)
    if not sets.n_common:
        return ()
    outside = tuple(term for term in delta_terms if term.side in COMPOSITION)
    found = [slice_view(pair, sets, field) for field in fields(pair, sets)]
    found.append(View("tasks", (*outside, *task_terms(pair)), NOTE))
    found.append(_settings(pair, outside, config_diff, separable))
    marked = any(held.any() for side in (pair.a, pair.b) for held in side.flags.values())
    if marked and pair.a.is_bounded and pair.b.is_bounded:
        found.append(_outcomes(pair, outside))
    return tuple(found)


# ---- Settings --------------------------------------------------------------------------------------


def _settings(
    pair: Paired, outside: tuple[Term, ...], config_diff: Sequence[Setting], separable: bool | None
) -> View:
    """The change of the common tasks, on the one setting that differs if there is one; the tasks apart."""
    keys = changed(config_diff)
    if not keys:
        name, note = (
            "no known setting differs",
            "What changed, if anything did, is not among the known settings.",
        )
    elif len(keys) == 1:
        name = f"{keys[0].key}: {_stated(keys[0].baseline)} → {_stated(keys[0].candidate)}"
        note = "Only this setting is known to differ. What no file states may differ as well."
        if not separable:
            note += " Some settings are stated by one run only."
    else:
        name = "not separable: " + ", ".join(sorted(setting.key for setting in keys))
        note = "Several settings changed at once: two runs cannot say which of them moved the score."
    change, value = stats.mean_change(pair.d, pair.step), mean(pair.d)
    widest = max(abs(value), reach(pair))
    low, high, p = (-widest, widest, None) if change is None else (change.low, change.high, change.p)
    return View("settings", (*outside, Term(name, value, low, high, p, "setting", pair.d.size)), note)


def _stated(value: str | None) -> str:
    return "not stated" if value is None else value


# ---- Outcomes --------------------------------------------------------------------------------------


def _outcomes(pair: Paired, outside: tuple[Term, ...]) -> View:
    """What the common tasks lose to rows that ended in one way or another."""
    names = (*OUTCOMES, OTHER_FAILURES)
    lost_a, lost_b = lost(pair)
    by_end = lost_a.by_task(_ended(pair.a), len(names)), lost_b.by_task(_ended(pair.b), len(names))
    terms = []
    for name, a, b in zip(names, *by_end, strict=True):
        concerned = int(np.count_nonzero((a > 0) | (b > 0)))
        if not concerned and name != OTHER_FAILURES:
            continue
        found = stats.mean_change(a - b, pair.step)
        low, high, p = (-1.0, 1.0, None) if found is None else (found.low, found.high, found.p)
        terms.append(Term(name, mean(a - b), low, high, p, "outcome", concerned))
    return View("outcomes", (*outside, *terms), _OUTCOME_NOTE)


_OUTCOME_NOTE = (
    "What the row itself says of its end, before any reading of traces. A row with several marks counts for "
    "the first of: " + ", ".join(OUTCOMES) + "."
)


def _ended(side: Side) -> Ints:
    """How each row ended, as a place in the names above."""
    found = np.full(side.judged.task.size, len(OUTCOMES))
    for place in reversed(range(len(OUTCOMES))):
        if OUTCOMES[place] in side.flags:
            found[side.flags[OUTCOMES[place]]] = place
    return found

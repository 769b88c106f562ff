"""Compare outcomes, effort, behaviours and errors of two runs on their common tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from blade import stats
from blade.compare.exchange import upright
from blade.compare.task_pairs import Paired
from blade.model import Shift, Side

if TYPE_CHECKING:
    from blade.model import Floats, Ints

    _ByName = tuple[Mapping[str, Ints], Mapping[str, Ints]]  # name -> rows, of each run

LISTED = 30  # behaviours, and as many signatures
TESTED = 60  # the most frequent of both runs together, which does not look at where they are
FEWEST = 6  # tasks that differ: with five, signs alone cannot give a p of .05
ALPHA = 0.05
TURNED = {"appeared": "disappeared", "disappeared": "appeared", "more": "less", "less": "more"}


class _Measured(NamedTuple):
    """One thing in both runs, by task."""

    kind: str
    name: str
    before: Floats
    after: Floats
    step: float  # what one rollout more or less adds to a task
    unit: float = 1.0  # the size of a large difference: rates go from 0 to 1


class _Places(NamedTuple):
    """Where the rows of a run are among the common tasks."""

    of_row: Ints  # one past the last: its task is not common
    n: Ints  # rows of each common task

    def rate(self, rows: Ints) -> Floats:
        """The share of each task's rows that `rows` are."""
        rates: Floats = np.bincount(self.of_row[rows], minlength=self.n.size + 1)[:-1] / self.n
        return rates

    def mean(self, values: Floats) -> Floats:
        """The mean of each task's known values; nan where it has none."""
        known = np.isfinite(values)
        if known.all():
            means: Floats = np.bincount(self.of_row, values, self.n.size + 1)[:-1] / self.n
            return means
        place = self.of_row[known]
        n = np.bincount(place, minlength=self.n.size + 1)
        with np.errstate(invalid="ignore"):
            means = (np.bincount(place, values[known], self.n.size + 1) / n)[:-1]
        return means


def shifts(pair: Paired) -> tuple[tuple[Shift, ...], int]:
    """What changed, surest first within each kind; and how many behaviours and signatures are left out.

    Everything is a rate or a mean of each task, so that a task counts once however often it is repeated. p is
    adjusted within a kind. Traces were read of both runs or of neither: what one does not show, it has not.
    Of behaviours and signatures only the frequent are tested; those alike in every task are not told.
    """
    first, is_turned = upright(pair)
    ranked, n_left = _shifts(first)
    return tuple(_turned(shift) for shift in ranked) if is_turned else tuple(ranked), n_left


def _shifts(pair: Paired) -> tuple[list[Shift], int]:
    a, b = _both_places(pair)
    ranked = _tested(_outcomes(pair, a, b)) + _tested(_measured_efforts(pair, a, b))
    n_left = 0
    for kind, by_name in (
        ("behaviour", (pair.a.behaviours, pair.b.behaviours)),
        ("signature", (pair.a.signatures, pair.b.signatures)),
    ):
        n_rows = _frequency(by_name, (a, b))
        names = sorted(n_rows, key=lambda name: (-n_rows[name], name))
        of_kind = _tested(_shown(kind, names[:TESTED], by_name, (a, b), pair.step))
        ranked += of_kind[:LISTED]
        n_left += len(of_kind[LISTED:]) + len(names[TESTED:])
    return ranked, n_left


def _turned(shift: Shift) -> Shift:
    return msgspec.structs.replace(
        shift,
        baseline=shift.candidate,
        candidate=shift.baseline,
        change=0.0 - shift.change,
        low=None if shift.high is None else 0.0 - shift.high,
        high=None if shift.low is None else 0.0 - shift.low,
        status=TURNED.get(shift.status, shift.status),
    )


def _places(side: Side, codes: Ints, n: Ints) -> _Places:
    place = np.full(len(side.judged.task_keys), codes.size)
    place[codes] = np.arange(codes.size)
    return _Places(place[side.judged.task], n)


def _both_places(pair: Paired) -> tuple[_Places, _Places]:
    return _places(pair.a, pair.code_a, pair.n_a), _places(pair.b, pair.code_b, pair.n_b)


# ---- What is measured -----------------------------------------------------------------------------


def _outcomes(pair: Paired, a: _Places, b: _Places) -> Iterator[_Measured]:
    """Errors, time-outs and the like, as far as both runs tell of them."""
    for name in sorted(pair.a.flags.keys() & pair.b.flags.keys()):
        before = a.rate(np.flatnonzero(pair.a.flags[name]))
        after = b.rate(np.flatnonzero(pair.b.flags[name]))
        if before.any() or after.any():
            yield _Measured("outcome", name, before, after, pair.step)


def _measured_efforts(pair: Paired, a: _Places, b: _Places) -> Iterator[_Measured]:
    for name, before, after in _efforts(pair, a, b):
        largest = float(np.abs(after - before).max())
        unit = largest or float((before + after).mean()) / 2
        yield _Measured("effort", name, before, after, 0.0, unit)


def efforts(pair: Paired) -> Iterator[tuple[str, Floats, Floats]]:
    """Tokens, turns and the like: the mean of a rollout in each run, of tasks for which both report it."""
    yield from _efforts(pair, *_both_places(pair))


def _efforts(pair: Paired, a: _Places, b: _Places) -> Iterator[tuple[str, Floats, Floats]]:
    for name in sorted(pair.a.effort.keys() & pair.b.effort.keys()):
        before, after = a.mean(pair.a.effort[name]), b.mean(pair.b.effort[name])
        both = np.isfinite(before) & np.isfinite(after)
        # A column of zeros reports nothing: the format has no such thing.
        if before[both].any() or after[both].any():
            yield name, before[both], after[both]


def _frequency(by_name: _ByName, places: tuple[_Places, _Places]) -> dict[str, int]:
    """Rows of the common tasks that show each thing in either run; what none shows is not in it."""
    n_rows: dict[str, int] = {}
    for of_run, place in zip(by_name, places, strict=True):
        for name, rows in of_run.items():
            n_rows[name] = n_rows.get(name, 0) + int(np.count_nonzero(place.of_row[rows] < place.n.size))
    return {name: n for name, n in n_rows.items() if n}


def _shown(
    kind: str, names: Iterable[str], by_name: _ByName, places: tuple[_Places, _Places], step: float
) -> Iterator[_Measured]:
    nowhere = np.zeros(0, np.int64)
    for name in names:
        before, after = (
            place.rate(rows.get(name, nowhere)) for rows, place in zip(by_name, places, strict=True)
        )
        if (before != after).any():
            yield _Measured(kind, name, before, after, step)


# ---- What is said of it ---------------------------------------------------------------------------


def _tested(measured: Iterable[_Measured]) -> list[Shift]:
    """All of one kind, surest first."""
    pairs = [_compared(entry) for entry in measured]
    adjusted = stats.benjamini_hochberg([shift.p if n >= FEWEST else None for shift, n in pairs])
    ranked = [_judged(shift, p) for (shift, _), p in zip(pairs, adjusted, strict=True)]
    return sorted(ranked, key=lambda entry: (_last(entry.p_adjusted), -abs(entry.change), entry.name))


def _compared(measure: _Measured) -> tuple[Shift, int]:
    """A shift that is not judged yet, and how many tasks differ in it."""
    d = measure.after - measure.before
    change = stats.mean_change(d / measure.unit, measure.step)
    before, after = float(measure.before.mean()), float(measure.after.mean())
    shift = Shift(
        kind=measure.kind,
        name=measure.name,
        baseline=before,
        candidate=after,
        change=after - before if change is None else change.estimate * measure.unit,
        low=None if change is None else change.low * measure.unit,
        high=None if change is None else change.high * measure.unit,
        p=None if change is None else change.p,
        p_adjusted=None,
        n=d.size,
        status="unclear",
    )
    return shift, int(np.count_nonzero(d))


def _judged(shift: Shift, p_adjusted: float | None) -> Shift:
    status = "unclear"
    if p_adjusted is not None and p_adjusted <= ALPHA and shift.change:
        status = "more" if shift.change > 0 else "less"
        if shift.kind != "effort" and shift.baseline == 0:
            status = "appeared"
        elif shift.kind != "effort" and shift.candidate == 0:
            status = "disappeared"
    return msgspec.structs.replace(shift, p_adjusted=p_adjusted, status=status)


def _last(p: float | None) -> float:
    return math.inf if p is None else p

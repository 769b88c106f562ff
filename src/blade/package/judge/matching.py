"""Match claims with anchors one to one: as many anchors as possible, each with a claim of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from blade.package.judge.predicates import Predicate
from blade.package.judge.units import Unit

Meets = Callable[[Unit, Predicate], Iterable[Hashable]]


def matched(
    units: Sequence[Unit], predicates: Sequence[Predicate], meets: Meets, order: Sequence[int] | None = None
) -> dict[int, Unit]:
    """Which predicates are met, by their place, and the unit that meets each.

    A part of a unit (this cause of this task, this quotation) meets one predicate and no more. Those that
    come first in `order` keep their match, so heavy anchors go first.
    """
    edges = [_edges(units, one, meets) for one in predicates]
    taken: dict[Hashable, int] = {}
    for at in order if order is not None else range(len(predicates)):
        _augment(at, edges, taken, set())
    return {at: edges[at][part] for part, at in taken.items()}


def _edges(units: Sequence[Unit], predicate: Predicate, meets: Meets) -> dict[Hashable, Unit]:
    found: dict[Hashable, Unit] = {}
    for unit in units:
        for part in meets(unit, predicate):
            found.setdefault((unit.line, unit.text, part), unit)
    return found


def _augment(
    at: int, edges: Sequence[dict[Hashable, Unit]], taken: dict[Hashable, int], seen: set[Hashable]
) -> bool:
    """Give `at` a part, moving others to other parts where that makes room."""
    for part in edges[at]:
        if part in seen:
            continue
        seen.add(part)
        if part not in taken or _augment(taken[part], edges, taken, seen):
            taken[part] = at
            return True
    return False

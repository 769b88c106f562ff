"""Climb the ladder: each question in order, every lost point to the first that proves itself, the rest unexplained."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from blade.diagnose.population import Group, Mask, Population, Trust
from blade.diagnose.reference import Reference, reference
from blade.diagnose.rungs import (
    behaviour,
    cut,
    delivered,
    environment,
    identity,
    kinds,
    knowledge,
    ran,
    verdicts,
    verifier,
)

MAX_GROUPS = 8


@dataclass
class Diagnosis:
    """What the ladder concluded of one run."""

    people: Population
    trust: list[Trust]
    groups: list[Group]
    slices: list[kinds.Slice]
    reference: Reference | None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def unexplained(self) -> Mask:
        left = self.people.failed.copy()
        for group in self.groups:
            left &= ~group.rows
        return left


def climb(people: Population) -> Diagnosis:
    """Every question in order; later ones see only what is left."""
    clock: dict[str, float] = {}

    def timed(name: str, work):  # type: ignore[no-untyped-def]
        start = time.perf_counter()
        result = work()
        clock[name] = clock.get(name, 0.0) + time.perf_counter() - start
        return result

    left = people.failed.copy()
    trust: list[Trust] = []
    groups: list[Group] = []
    found, content = timed("identity", lambda: identity.ask(people))
    trust += found.trust
    if content is not None:
        people.task = content
        for name in ("size", "has_repeats", "is_mixed", "task_level"):
            people.__dict__.pop(name, None)
    known = timed("answers", lambda: reference(people))
    rungs = (
        ("ran", lambda: ran.ask(people, left)),
        ("cut", lambda: cut.ask(people, left)),
        ("environment", lambda: environment.ask(people, left)),
        ("verifier", lambda: verifier.ask(people, left, known)),
        ("delivered", lambda: delivered.ask(people, left)),
        ("verdicts", lambda: verdicts.ask(people, left)),
        ("behaviour", lambda: behaviour.ask(people, left)),
    )
    for name, ask in rungs:
        if not left.any():
            break
        found = timed(name, ask)
        trust += found.trust
        for group in found.groups:
            groups.append(group)
            left = left & ~group.rows
    pieces = timed("kinds", lambda: kinds.slices(people, known))
    for found in (kinds.ask(people, left, known, pieces),):
        for group in found.groups:
            groups.append(group)
            left = left & ~group.rows
    if left.any():
        for group in timed("knowledge", lambda: knowledge.ask(people, left, known)).groups:
            groups.append(group)
            left = left & ~group.rows
    groups = [group for group in groups if group.rows.any()]
    groups.sort(key=lambda group: -_weight(people, group))
    return Diagnosis(people, trust, groups[:MAX_GROUPS], pieces, known, clock)


def _weight(people: Population, group: Group) -> float:
    """Points, by which groups are told in order; one that does not know its cause counts half."""
    points = float(people.lost[group.rows].sum())
    return points / 2 if group.label == "undetermined" else points

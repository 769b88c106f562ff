"""Climb the ladder: each question in order, every lost point to the first that proves itself, the rest unexplained."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from blade.diagnose.expected import adopt_golds
from blade.diagnose.population import Findings, Group, Mask, Population, Trust, adopt_flags
from blade.diagnose.reference import Reference, reference
from blade.diagnose.rungs import (
    behaviour,
    cut,
    declared,
    delivered,
    environment,
    identity,
    kinds,
    knowledge,
    ran,
    verdicts,
    verifier,
)
from blade.model import Code

T = TypeVar("T")
MAX_GROUPS = 12  # more than a page shows one by one; what is beyond counts as unexplained


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


def nothing_to_explain(people: Population) -> Diagnosis:
    """A run without rewards: there are traces to read, and nothing that was lost."""
    people.is_unscored = True
    people.passed[:] = True  # so that nothing counts as failing
    people.failed[:] = False
    people.lost[:] = 0
    text = "No row has a reward, so nothing says what passed: this is a report on the traces alone."
    return Diagnosis(people, [Trust("warning", None, text, ~people.none)], [], [], None)


def climb(people: Population, codes: Sequence[Code] = ()) -> Diagnosis:
    """Every question in order; later ones see only what is left. `codes` are meanings that `blade.toml` declares."""
    clock: dict[str, float] = {}
    left = people.failed.copy()
    trust: list[Trust] = []
    groups: list[Group] = []

    def timed(name: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = work()
        clock[name] = clock.get(name, 0.0) + time.perf_counter() - start
        return result

    timed("errors", lambda: adopt_flags(people))
    found, content = timed("identity", lambda: identity.ask(people))
    trust += found.trust
    groups += found.groups
    for group in found.groups:
        left = left & ~group.rows
    if content is not None:
        people.regroup(content)
    timed("verdicts", lambda: adopt_golds(people))
    known = timed("answers", lambda: reference(people))
    pieces = timed("kinds", lambda: kinds.slices(people, known))
    rungs: tuple[tuple[str, Callable[[Mask], Findings]], ...] = (
        ("declared", lambda rows: declared.ask(people, rows, codes)),
        ("ran", lambda rows: ran.ask(people, rows)),
        ("cut", lambda rows: cut.ask_recorded(people, rows)),
        ("ran", lambda rows: ran.ask_empty(people, rows)),
        ("errors", lambda rows: environment.ask_errors(people, rows)),
        ("cut", lambda rows: cut.ask(people, rows)),
        ("environment", lambda rows: environment.ask(people, rows)),
        ("verifier", lambda rows: verifier.ask(people, rows, known)),
        ("delivered", lambda rows: delivered.ask(people, rows)),
        ("verdicts", lambda rows: verdicts.ask(people, rows)),
        ("behaviour", lambda rows: behaviour.ask(people, rows, known)),
        ("kinds", lambda rows: kinds.ask(people, rows, known, pieces)),
        ("knowledge", lambda rows: knowledge.ask(people, rows, known)),
        ("verdicts", lambda rows: verdicts.ask_messages(people, rows)),
    )
    for name, ask in rungs:
        if not left.any():
            break
        found = timed(name, partial(ask, left))
        trust += found.trust
        groups += [group for group in found.groups if group.rows.any()]
        for group in found.groups:
            left = left & ~group.rows
    groups.sort(key=lambda group: -_weight(people, group))
    return Diagnosis(people, trust, groups[:MAX_GROUPS], pieces, known, clock)


def _weight(people: Population, group: Group) -> float:
    """Points, by which groups are told in order; where rewards leave 0 to 1 there are none to lose, and rows count."""
    return float(people.lost[group.rows].sum()) if people.lost.any() else float(group.rows.sum())

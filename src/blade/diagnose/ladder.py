"""Climb the ladder of rungs in order: what each asks, what refutes it, which label (TI, BI, IR, UK) it gives a failing row."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import numpy as np

from blade.diagnose.expected_calls import adopt_golds
from blade.diagnose.groups import Findings, Group, Trust, cards, explained, group, in_field, warning
from blade.diagnose.population import Mask, Population, adopt_flags
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
        return self.people.failed & ~explained(self.people, self.groups)


def nothing_to_explain(people: Population) -> Diagnosis:
    """A run without rewards: there are traces to read, and nothing that was lost."""
    people.is_unscored = True
    people.passed[:] = True  # so that nothing counts as failing
    people.failed[:] = False
    people.lost[:] = 0
    return Diagnosis(people, [warning("tripwires.unscored", people, ~people.none)], [], [], None)


def climb(people: Population, codes: Sequence[Code] = ()) -> Diagnosis:
    """Every question in order; later ones see only what is left. `codes` are meanings that `blade.toml` declares."""
    clock: defaultdict[str, float] = defaultdict(float)

    def timed(name: str, work: Callable[..., T], *parts: Any) -> T:
        start = time.perf_counter()
        result = work(people, *parts)
        clock[name] += time.perf_counter() - start
        return result

    timed("errors", adopt_flags)
    results, content = timed("identity", identity.ask)
    trust, groups = results.trust, results.groups
    left = results.rest(people.failed)
    if content is not None:
        people.regroup(content)
    timed("verdicts", adopt_golds)
    known = timed("answers", reference)
    pieces = timed("kinds", kinds.slices, known)
    rungs: tuple[tuple[str, Callable[..., Findings], *tuple[Any, ...]], ...] = (
        ("declared", ask_declared, codes), ("ran", ran.ask), ("cut", cut.ask_recorded), ("ran", ran.ask_empty),
        ("errors", environment.ask_errors), ("cut", cut.ask), ("environment", environment.ask), ("verifier", verifier.ask, known),
        ("delivered", delivered.ask), ("verdicts", verdicts.ask), ("behaviour", behaviour.ask, known), ("kinds", kinds.ask, known, pieces),
        ("knowledge", knowledge.ask, known), ("verdicts", verdicts.ask_messages),
    )  # fmt: skip
    for name, ask, *parts in rungs:
        if not left.any():
            break
        results = timed(name, ask, left, *parts)
        trust += results.trust
        groups += [proved for proved in results.groups if proved.rows.any()]
        left = results.rest(left)
    # by points; where rewards leave 0 to 1 there are none to lose, and rows count
    weight = people.lost if people.lost.any() else np.ones(people.n)
    groups.sort(key=lambda proved: -float(weight[proved.rows].sum()))
    return Diagnosis(people, trust, groups[:MAX_GROUPS], pieces, known, clock)


class Rule(msgspec.Struct, frozen=True):
    """One question of the ladder, in words for a reader."""

    name: str  # as the groups and the accuracy card spell it
    question: str
    proof: str
    refuted: str
    label: str


RULES = tuple(msgspec.convert({"name": name, **entry}, Rule) for name, entry in cards().items() if "question" in entry)


def ask_declared(people: Population, left: Mask, codes: Sequence[Code]) -> Findings:
    groups: list[Group] = []
    for code in codes:
        rows = people.where(lambda row: row.fields.get(code.field) == code.equals) & left & ~explained(people, groups)  # noqa: B023
        if code.cause != "passed" and rows.any():
            facts: dict[str, Any] = {"path": code.field, "value": str(code.equals), "mode": code.mode, "label": code.cause}
            groups.append(group("declared.code", people, rows, place=in_field(code.field), **facts))
    return Findings(groups)

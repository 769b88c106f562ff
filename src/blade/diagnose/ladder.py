"""Climb the ladder of rungs in order: what each asks, what refutes it, which label (TI, BI, IR, UK) it gives a failing row."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import msgspec
import numpy as np

from blade.diagnose.expected_calls import adopt_golds
from blade.diagnose.groups import Findings, Group, Trust, cards, group, in_field, unclaimed, warning
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
        return unclaimed(self.people.failed, self.groups)


def nothing_to_explain(people: Population) -> Diagnosis:
    """A run without rewards: there are traces to read, and nothing that was lost."""
    people.is_unscored = True
    people.passed[:] = True  # so that nothing counts as failing
    people.failed[:] = False
    people.lost[:] = 0
    return Diagnosis(people, [warning("tripwires.unscored", people, ~people.none)], [], [], None)


def climb(people: Population, codes: Sequence[Code] = ()) -> Diagnosis:
    """Every question in order; later ones see only what is left. `codes` are meanings that `blade.toml` declares."""
    clock: dict[str, float] = {}

    def timed(name: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = work()
        clock[name] = clock.get(name, 0.0) + time.perf_counter() - start
        return result

    timed("errors", lambda: adopt_flags(people))
    results, content = timed("identity", lambda: identity.ask(people))
    trust, groups = results.trust, results.groups
    left = unclaimed(people.failed, groups)
    if content is not None:
        people.regroup(content)
    timed("verdicts", lambda: adopt_golds(people))
    known = timed("answers", lambda: reference(people))
    pieces = timed("kinds", lambda: kinds.slices(people, known))
    rungs: tuple[tuple[str, Callable[[Mask], Findings]], ...] = (
        ("declared", lambda rows: ask_declared(people, rows, codes)),
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
        results = timed(name, partial(ask, left))
        trust += results.trust
        groups += [proved for proved in results.groups if proved.rows.any()]
        left = unclaimed(left, results.groups)
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


RULES = tuple(
    Rule(name, *(entry[part] for part in Rule.__struct_fields__[1:])) for name, entry in cards().items() if "question" in entry
)


def ask_declared(people: Population, left: Mask, codes: Sequence[Code]) -> Findings:
    findings = Findings()
    for code in codes:
        rows = people.where(lambda row: row.fields.get(code.field) == code.equals) & left  # noqa: B023
        if code.cause != "passed" and rows.any():
            proved = group(
                "declared.code", people, rows, path=code.field, value=str(code.equals), mode=code.mode,
                place=in_field(code.field),
            )  # fmt: skip
            proved.label = code.cause
            findings.groups.append(proved)
            left = left & ~rows
    return findings

"""Rank what goes with failing, mechanisms and behaviours in one list, and put it into words."""

from __future__ import annotations

import math
from typing import NamedTuple

from blade import hostile
from blade.model import Behaviour, Cause, Finding, Mechanism
from blade.report import causes, numbers, patterns, places
from blade.report.facts import Facts
from blade.report.sections import Block, Bullets, Code, Heading, Line, Span, Strong, para

MAX_LISTED = 8
MAX_SUMMARY = 3
HOW = "ranked by failures covered times the difference in pass rate, what nearly restates the reward last"
EXAMPLE = 240  # characters of the example of a behaviour


class Reason(NamedTuple):
    """A mechanism or a behaviour that goes with failing beyond chance."""

    found: Mechanism | Behaviour
    covers: int  # failing rollouts that show it
    apart: float  # pass rate of the rollouts without it less that of those with it

    @property
    def name(self) -> str:
        return self.found.id if isinstance(self.found, Mechanism) else self.found.detector


def reasons(facts: Facts) -> list[Reason]:
    """What is proved to go with failing, that which explains most first.

    Faults of infrastructure are no reasons of the model's failures: they stand among the causes of the run.
    """
    found = [_of_mechanism(one) for one in facts.mechanisms if one.standing == "mechanism"]
    outside = _of_infrastructure(facts)
    found += [
        Reason(one, one.in_fail, apart(one))
        for one in facts.behaviours
        if one.standing == "cause" and one.detector not in outside
    ]
    return sorted(found, key=lambda one: (_is_near(one), -one.covers * one.apart, -one.covers, one.name))


def _is_near(one: Reason) -> bool:
    """Whether it comes close to restating the reward: then it explains less than it covers."""
    return isinstance(one.found, Mechanism) and one.found.near_reward


def leads(facts: Facts) -> list[Reason]:
    """What may go with failing, in the order of its stage."""
    return [_of_mechanism(one) for one in facts.mechanisms if one.standing != "mechanism"]


def _of_mechanism(one: Mechanism) -> Reason:
    return Reason(one, round(one.n_with * (1 - one.pass_with)), one.pass_without - one.pass_with)


def apart(one: Behaviour) -> float:
    """The pass rate of the rollouts a behaviour does not fire on, less that of those it fires on."""
    n_with = one.in_fail + one.in_pass
    n_without = one.of_fail + one.of_pass - n_with
    if not n_with or not n_without:
        return 0.0
    return (one.of_pass - one.in_pass) / n_without - one.in_pass / n_with


def _of_infrastructure(facts: Facts) -> set[str]:
    """The detectors most of whose findings blame infrastructure."""
    blamed: dict[str, int] = {}
    for finding in facts.findings:
        outside = 1 if finding.cause is Cause.INFRASTRUCTURE else -1
        blamed[finding.detector] = blamed.get(finding.detector, 0) + outside
    return {detector for detector, balance in blamed.items() if balance > 0}


def sentence(reason: Reason, facts: Facts) -> Line:
    """What goes with failing, in words."""
    found = reason.found
    if isinstance(found, Mechanism):
        return causes.sentence(found.text, f"{facts.entry('mechanisms', found)}.text")
    return (*_occurs(found, facts), *_for_instance(found.detector, facts))


def _occurs(found: Behaviour, facts: Facts) -> Line:
    query = facts.entry("behaviours", found)
    in_fail, of_fail, in_pass, of_pass = (
        numbers.whole(getattr(found, name), f"{query}.{name}")
        for name in ("in_fail", "of_fail", "in_pass", "of_pass")
    )
    name = Code(hostile.line(found.detector, 60))
    return (
        name,
        " occurs in ",
        in_fail,
        " of ",
        of_fail,
        " failing and ",
        in_pass,
        " of ",
        of_pass,
        " passing rollouts",
    )


def _for_instance(detector: str, facts: Facts) -> Line:
    hit = _example(detector, facts)
    if hit is None:
        return (".",)
    where = Code(hostile.line(places.place(hit.task, hit.repeat), 60))
    said = causes.sentence(hit.summary, f"{facts.entry('findings', hit)}.summary", EXAMPLE)
    return ("; for instance task ", where, ": ", *said)


def at_least(found: Behaviour, facts: Facts) -> Span | None:
    """How many times the odds of failing rise at the least; None where that is not above 1."""
    if found.low is None or not math.isfinite(found.low) or found.low <= 1:
        return None
    return patterns.ratio(found.low, f"{facts.entry('behaviours', found)}.low")


def is_within(facts: Facts) -> bool:
    """Whether odds are those of repeats of the same tasks: else no task has both outcomes to compare."""
    return bool(facts.buckets.sometimes)


def _example(detector: str, facts: Facts) -> Finding | None:
    """The most severe finding of a detector, of a failing rollout if there is one."""
    failing = (
        finding
        for finding in facts.findings
        if finding.detector == detector and places.side(facts, finding.evidence[0]) == "Failing, "
    )
    return next(failing, facts.first_finding(detector))


def rests_on(reason: Reason, facts: Facts, with_odds: bool = True) -> Line:
    """`0% pass with it, 54.2% without, adjusted p = 0.004`; of a mechanism the difference."""
    found = reason.found
    if isinstance(found, Mechanism):
        return (*patterns.difference(facts, found), *_adjusted(found, "mechanisms", facts))
    odds = at_least(found, facts)
    where = " on the same tasks" if is_within(facts) else ""
    times: Line = (
        (f", odds of failing{where} at least ", odds, " times as high")
        if odds is not None and with_odds
        else ()
    )
    return (*_rates(found, facts), *times, *_adjusted(found, "behaviours", facts))


def _rates(found: Behaviour, facts: Facts) -> Line:
    """The pass rates with the behaviour and without it."""
    query = facts.entry("behaviours", found)
    in_fail, of_fail, in_pass, of_pass = (
        f"{query}.{name}" for name in ("in_fail", "of_fail", "in_pass", "of_pass")
    )
    n_with = found.in_fail + found.in_pass
    n_without = found.of_fail + found.of_pass - n_with
    if not n_with or not n_without:
        return ("no rollout to compare with",)
    rate_with = numbers.percent(found.in_pass / n_with, f"{in_pass} / ({in_fail} + {in_pass})")
    rest = f"({of_fail} + {of_pass} - {in_fail} - {in_pass})"
    rate_without = numbers.percent(
        (found.of_pass - found.in_pass) / n_without, f"{of_pass} / {rest} - {in_pass} / {rest}"
    )
    return (rate_with, " pass with it, ", rate_without, " without")


def _adjusted(found: Mechanism | Behaviour, name: str, facts: Facts) -> Line:
    return (", adjusted ", *numbers.p_value(found.p_adjusted, f"{facts.entry(name, found)}.p_adjusted"))


def _line(reason: Reason, facts: Facts) -> Line:
    """The sentence of a reason, then what it rests on."""
    found = reason.found
    if not isinstance(found, Mechanism):
        return (
            *_occurs(found, facts), ": ", *rests_on(reason, facts), *_for_instance(found.detector, facts)
        )  # fmt: skip
    query = facts.entry("mechanisms", found)
    covered = numbers.count(reason.covers, "failing rollout", f"{query}.n_with * (1 - {query}.pass_with)")
    lead = Code(hostile.line(found.id, 40).upper())
    return (lead, ": ", *sentence(reason, facts), " Covers ", *covered, ": ", *_apart(found, facts), ".")


def _apart(found: Mechanism, facts: Facts) -> Line:
    """The difference in pass rate with all that it rests on."""
    query = facts.entry("mechanisms", found)
    where = "within" if found.within_task else "across"
    n_with, n_without = (
        numbers.whole(getattr(found, name), f"{query}.{name}") for name in ("n_with", "n_without")
    )
    rests = (", n = ", n_with, " with and ", n_without, " without", *_adjusted(found, "mechanisms", facts))
    return (*patterns.difference(facts, found), *rests, f", {where} tasks")


def chapter(facts: Facts) -> list[Block]:
    """The ranked list at the head of the failure modes; nothing where nothing is proved."""
    found = reasons(facts)
    if not found:
        return []
    return [
        Heading(("Why",)),
        para(
            f"What goes with failing beyond chance, {HOW}. Conditions found in the rows themselves have an "
            "id; behaviours are found by rules. Mechanisms and Behaviours below say what each rests on. They "
            "may overlap."
        ),
        Bullets(tuple(_line(one, facts) for one in found[:MAX_LISTED])),
        *places.left_out(len(found), min(len(found), MAX_LISTED), "reason"),
    ]


def summary(facts: Facts) -> list[Block]:
    """The first reasons; where none is proved, the strongest lead, called one."""
    first = [_line(one, facts) for one in reasons(facts)[:MAX_SUMMARY]]
    if len(first) > 1:
        return [para(Strong("Why: "), f"what goes with failing beyond chance, {HOW}."), Bullets(tuple(first))]
    if first:
        return [para(Strong("Why: "), *first[0])]
    return [
        para(
            Strong("No mechanism or behaviour is proved. "),
            "The strongest lead: ",
            *sentence(lead, facts),
            " That is ",
            *_apart(lead.found, facts),
            ".",
        )
        for lead in leads(facts)[:1]
        if isinstance(lead.found, Mechanism)
    ]


def is_weaker(facts: Facts) -> bool:
    """Whether causes are told of a run that has one repeat of each task."""
    told = causes.is_explained(facts.losses) or facts.mechanisms or reasons(facts)
    return facts.run.coverage.repeats <= 1 and bool(told)

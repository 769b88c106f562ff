"""Rank what goes with failing, mechanisms and behaviours in one list, and put it into words."""

from __future__ import annotations

import math
from typing import NamedTuple

from blade import hostile
from blade.model import Behaviour, Cause, Finding, Mechanism
from blade.report import causes, patterns, places, words
from blade.report.facts import Facts
from blade.report.sections import Block, Bullets, Heading, Line, Strong, para

MAX_LISTED = 8
MAX_SUMMARY = 3
HOW = "by failing rollouts covered times the difference in pass rate; what nearly restates the reward last"
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


def sentence(one: Reason, facts: Facts) -> str:
    """What goes with failing, in words; names stand between backticks."""
    found = one.found
    if isinstance(found, Mechanism):
        return hostile.line(found.text, 600)
    return _fires(found) + _for_instance(found.detector, facts)


def _fires(found: Behaviour) -> str:
    name = hostile.line(found.detector, 60)
    said = f"`{name}` fires on {found.in_fail:,} of {found.of_fail:,} failing and "
    return said + f"{found.in_pass:,} of {found.of_pass:,} passing rollouts"


def _for_instance(detector: str, facts: Facts) -> str:
    hit = _example(detector, facts)
    if hit is None:
        return ""
    where = hostile.line(places.place(hit.task, hit.repeat), 60)
    return f"; for instance task {where}: {hostile.line(hit.summary, EXAMPLE)}"


def at_least(found: Behaviour) -> str:
    """`≥ 2.3`: how many times the odds of failing rise at the least; empty where that is not above 1."""
    if found.low is None or not math.isfinite(found.low):
        return ""
    low = math.floor(found.low * 10) / 10
    return "" if low <= 1 else f"≥ {low:,.1f}" if low < 10 else f"≥ {math.floor(low):,}"


def is_within(facts: Facts) -> bool:
    """Whether odds are those of repeats of the same tasks: else no task has both outcomes to compare."""
    return bool(facts.buckets.sometimes)


def _example(detector: str, facts: Facts) -> Finding | None:
    """The most severe finding of a detector, of a failing rollout if there is one."""
    failing = (
        one
        for one in facts.findings
        if one.detector == detector and places.side(facts, one.evidence[0]) == "Failing, "
    )
    return next(failing, facts.first_finding(detector))


def numbers(one: Reason, facts: Facts) -> str:
    """`difference of 61.4 points [+39.0, +78.0 points], adjusted p = 0.004`; of a behaviour with its odds."""
    found = one.found
    adjusted = f", adjusted {words.p_value(found.p_adjusted)}"
    if isinstance(found, Mechanism):
        return patterns.difference(found).removeprefix("a ") + adjusted
    odds = f", odds {at_least(found)}{' within tasks' * is_within(facts)}" if at_least(found) else ""
    return f"difference {causes.points(one.apart)}{odds}{adjusted}"


def _line(one: Reason, facts: Facts) -> Line:
    """The sentence of a reason, then what it rests on."""
    found = one.found
    covers = f" Covers {words.count(one.covers, 'failing rollout')}: {_apart(one)}."
    if isinstance(found, Mechanism):
        lead = Strong(f"{hostile.line(found.id, 40).upper()}. ")
        return (lead, *causes.sentence(sentence(one, facts)), covers)
    times = at_least(found)
    where = "within the same tasks" if is_within(facts) else "over all rollouts"
    odds = f" ({where} the odds of failing are {times} times)" if times else ""
    said = _fires(found) + odds + _for_instance(found.detector, facts)
    return (*causes.sentence(said, 900), covers)


def _apart(one: Reason) -> str:
    """The difference in pass rate with all that it rests on."""
    found = one.found
    adjusted = f"adjusted {words.p_value(found.p_adjusted)}"
    if not isinstance(found, Mechanism):
        return f"a difference in pass rate of {causes.points(one.apart)}, {adjusted}"
    where = "within" if found.within_task else "across"
    n = f"n = {found.n_with:,} with and {found.n_without:,} without"
    return f"{patterns.difference(found)}, {n}, {adjusted}, {where} tasks"


def chapter(facts: Facts) -> list[Block]:
    """The ranked list at the head of the failure modes; nothing where nothing is proved."""
    found = reasons(facts)
    if not found:
        return []
    return [
        Heading(("Why",)),
        para(
            f"What goes with failing beyond chance, {HOW}: conditions found in the rows themselves (with an "
            "id) and behaviours that rules find. What each rests on stands under Mechanisms and Behaviours. "
            "They may overlap."
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
            *causes.sentence(sentence(lead, facts)),
            f" That is {_apart(lead)}.",
        )
        for lead in leads(facts)[:1]
    ]


def is_weaker(facts: Facts) -> bool:
    """Whether causes are told of a run that has one repeat of each task."""
    told = causes.is_explained(facts.losses) or facts.mechanisms or reasons(facts)
    return facts.run.coverage.repeats <= 1 and bool(told)

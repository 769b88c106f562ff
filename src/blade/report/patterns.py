"""Lay out what recurs over rollouts: mechanisms, leads, behaviours, error signatures, verifier codes."""

from __future__ import annotations

import math

from blade import hostile
from blade.model import Behaviour, Meaning, Mechanism, Signature
from blade.report import causes, numbers, places, queries, words
from blade.report.facts import Facts
from blade.report.sections import (
    Badge,
    Block,
    Bullets,
    Code,
    Heading,
    Line,
    Span,
    Strong,
    Table,
    cells,
    para,
)

MAX_MECHANISMS = 5  # told in full; the others stand in a table
MAX_ROWS = 20
MAX_QUOTES = 4
MAX_SIDES = 2  # quotations of one mechanism
STANDINGS = {"cause": ("cause", "bad"), "unproven": ("unproven", "quiet"), "style": ("style note", "quiet")}
SPREADS = {
    "systemic": "systemic: in three tasks or more, and in nearly all calls of a tool or in several runs",
    "flaky": "flaky: the same action gives it in some repeats and not in others",
    "idiosyncratic": "idiosyncratic: neither of these",
}


def mechanisms(facts: Facts) -> list[Block]:
    """What goes with failing, proved against chance, then what may."""
    proved = [found for found in facts.mechanisms if found.standing == "mechanism"]
    leads = [found for found in facts.mechanisms if found.standing != "mechanism"]
    blocks: list[Block] = []
    if proved:
        blocks += [
            Heading(("Mechanisms",)),
            para(
                "Conditions found in the rows themselves that go with failing, and still do after the "
                "correction for all conditions that were tried. They cover the failures in this order. ",
                "An association is not yet a cause: read the quotations.",
            ),
        ]
        for found in proved[:MAX_MECHANISMS]:
            blocks += mechanism(facts, found)
        blocks += _table_of(facts, proved[MAX_MECHANISMS:])
    if leads:
        blocks += [
            Heading(("Leads, not mechanisms",)),
            para(
                "These go with failing in this run, but chance among as many conditions as were tried would "
                "produce the like (adjusted p above 0.05, or too few rollouts to say). They are worth "
                "reading, not worth acting on."
            ),
            *_table_of(facts, leads),
        ]
    return blocks


def mechanism(facts: Facts, found: Mechanism) -> list[Block]:
    """One mechanism: the sentence, the numbers behind it, the rollouts, quotations."""
    query = facts.entry("mechanisms", found)
    concerns: Line = (
        (" Concerns ", Code(hostile.line(found.actionable, 120)), ".") if found.actionable else ()
    )
    share = numbers.percent(found.share_of_failures, f"{query}.share_of_failures")
    rollouts = numbers.count(len(found.rollouts), "rollout", f"{query}.rollouts.count")
    listed = places.ids(found.rollouts, f"{query}.rollouts.count") or ("none listed",)
    control = causes.sentence(found.control, f"{query}.control", 500) if found.control else ("none.",)
    blocks: list[Block] = [
        para(Code(hostile.line(found.id, 40).upper()), ": ", *causes.sentence(found.text, f"{query}.text")),
        Bullets(
            (
                (*rates(facts, found), "; ", *tested(facts, found), "."),
                ("Control: ", *control),
                ("Covers ", share, " of the failing rollouts (", *rollouts, ").", *concerns),
                ("Failing rollouts that show it: ", *listed, "."),
            )
        ),
    ]
    return [*blocks, *places.quotations(facts, found.evidence, MAX_SIDES)]


def rates(facts: Facts, found: Mechanism) -> Line:
    """`7.2% pass with it (n = 83 rollouts), 43.4% without (n = 76): a difference of 36.2 points [..]`."""
    query = facts.entry("mechanisms", found)
    n_with = numbers.count(found.n_with, "rollout", f"{query}.n_with")
    n_without = numbers.whole(found.n_without, f"{query}.n_without")
    rate_with, rate_without = (
        numbers.percent(getattr(found, name), f"{query}.{name}") for name in ("pass_with", "pass_without")
    )
    said: Line = (
        rate_with,
        " pass with it (n = ",
        *n_with,
        "), ",
        rate_without,
        " without (n = ",
        n_without,
        "): ",
    )
    return (*said, *difference(facts, found))


def difference(facts: Facts, found: Mechanism) -> Line:
    """`a difference of 36.2 points [+22.1 points, +48.0 points]`."""
    query = facts.entry("mechanisms", found)
    apart = numbers.size(found.pass_without - found.pass_with, f"{query}.pass_without - {query}.pass_with")
    return ("a difference of ", apart, *(_interval(facts, found) or (" (no interval)",)))


def _interval(facts: Facts, found: Mechanism) -> Line:
    """` [+12.0 points, +51.3 points]`, or nothing."""
    query = facts.entry("mechanisms", found)
    return numbers.between(
        numbers.points(found.low, f"{query}.low"), numbers.points(found.high, f"{query}.high")
    )


def tested(facts: Facts, found: Mechanism) -> Line:
    query = facts.entry("mechanisms", found)
    where = "tested among repeats of the same tasks, " if found.within_task else "tested across tasks, "
    adjusted = numbers.p_value(found.p_adjusted, f"{query}.p_adjusted")
    return (where, *numbers.p_value(found.p, f"{query}.p"), ", adjusted ", *adjusted)


def _table_of(facts: Facts, found: list[Mechanism]) -> list[Block]:
    if not found:
        return []
    rows = tuple(_mechanism_row(facts, mechanism) for mechanism in found[:MAX_ROWS])
    header = ("Id", "What goes with failing", "Pass with", "Pass without", "Difference, 95%", "p, adjusted",
              "Tasks", "Failing rollouts")  # fmt: skip
    return [Table(header, rows, "llrrrrll"), *places.left_out(len(found), len(rows), "condition")]


def _mechanism_row(facts: Facts, found: Mechanism) -> tuple[Line, ...]:
    query = facts.entry("mechanisms", found)
    n_with, n_without = (
        numbers.whole(getattr(found, name), f"{query}.{name}") for name in ("n_with", "n_without")
    )
    return cells(
        Code(hostile.line(found.id, 40).upper()),
        causes.sentence(found.text, f"{query}.text", 400),
        (numbers.percent(found.pass_with, f"{query}.pass_with"), " of ", n_with),
        (numbers.percent(found.pass_without, f"{query}.pass_without"), " of ", n_without),
        _interval(facts, found) or "no interval",
        p_values(query, found.p, found.p_adjusted),
        "within" if found.within_task else "across",
        places.ids(found.rollouts, f"{query}.rollouts.count", 3) or words.NONE,
    )


def p_values(query: str, p: float | None, adjusted: float | None) -> Line:
    """`0.004, 0.07`: p as tested, then adjusted."""
    return (numbers.p_number(p, f"{query}.p"), ", ", numbers.p_number(adjusted, f"{query}.p_adjusted"))


def behaviours(facts: Facts) -> list[Block]:
    """How often each detector fires among failures and among passes; style notes apart."""
    if not facts.behaviours:
        return []
    telling = [found for found in facts.behaviours if found.standing != "style"]
    style = [found for found in facts.behaviours if found.standing == "style"]
    blocks: list[Block] = [
        Heading(("Behaviours",)),
        para(
            "Rules over single rollouts, with their base rate: how often each fires on failing and on "
            "passing rollouts; rows that infrastructure broke count only for infrastructure rules. The odds "
            "ratio compares repeats of the same task (Mantel-Haenszel), so hard tasks do not pose as "
            "behaviours; where no task has both outcomes it is over all rollouts. A rule is called a cause "
            "when the interval of its odds ratio lies above 1 or it fires on failing rollouts alone, on more "
            "than chance puts there (Fisher's test); over all rollouts its adjusted p must be 0.05 or less. ",
            Code("blade detectors NAME"),
            " prints a rule.",
        ),
    ]
    blocks += (
        _behaviours(facts, telling) if telling else [para("No behaviour stands as a cause or is left open.")]
    )
    blocks += _shown(facts, telling)
    if style:
        blocks.append(
            para(
                Strong("Style notes, not causes: "),
                "not clearly commoner among failures than among passes of the same tasks.",
            )
        )
        blocks += _behaviours(facts, style)
    return blocks


def _behaviours(facts: Facts, found: list[Behaviour]) -> list[Block]:
    rows = tuple(_behaviour(facts, behaviour) for behaviour in found[:MAX_ROWS])
    header = ("Standing", "Behaviour", "In failing", "In passing", "Tasks", "Odds ratio, 95%", "p, adjusted",
              "For instance")  # fmt: skip
    blocks: list[Block] = [
        Table(header, rows, "llrrrrrl"),
        *places.left_out(len(found), len(rows), "behaviour"),
    ]
    ratios = [behaviour.odds_ratio for behaviour in found[:MAX_ROWS]]
    if any(ratio is not None and ratio in (0, math.inf) for ratio in ratios):
        blocks.append(
            para(
                "An odds ratio of 0 or ∞: one side is empty in all tasks with both outcomes; "
                "the interval adds ½ to each count."
            )
        )
    return blocks


def _behaviour(facts: Facts, found: Behaviour) -> tuple[Line, ...]:
    query = facts.entry("behaviours", found)
    return cells(
        Badge(*STANDINGS.get(found.standing, (hostile.line(found.standing, 30), "quiet"))),
        Code(hostile.line(found.detector, 60)),
        share((found.in_fail, f"{query}.in_fail"), (found.of_fail, f"{query}.of_fail")),
        share((found.in_pass, f"{query}.in_pass"), (found.of_pass, f"{query}.of_pass")),
        numbers.whole(found.n_tasks, f"{query}.n_tasks"),
        _odds(found, query),
        p_values(query, found.p, found.p_adjusted),
        _instance(facts, found),
    )


def _instance(facts: Facts, one: Behaviour) -> Span:
    hit = facts.first_finding(one.detector)
    return Code(hostile.line(places.place(hit.task, hit.repeat), 60)) if hit else words.NONE


def share(part: tuple[int, str], of: tuple[int, str]) -> Line:
    """`12/40 (30.0%)` of two counts with their queries."""
    if not of[0]:
        return (words.NONE,)
    percent = numbers.percent(part[0] / of[0], f"{part[1]} / {of[1]}")
    return (numbers.whole(*part), "/", numbers.whole(*of), " (", percent, ")")


def _odds(found: Behaviour, query: str) -> Line:
    if found.odds_ratio is None or math.isnan(found.odds_ratio):
        return ("not estimable",)
    ends = [ratio(end, f"{query}.{name}") for name, end in (("low", found.low), ("high", found.high))]
    bounds: Line = (
        (" [", ends[0], ", ", ends[1], "]") if found.low is not None and found.high is not None else ()
    )
    return (ratio(found.odds_ratio, f"{query}.odds_ratio"), *bounds)


def ratio(value: float | None, query: str) -> Span:
    """A ratio of odds or rates; one that is infinite is no number."""
    if value is None or math.isnan(value):
        return words.NONE
    text = "∞" if math.isinf(value) else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    return numbers.num(text, value, query)


def _shown(facts: Facts, found: list[Behaviour]) -> list[Block]:
    """One quotation for each of the first behaviours, the most severe finding it made."""
    blocks: list[Block] = []
    for one in found[:MAX_QUOTES]:
        hit = facts.first_finding(one.detector)
        quoted = places.first_quoted(hit.evidence) if hit else None
        if hit and quoted:
            summary = numbers.said(
                hit.summary.rstrip("."), f"{facts.entry('findings', hit)}.summary", 240, hit.summary
            )
            blocks.append(places.quotation(quoted, Code(hostile.line(hit.detector, 60)), ", ", summary, "; "))
    return blocks


def signatures(facts: Facts) -> list[Block]:
    """Error texts that say the same thing."""
    found = facts.signatures
    if not found:
        return []
    rows = tuple(_signature(facts, signature) for signature in found[:MAX_ROWS])
    header = (
        "Id",
        "Template",
        "Class and source",
        "Failing of rollouts",
        "Tasks",
        "Spread",
        "Concentrated in",
    )
    blocks: list[Block] = [
        Heading(("Error signatures",)),
        para(
            "Messages of the verifier, the judge and the tools, with what varies masked. A message is a "
            "symptom: it may occur in rollouts that pass, so the table says how many of its rollouts fail.",
            f" Spread is {'; '.join(SPREADS.values())}.",
        ),
        Table(header, rows, "lllrrll"),
        *places.left_out(
            len(found), len(rows), "signature", f"{queries.entry('signatures', run=facts.run.name)}.count"
        ),
    ]
    for one in found[:MAX_QUOTES]:
        quoted = places.first_quoted(one.evidence)
        if quoted:
            blocks.append(places.quotation(quoted, Code(hostile.line(one.id, 40)), ": "))
    return blocks


def _signature(facts: Facts, found: Signature) -> tuple[Line, ...]:
    query = facts.entry("signatures", found)
    return cells(
        Code(hostile.line(found.id, 40)),
        Code(hostile.line(found.template, 160)),
        (Code(hostile.line(found.kind, 60)), " in ", Code(hostile.line(found.source, 60))),
        share((found.n_failed, f"{query}.n_failed"), (found.n_rollouts, f"{query}.n_rollouts")),
        numbers.whole(found.n_tasks, f"{query}.n_tasks"),
        numbers.name(hostile.line(found.spread, 40)),
        _concentrated(found, query),
    )


def _concentrated(found: Signature, query: str) -> Line:
    if found.slice is None:
        return (words.NONE,)
    times: Line = ()
    if found.slice_ratio is not None:
        times = (", ", ratio(found.slice_ratio, f"{query}.slice_ratio"), " times the rate elsewhere")
    adjusted = numbers.p_number(found.slice_p_adjusted, f"{query}.slice_p_adjusted")
    return (Code(hostile.line(found.slice, 80)), *times, " (p adjusted ", adjusted, ")")


def meanings(facts: Facts) -> list[Block]:
    """What the verifier's own fields say, and who says so."""
    found = [one for one in facts.meanings if one.cause is not None]
    if not found:
        return []
    rows = tuple(
        _meaning(facts, meaning) for meaning in sorted(found, key=lambda one: -one.n_rollouts)[:MAX_ROWS]
    )
    header = ("Verifier field", "Cause", "What it means", "Says who", "Rollouts", "of these pass", "Tasks")
    return [
        Heading(("What the verifier's fields mean",)),
        para(
            "A proposed meaning is read off the rows and waits for a person: ",
            Code("blade init"),
            " writes it into ",
            Code("blade.toml"),
            " to be confirmed or struck.",
        ),
        Table(header, rows, "llllrrr"),
        *places.left_out(len(found), len(rows), "value"),
    ]


def _meaning(facts: Facts, found: Meaning) -> tuple[Line, ...]:
    query = facts.entry("meanings", found)
    counts = (
        numbers.whole(getattr(found, name), f"{query}.{name}")
        for name in ("n_rollouts", "n_passed", "n_tasks")
    )
    return cells(
        (Code(hostile.line(found.field, 60)), " = ", Code(hostile.line(found.value, 60))),
        causes.badge(found.cause) if found.cause else words.NONE,
        numbers.name(causes.mode(facts, found.mode, 160)),
        _origin(found),
        *counts,
    )


def _origin(found: Meaning) -> Span:
    is_proposed = found.origin == "proposed"
    return Badge("proposed", "warning") if is_proposed else numbers.name(hostile.line(found.origin, 60))

"""Lay out what recurs over rollouts: mechanisms, leads, behaviours, error signatures, verifier codes."""

from __future__ import annotations

import math

from blade import hostile
from blade.model import Behaviour, Meaning, Mechanism, Signature
from blade.report import causes, places, words
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
    prose,
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
        blocks += _table_of(proved[MAX_MECHANISMS:])
    if leads:
        blocks += [
            Heading(("Leads, not mechanisms",)),
            para(
                "These go with failing in this run, but chance among as many conditions as were tried would "
                "produce the like (adjusted p above 0.05, or too few rollouts to say). They are worth "
                "reading, not worth acting on."
            ),
            *_table_of(leads),
        ]
    return blocks


def mechanism(facts: Facts, found: Mechanism) -> list[Block]:
    """One mechanism: the sentence, the numbers behind it, the rollouts, quotations."""
    concerns: Line = (
        (" Concerns ", Code(hostile.line(found.actionable, 120)), ".") if found.actionable else ()
    )
    covers = f"Covers {words.percent(found.share_of_failures)} of the failing rollouts "
    covers += f"({words.count(len(found.rollouts), 'rollout')})."
    blocks: list[Block] = [
        para(Strong(f"{hostile.line(found.id, 40).upper()}. "), *causes.sentence(found.text)),
        Bullets(
            (
                (f"{numbers(found)}; {tested(found)}.",),
                ("Control: ", *causes.sentence(found.control or "none", 500)),
                (covers, *concerns),
                ("Failing rollouts that show it: ", *(places.ids(found.rollouts) or ("none listed",)), "."),
            )
        ),
    ]
    return [*blocks, *places.quotations(facts, found.evidence, MAX_SIDES)]


def numbers(found: Mechanism) -> str:
    """`7.2% pass with it (n = 83 rollouts), 43.4% without (n = 76): a difference of 36.2 points [..]`."""
    said = f"{words.percent(found.pass_with)} pass with it (n = {words.count(found.n_with, 'rollout')}), "
    said += f"{words.percent(found.pass_without)} without (n = {found.n_without:,}): "
    return said + difference(found)


def difference(found: Mechanism) -> str:
    """`a difference of 36.2 points [+22.1, +48.0 points]`."""
    apart = causes.points(found.pass_without - found.pass_with)
    return f"a difference of {apart}{points_between(found.low, found.high)}"


def points_between(low: float | None, high: float | None) -> str:
    """` [+12.0, +51.3 points]`, or that there is no interval."""
    if low is None or high is None:
        return " (no interval)"
    return f" [{words.points(low).removesuffix(' points')}, {words.points(high)}]"


def tested(found: Mechanism) -> str:
    where = "tested among repeats of the same tasks" if found.within_task else "tested across tasks"
    return f"{where}, {words.p_value(found.p)}, adjusted {words.p_value(found.p_adjusted)}"


def _table_of(found: list[Mechanism]) -> list[Block]:
    if not found:
        return []
    rows = tuple(
        cells(
            Code(hostile.line(one.id, 40).upper()),
            causes.sentence(one.text, 400),
            f"{words.percent(one.pass_with)} of {one.n_with:,}",
            f"{words.percent(one.pass_without)} of {one.n_without:,}",
            points_between(one.low, one.high).strip(" ()"),
            f"{words.p_number(one.p)}, {words.p_number(one.p_adjusted)}",
            "within" if one.within_task else "across",
            places.ids(one.rollouts, 3) or words.NONE,
        )
        for one in found[:MAX_ROWS]
    )
    header = ("Id", "What goes with failing", "Pass with", "Pass without", "Difference, 95%", "p, adjusted",
              "Tasks", "Failing rollouts")  # fmt: skip
    return [Table(header, rows, "llrrrrll"), *places.left_out(len(found), len(rows), "condition")]


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
    rows = tuple(
        cells(
            Badge(*STANDINGS.get(one.standing, (hostile.line(one.standing, 30), "quiet"))),
            Code(hostile.line(one.detector, 60)),
            share(one.in_fail, one.of_fail),
            share(one.in_pass, one.of_pass),
            words.whole(one.n_tasks),
            odds(one.odds_ratio, one.low, one.high),
            f"{words.p_number(one.p)}, {words.p_number(one.p_adjusted)}",
            _instance(facts, one),
        )
        for one in found[:MAX_ROWS]
    )
    header = ("Standing", "Behaviour", "In failing", "In passing", "Tasks", "Odds ratio, 95%", "p, adjusted",
              "For instance")  # fmt: skip
    blocks: list[Block] = [
        Table(header, rows, "llrrrrrl"),
        *places.left_out(len(found), len(rows), "behaviour"),
    ]
    if any(one.odds_ratio is not None and one.odds_ratio in (0, math.inf) for one in found[:MAX_ROWS]):
        blocks.append(
            para(
                "An odds ratio of 0 or ∞: one side is empty in all tasks with both outcomes; "
                "the interval adds ½ to each count."
            )
        )
    return blocks


def _instance(facts: Facts, one: Behaviour) -> Span:
    hit = facts.first_finding(one.detector)
    return Code(hostile.line(places.place(hit.task, hit.repeat), 60)) if hit else words.NONE


def share(part: int, of: int) -> str:
    """`12/40 (30.0%)`."""
    return f"{part:,}/{of:,} ({words.percent(part / of)})" if of else words.NONE


def odds(ratio: float | None, low: float | None, high: float | None) -> str:
    if ratio is None or math.isnan(ratio):
        return "not estimable"
    ends = f" [{_ratio(low)}, {_ratio(high)}]" if low is not None and high is not None else ""
    return _ratio(ratio) + ends


def _ratio(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _shown(facts: Facts, found: list[Behaviour]) -> list[Block]:
    """One quotation for each of the first behaviours, the most severe finding it made."""
    blocks: list[Block] = []
    for one in found[:MAX_QUOTES]:
        hit = facts.first_finding(one.detector)
        quoted = places.first_quoted(hit.evidence) if hit else None
        if hit and quoted:
            said = (
                Code(hostile.line(hit.detector, 60)),
                ", ",
                *prose(hostile.line(hit.summary, 240).rstrip(".")),
                "; ",
            )
            blocks.append(places.quotation(quoted, *said))
    return blocks


def signatures(facts: Facts) -> list[Block]:
    """Error texts that say the same thing."""
    found = facts.signatures
    if not found:
        return []
    rows = tuple(
        cells(
            Code(hostile.line(one.id, 40)),
            Code(hostile.line(one.template, 160)),
            (Code(hostile.line(one.kind, 60)), " in ", Code(hostile.line(one.source, 60))),
            share(one.n_failed, one.n_rollouts),
            words.whole(one.n_tasks),
            hostile.line(one.spread, 40),
            _concentrated(one),
        )
        for one in found[:MAX_ROWS]
    )
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
        *places.left_out(len(found), len(rows), "signature"),
    ]
    for one in found[:MAX_QUOTES]:
        quoted = places.first_quoted(one.evidence)
        if quoted:
            blocks.append(places.quotation(quoted, Code(hostile.line(one.id, 40)), ": "))
    return blocks


def _concentrated(one: Signature) -> Line:
    if one.slice is None:
        return (words.NONE,)
    ratio = f", {_ratio(one.slice_ratio)} times the rate elsewhere" if one.slice_ratio is not None else ""
    return (
        Code(hostile.line(one.slice, 80)),
        f"{ratio} (p adjusted {words.p_number(one.slice_p_adjusted)})",
    )


def meanings(facts: Facts) -> list[Block]:
    """What the verifier's own fields say, and who says so."""
    found = [one for one in facts.meanings if one.cause is not None]
    if not found:
        return []
    rows = tuple(
        cells(
            (Code(hostile.line(one.field, 60)), " = ", Code(hostile.line(one.value, 60))),
            causes.badge(one.cause) if one.cause else words.NONE,
            causes.mode(facts, one.mode, 160),
            _origin(one),
            words.whole(one.n_rollouts),
            words.whole(one.n_passed),
            words.whole(one.n_tasks),
        )
        for one in sorted(found, key=lambda one: -one.n_rollouts)[:MAX_ROWS]
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


def _origin(one: Meaning) -> Span:
    return Badge("proposed", "warning") if one.origin == "proposed" else hostile.line(one.origin, 60)

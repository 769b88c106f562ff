"""Lay out what to change: interventions by what they could win, repairs of the measurement apart."""

from __future__ import annotations

from blade import hostile
from blade.model import Recommendation
from blade.report import causes, numbers, places, quantities, results
from blade.report.facts import Facts
from blade.report.sections import Block, Bullets, Code, Heading, Line, Para, Strong, Table, cells, para

MAX_ROWS = 20
MAX_TOLD = 6  # told in full
MAX_TASKS = 8


def recommendations(runs: tuple[Facts, ...]) -> list[Block]:
    """What to do first, what it could win, and what nothing here explains."""
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading(("Run ", Code(hostile.line(facts.run.name, 80)))))
        blocks += _of_run(facts)
    return blocks or [para("No run was read.")]


def _of_run(facts: Facts) -> list[Block]:
    of_model = [found for found in facts.recommendations if not found.is_measurement]
    repairs = [found for found in facts.recommendations if found.is_measurement]
    bounds = any(is_bound(found) for found in of_model)
    blocks: list[Block] = []
    if of_model:
        blocks += [
            para(
                "Ranked by expected gain per effort. A gain is the expected number of points, then its "
                "range: the low end counts only tasks whose own repeats show what happens without the mode, "
                "the high end is all that the mode loses. ",
                *(("“Up to” marks an upper bound; its basis says why. ",) if bounds else ()),
                Strong("Gains overlap where modes occur together: do not add them up."),
            ),
            *_table(facts, of_model),
            *_told(facts, of_model),
        ]
    elif facts.recommendations:
        blocks.append(para("Nothing is recommended for the model itself: only the measurement needs repair."))
    else:
        blocks.append(para(_why_none(facts)))
    if repairs:
        blocks += [
            Heading(("Repairs of the measurement",)),
            para(
                "These would change the measurement, not the model: the score would move because it was "
                "measured wrongly, and no training or prompt work should be credited with it."
            ),
            *_table(facts, repairs),
            *_told(facts, repairs),
        ]
    return [*blocks, para(*unexplained(facts))]


def _table(facts: Facts, found: list[Recommendation]) -> list[Block]:
    rows = tuple(_row(facts, one) for one in found[:MAX_ROWS])
    header = ("Rank", "Action", "Kind", "Effort", "Expected gain", "Tasks", "Addresses")
    return [Table(header, rows, "rlllrrl"), *places.left_out(len(found), len(rows), "recommendation")]


def _row(facts: Facts, one: Recommendation) -> tuple[Line, ...]:
    query = facts.entry("recommendations", one)
    return cells(
        numbers.whole(one.rank, f"{query}.rank"),
        numbers.said(one.action, f"{query}.action", 300),
        hostile.line(one.kind, 30),
        hostile.line(one.effort, 30),
        expected(facts, one),
        numbers.whole(len(one.tasks), f"{query}.tasks.count"),
        (causes.badge(one.cause), " ", numbers.name(causes.mode(facts, one.mode, 80))),
    )


def is_bound(one: Recommendation) -> bool:
    """Whether the gain is only known not to be larger."""
    return "upper bound" in one.basis


def expected(facts: Facts, one: Recommendation) -> Line:
    """`+4.2 points (+1.0 points to +9.5 points)`; `up to +4.8 points` where only a bound is known."""
    query, gain = f"{facts.entry('recommendations', one)}.gain", one.gain
    low, point, high = (
        numbers.points(getattr(gain, name), f"{query}.{name}") for name in ("low", "point", "high")
    )
    if is_bound(one) and gain.point >= causes.SAME:
        return ("up to ", point)
    if abs(gain.point) < causes.SAME <= gain.high and abs(gain.low) < causes.SAME:
        return ("up to ", high)
    return (point, " (", low, " to ", high, ")")


def _told(facts: Facts, found: list[Recommendation]) -> list[Block]:
    blocks: list[Block] = []
    for one in found[:MAX_TOLD]:
        query = facts.entry("recommendations", one)
        basis = causes.sentence(one.basis, f"{query}.basis", 400) if one.basis else ("not stated.",)
        mode = numbers.name(causes.mode(facts, one.mode))
        kind = f"Kind: {hostile.line(one.kind, 30)}; effort: {hostile.line(one.effort, 30)}; addresses "
        items: list[Line] = [
            ("Expected gain ", *expected(facts, one), ". Basis: ", *basis),
            (f"{kind}{causes.called(one.cause)}: ", mode, "."),
        ]
        if one.tasks:
            every = f"{query}.tasks.count"
            listed = places.ids(((task, None) for task in one.tasks), every, MAX_TASKS)
            items.append((*numbers.count(len(one.tasks), "task", every), ": ", *listed, "."))
        rank = numbers.whole(one.rank, f"{query}.rank", strong=True)
        blocks += [Para((rank, ". ", *causes.sentence(one.action, f"{query}.action"))), Bullets(tuple(items))]
        blocks += places.quotations(facts, one.evidence, 1)
    return blocks


def unexplained(facts: Facts) -> Line:
    """What lies between the score and the best repeat of every task and nothing found here accounts for."""
    run = facts.run
    lead = Strong("Unexplained gap to the oracle: ")
    if run.score is None or run.oracle is None:
        return (lead, "there is none to state, because the run has no score or no best repeat.")
    score = quantities.value(facts.score, facts.is_rate)
    room: Line = ("best repeat of every task scores ", results.oracle(facts), ", the run ", score)
    if run.coverage.repeats <= 1 and abs(run.oracle - run.score) < causes.SAME:
        return (
            lead,
            "the ",
            *room,
            "; with one repeat per task the two cannot differ, so repeats are needed to see a gap.",
        )
    if run.unexplained is None:
        return (lead, "not computed; the ", *room, ".")
    return (
        lead,
        numbers.size(run.unexplained, f"{facts.entry('runs', run)}.unexplained"),
        ". The ",
        *room,
        "; choosing in each task the repeats least touched by the modes found here leaves this much of the "
        "difference: chance, or something that no rule here sees.",
    )


def _why_none(facts: Facts) -> str:
    if not facts.run.has_pass_rate:
        return "Without a pass rate no gain can be stated, so nothing is recommended."
    if facts.run.score is None:
        return "No rollout was scored, so nothing can be recommended."
    if abs(1 - facts.run.score) < causes.SAME:
        return "Every task scores 1: there is nothing to win on this benchmark."
    return (
        "Nothing is recommended: no loss was traced to a cause that an intervention could remove. What could "
        "not be said stands under Reproducibility Notes."
    )

"""Say what people and agents judged, what the engine proposes there, and how far they agree."""

from __future__ import annotations

from blade import hostile, number_format
from blade.model import Judgement
from blade.report import causes, numbers, places
from blade.report.blocks import Block, Code, Heading, Line, Para, Table, cells, para
from blade.report.facts import Facts

MAX_ROWS = 40


def judgements(facts: Facts) -> list[Block]:
    """The judgements of a run, and the agreement of their authors with the engine and one another."""
    if not facts.judgements:
        return []
    told, every = facts.judgements, f"engine.judgements[{facts.run.name!r}]"
    authors = [(Code(name),) for name in sorted({hostile.line(one.by, 60) for one in told})]
    counted = numbers.count(len(told), "judgement", f"{every}.count")
    blocks: list[Block] = [
        Heading(("Judgements",)),
        para(
            *counted,
            " by ",
            *numbers.joined(list(authors)),
            " stand in for the engine's proposals. Each quotation was found in its rollout, and each "
            "condition holds of it; where authors differ, the last word stands.",
        ),
        Table(
            ("Task", "Cause", "Engine", "By", "On", "What happened"),
            tuple(_row(facts, one) for one in told[:MAX_ROWS]),
            "llllll",
        ),
        *places.left_out(len(told), MAX_ROWS, "judgement", f"{every}.count"),
    ]
    if facts.agreements:
        blocks += [
            Para(
                (
                    "Agreement, over tasks that both labelled; kappa is Cohen's, and says nothing where "
                    "labels hardly vary.",
                )
            ),
            Table(("Between", "Tasks", "Same label", "Kappa"), tuple(_agreements(facts)), "lrrr"),
        ]
    return blocks


def _row(facts: Facts, one: Judgement) -> tuple[Line, ...]:
    found = facts.attribution.get(one.task)
    engine = found.proposed if found is not None and found.proposed is not None else one.proposed
    return cells(
        (Code(hostile.line(places.place(one.task, one.repeat), 60)),),
        causes.named(one.cause),
        engine.value if engine is not None else number_format.NONE,
        Code(hostile.line(one.by, 60)),
        Code(one.at[:10]),
        numbers.said(one.mechanism, f"{facts.judgement(one)}.mechanism", 200),
    )


def _agreements(facts: Facts) -> list[tuple[Line, ...]]:
    rows = []
    for one in facts.agreements:
        query = facts.entry("agreements", one)
        n, agreed = (numbers.whole(getattr(one, name), f"{query}.{name}") for name in ("n", "agreed"))
        both: Line = (Code(hostile.line(one.first, 60)), " and ", Code(hostile.line(one.second, 60)))
        rows.append(cells(both, n, (agreed, " of ", n), numbers.number(one.kappa, f"{query}.kappa")))
    return rows

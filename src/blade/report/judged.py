"""Say what people and agents judged, what the engine proposes there, and how far they agree."""

from __future__ import annotations

from blade import hostile
from blade.model import Judgement
from blade.report import causes, places, words
from blade.report.facts import Facts
from blade.report.sections import Block, Code, Heading, Line, Para, Table, cells, para, prose

MAX_ROWS = 40
MAX_QUOTES = 5


def judgements(facts: Facts) -> list[Block]:
    """The judgements of a run, and the agreement of their authors with the engine and one another."""
    if not facts.judgements:
        return []
    told = facts.judgements
    n_tasks = len({one.task for one in told})
    authors = sorted({hostile.line(one.by, 60) for one in told})
    blocks: list[Block] = [
        Heading(("Judgements",)),
        para(
            f"{words.count(len(told), 'judgement')} of {words.count(n_tasks, 'task')} by "
            f"{words.listing(authors)} stand in for the engine's proposals. Each quotation was found in its "
            "rollout; where authors differ, the last word stands."
        ),
        Table(
            ("Task", "Cause", "Engine", "By", "On", "What happened"),
            tuple(_row(facts, one) for one in told[:MAX_ROWS]),
            "llllll",
        ),
        *places.left_out(len(told), MAX_ROWS, "judgement"),
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
        engine.value if engine is not None else words.NONE,
        hostile.line(one.by, 60),
        one.at[:10],
        prose(hostile.line(one.mechanism, 200)),
    )


def _agreements(facts: Facts) -> list[tuple[Line, ...]]:
    return [
        cells(
            f"{hostile.line(one.first, 60)} and {hostile.line(one.second, 60)}",
            words.whole(one.n),
            f"{one.agreed} of {one.n}",
            words.number(one.kappa),
        )
        for one in facts.agreements
    ]

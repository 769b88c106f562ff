"""Turn a report into facts: everything its runs say, typed, each under a query that finds it again."""

from __future__ import annotations

from blade.facts.causes import of_causes
from blade.facts.changes import of_changes
from blade.facts.runs import of_runs
from blade.model import Fact, Report


def facts(report: Report) -> tuple[Fact, ...]:
    """What the report states of its runs, apart from its single tasks: `Known` makes those when asked."""
    return _unambiguous([*of_runs(report), *of_causes(report), *of_changes(report)])


def _unambiguous(found: list[Fact]) -> tuple[Fact, ...]:
    """The facts whose query finds one thing: what two nouns share a query for is no fact of either."""
    by_query: dict[str, Fact | None] = {}
    for fact in found:
        held = by_query.setdefault(fact.query, fact)
        if held is not None and held.value != fact.value:
            by_query[fact.query] = None
    kept = {(fact.query, fact.subject): fact for fact in found if by_query[fact.query] is not None}
    return tuple(kept.values())

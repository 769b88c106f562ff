"""Run the queries that a model proposes for uncited numbers, so that the author sees both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from blade.check.cited_numbers import Answers
from blade.check.world import World
from blade.errors import BladeError
from blade.model.checked import UNCITED, Finding
from blade.query.figures import agrees, last_figure
from blade.query.ground import value

MOST = 40  # numbers of one request
Ask = Callable[[Mapping[str, str], Sequence[str], Sequence[tuple[str, str]]], dict[int, str]]


def proposed(findings: Sequence[Finding], world: World, ask: Ask) -> tuple[Finding, ...]:
    """The findings; an uncited number that nothing was suggested for has what the model's query gives."""
    places = [n for n, one in enumerate(findings) if one.verdict == UNCITED and not one.query][:MOST]
    if not places:
        return tuple(findings)
    numbers = [(findings[place].printed, findings[place].text) for place in places]
    queries = ask(world.columns(), world.rows.runs, numbers)
    answers, told = Answers(world.ground, queries.values()), list(findings)
    for number, query in queries.items():
        told[places[number]] = _told(told[places[number]], query, answers)
    return tuple(told)


def _told(finding: Finding, query: str, answers: Answers) -> Finding:
    figure, proposal = last_figure(finding.printed), f"{finding.printed}: the model proposes {query}"
    try:
        given = value(query, answers)
    except BladeError as error:
        return replace(finding, why=f"{proposal}, which cannot be run: {error.message}")
    if figure is None or not isinstance(given, int | float) or not agrees(figure, given):
        return replace(finding, expected=str(given)[:80], why=f"{proposal}, which gives {str(given)[:80]}")
    return replace(finding, query=query, why=f"{proposal}, which gives it; cite it if you mean that")

"""`blade check --llm`: run the queries that a model proposes for uncited numbers; the author sees both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from blade.errors import BladeError, UsageError

if TYPE_CHECKING:
    from blade.check import World
    from blade.check.cited_numbers import Answers
    from blade.model.checked import Finding

MOST = 40  # numbers of one request
SECONDS, MOST_TOKENS = 120.0, 8000  # of a reply
Ask = Callable[[Mapping[str, str], Sequence[str], Sequence[tuple[str, str]]], dict[int, str]]


def asker(given: dict[str, str | None], has_runs: bool) -> Ask:
    """Asks the model that is named; what cannot be asked is told here."""
    from blade.cli.read import named_model, warn_open
    from blade.pipeline import asking

    if not has_runs:
        raise UsageError("--llm needs the runs that the report is about", "add --run RUN", "usage")
    whom = named_model({**dict.fromkeys(("price", "max_cost", "max_tokens", "dry_run")), **given})
    warn_open(whom.url)
    click.echo(f"note: sentences with uncited numbers are sent to {asking.host_of(whom.url)}", err=True)
    return partial(asking.queries, whom.endpoint(SECONDS, MOST_TOKENS))


def proposed(findings: Sequence[Finding], world: World, ask: Ask) -> tuple[Finding, ...]:
    """The findings; an uncited number that nothing was suggested for has what the model's query gives."""
    from blade.check.cited_numbers import Answers
    from blade.model.checked import UNCITED

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
    from blade.query.figures import agrees, last_figure
    from blade.query.ground import value

    figure, proposal = last_figure(finding.printed), f"{finding.printed}: the model proposes {query}"
    try:
        given = value(query, answers)
    except BladeError as error:
        return replace(finding, why=f"{proposal}, which cannot be run: {error.message}")
    if figure is None or not isinstance(given, int | float) or not agrees(figure, given):
        return replace(finding, expected=str(given)[:80], why=f"{proposal}, which gives {str(given)[:80]}")
    return replace(finding, query=query, why=f"{proposal}, which gives it; cite it if you mean that")

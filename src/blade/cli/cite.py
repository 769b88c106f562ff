"""`blade cite`: fill in the numbers and quotations that a report cites by query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade.cli.output import refuse_existing, write_text
from blade.cli.report_file import read_report
from blade.errors import EXIT_FAILED_GATE, UsageError

if TYPE_CHECKING:
    from blade.check.world import Rows

LONGEST = 300  # characters of a quotation that is filled in


@click.command(short_help="Fill in the numbers that a report cites by query.")
@click.argument("file", metavar="FILE")
@click.option(
    "--run", "runs", metavar="RUN", multiple=True, required=True, help="A run of the report; may be repeated."
)
@click.option("-o", "--output", metavar="OUT", help="Write the filled report to OUT (default: print it).")
@click.option("--in-place", is_flag=True, help="Overwrite FILE itself.")
@click.option("--pass-threshold", metavar="X", type=float, help="A row passes at reward >= X (default: 1).")
@click.option("--json", "as_json", is_flag=True, help="Print what was filled in, and what was not, as JSON.")
@click.option("--force", is_flag=True, help="Overwrite an existing OUT.")
def cite(
    file: str,
    runs: tuple[str, ...],
    output: str | None,
    in_place: bool,
    pass_threshold: float | None,
    as_json: bool,
    force: bool,
) -> None:
    """Fill in every `{{ QUERY }}` of a Markdown file from the rows.

    `{{ pass_at_1 where difficulty = 'easy' }}` becomes `27.8%` with the query in a comment behind it, so that
    `blade check` can verify it again; `{{ 12/0#4 }}` becomes the text of step 4 of rollout 12/0. What cannot
    be filled in is left as it is, and the exit code is 1.
    """
    from blade.cli.diagnose import refuse_threshold
    from blade.cli.watch import Progress

    refuse_threshold(pass_threshold)
    if in_place and (output or file == "-"):
        raise UsageError("--in-place overwrites FILE itself", "leave out -o, or name a file", "usage")
    if output:
        refuse_existing(Path(output), force)
    text = read_report(file)
    from blade.check.cited_numbers import Answers
    from blade.check.world import world_for
    from blade.query.citations import PLACE, citations, filled

    with Progress() as progress:
        world = world_for(text, runs, progress, pass_threshold)
        queries = [item.query for item in citations(text) if item.is_open]
        answers = Answers(world.ground, (query for query in queries if not PLACE.fullmatch(query)))
        made, problems = filled(text, answers, lambda *place: step_text(world.rows, *place))
    path = Path(file) if in_place else Path(output) if output else None
    if path is not None:
        write_text(path, made)
    n = len(queries) - len(problems)
    if as_json:
        wrote = str(path) if path else None
        wire = {"schema": "blade.cite/1", "filled": n, "problems": problems, "wrote": wrote}
        click.echo(json.dumps(wire if path else {**wire, "text": made}, ensure_ascii=False, indent=2))
    else:
        click.echo(made, nl=False) if path is None else click.echo(f"Filled in {n:,}; wrote {path}")
        for problem in problems:
            click.echo(f"not filled in: {problem}", err=True)
    if problems:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def step_text(rows: Rows, task: str, repeat: int, where: str) -> str | None:
    """The text of a step or field as it can stand in quotation marks in Markdown; None if there is none."""
    from blade import hostile
    from blade.events import step_texts
    from blade.formats.items import NOTHING, quotable, value_at

    traces = [trace for run in rows.runs for trace in rows.at(run, task, repeat)]
    if len(traces) != 1 or task in rows.ambiguous:
        return None
    if where.isdecimal():
        texts = [text for step in traces[0].steps if step.index == int(where) for text in step_texts(step)]
    else:
        value = value_at(traces[0].row, where)
        texts = [] if value is NOTHING else [quotable(value)]
    text = hostile.line(texts[0], LONGEST).translate(str.maketrans("“”", "‘’")) if texts else ""
    return hostile.markdown_inline(text) or None

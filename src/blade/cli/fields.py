"""`blade fields`: list every field of the rows, and what each is by how its values behave."""

from __future__ import annotations

import json

import click

from blade.cli.options import MAPPING, json_option
from blade.cli.output import Progress

ROLES = {
    "reward": "states the reward again",
    "verdict": "set by grading: goes with the outcome",
    "task-level": "the same in every repeat of a task, differs between tasks",
    "identity": "names the task or the rollout",
    "effort": "an amount: tokens, seconds, steps",
    "text": "prose or a log",
    "constant": "the same in every row",
    "other": "none of these",
}
COLUMNS = ("run", "path", "column", "role", "type", "presence", "distinct", "example")


@click.command(short_help="List every field of the rows and what it is.")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--role", type=click.Choice(list(ROLES)), help="List the fields of one role alone.")
@MAPPING
@click.option("--limit", default=200, show_default=True, metavar="N", help="Fields to print; 0 for all.")
@json_option()
def fields(runs: tuple[str, ...], role: str | None, fields: str | None, limit: int, as_json: bool) -> None:
    """List every field of the rows of RUN: type, rows that have it, distinct values, role.

    The role is decided by how values behave over repeats, tasks and rewards, not by names. A column of that
    name can be used in `blade query`; dotted names stand in double quotes.
    """
    from blade.cli.query import grid, ground_of
    from blade.query.query_ground import Table

    with Progress() as progress:
        loaded, ground = ground_of(runs, fields, None, progress)
        table = ground.ask("select " + ", ".join(f'"{name}"' for name in COLUMNS) + " from fields")
    assert isinstance(table, Table)
    rows = [row for row in table.rows if role in (None, row[3])]
    rows.sort(key=lambda row: (row[0], list(ROLES).index(row[3]), row[1]))
    if as_json:
        listed = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        click.echo(json.dumps({"schema": "blade.fields/1", "fields": listed}, indent=2))
        return
    first = 0 if len(loaded) > 1 else 1
    head = ("run", "field", "column", "role", "type", "rows", "distinct", "example")
    shown = [(*row[:2], row[2] if row[2] != row[1] else "", *row[3:]) for row in rows]
    click.echo(grid(head[first:], [row[first:] for row in shown], limit, whole="--limit 0 or --json"))
    click.echo("\n" + "\n".join(f"{name:<11} {meaning}" for name, meaning in ROLES.items()))

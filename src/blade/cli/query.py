"""`blade query` and `blade fields`: answer one question about runs, as a measure or one SELECT, and list what it can name."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import MAPPING, THRESHOLD, force_option, json_option
from blade.cli.output import Progress, cannot_write, refuse_existing, refuse_sources
from blade.cli.sanitize import redactor
from blade.errors import NothingToRead, UsageError
from blade.hostile import line, lines

if TYPE_CHECKING:
    from blade.query.measures import Answer
    from blade.query.query_process import Outcome

SHOWN = 100  # rows of a table on the terminal
_WIDE = 60  # characters of a cell there
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
_COLUMNS = ("run", "path", "column", "role", "type", "presence", "distinct", "example")


@click.command(short_help="Ask one question of the rows: a measure, or a SELECT.")
@click.argument("words", metavar="RUN... QUERY", nargs=-1, required=True)
@json_option()
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--parquet", type=click.Path(path_type=Path), metavar="FILE", help="Write a Parquet file.")
@force_option("Replace the Parquet file if there is one.")
@click.option("--redact", is_flag=True, help="Replace what looks private.")
@click.option("--limit", default=SHOWN, show_default=True, metavar="N", help="Rows to print; 0 for all.")
@MAPPING
@THRESHOLD
@click.option("--seconds", default=30.0, show_default=True, metavar="N", help="Time limit.")
@click.option("--memory", default=2000, show_default=True, metavar="MB", help="Memory limit.")
def query(
    words: tuple[str, ...], as_json: bool, as_csv: bool, parquet: Path | None, force: bool, redact: bool, limit: int,
    fields: str | None, pass_threshold: float | None, seconds: float, memory: int,
) -> None:  # fmt: skip
    """Answer QUERY over the tables of one or more runs.

    \b
    A measure:  NAME[(k)] [where EXPR] [by COLUMN]
      count, tasks, rate, pass_at_1, pass_at_k(4), pass_hat_k(4), mean(COLUMN), sum(COLUMN)
      EXPR is a SQL condition over rollouts; calls('tool'), says('regex') and check_failed('name') help.
    Or SQL:     one SELECT over rollouts, tasks, runs, fields, checks, answers, steps, calls, texts

    \b
    blade query RUN "pass_at_1 where difficulty = 'hard'"
    blade query RUN "rate where calls('search') = 0"
    blade query RUN "mean(turns) by passed"
    blade query RUN "select tool, count(*) from calls group by 1 order by 2 desc"
    """
    from blade.query import query_process

    if len(words) < 2:
        raise UsageError("name a run and a query", 'write blade query RUN "pass_at_1"', "usage")
    if sum((as_json, as_csv, parquet is not None)) > 1:
        raise UsageError("choose one of --json, --csv and --parquet", "each is a form of the same answer", "usage")
    if parquet is not None:
        refuse_existing(parquet, force)
    *runs, question = words
    if redact:
        _refuse_respelt(question)
    with Progress() as progress:
        loaded, ground = ground_of(runs, fields, pass_threshold, progress)
        outcome = query_process.raised(query_process.ask(ground, [question], seconds, memory)[0])
        for note in outcome.notes:
            progress.notice(note)
    if redact:
        outcome = redacted(outcome, loaded)
    if parquet is not None:
        refuse_sources(parquet, loaded)
        _write_parquet(outcome, parquet)
        click.echo(f"Wrote {parquet}")
    elif as_json:
        click.echo(json.dumps(finite(as_document(question, outcome)), indent=2, default=str))
    elif as_csv:
        click.echo(_csv(outcome), nl=False)
    else:
        click.echo(render(question, outcome, limit))


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
    from blade.query.query_ground import Table

    with Progress() as progress:
        loaded, ground = ground_of(runs, fields, None, progress)
        table = ground.ask("select " + ", ".join(f'"{name}"' for name in _COLUMNS) + " from fields")
    assert isinstance(table, Table)
    rows = [row for row in table.rows if role in (None, row[3])]
    rows.sort(key=lambda row: (row[0], list(ROLES).index(row[3]), row[1]))
    if as_json:
        listed = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        click.echo(json.dumps({"schema": "blade.fields/1", "fields": listed}, indent=2))
        return
    first = 0 if len(loaded) > 1 else 1
    head = ("run", "field", "column", "role", "type", "rows", "distinct", "example")
    shown = [(*row[:2], row[2] if row[2] != row[1] else "", *row[3:]) for row in rows]
    click.echo(grid(head[first:], [row[first:] for row in shown], limit, whole="--limit 0 or --json"))
    click.echo("\n" + "\n".join(f"{name:<11} {meaning}" for name, meaning in ROLES.items()))


def ground_of(
    runs: Sequence[str], fields: str | None, threshold: float | None, progress: Any
) -> tuple[Any, Any]:
    from blade import pipeline
    from blade.formats import field_mapping
    from blade.pipeline import run_tables

    mapping = field_mapping.mapping_of(fields) if fields else None
    try:
        loaded = pipeline.load(runs, progress, mapping=mapping)
    except NothingToRead as error:
        if error.slug != "no-rollouts" or mapping:
            raise
        hint = f"{error.hint}; for rows of another shape name their fields: --map {field_mapping.EXAMPLE}"
        raise NothingToRead(error.message, hint, error.slug) from error
    return loaded, run_tables.ground_of(loaded, threshold, progress)


# -- forms ------------------------------------------------------------------------------------------


def as_document(question: str, outcome: Outcome) -> Any:
    """The answer as JSON values; the rows of a SELECT are a plain list, as every other tool prints a table."""
    if outcome.columns is not None:
        return [dict(zip(outcome.columns, row, strict=True)) for row in outcome.rows]
    head: dict[str, Any] = {"schema": "blade.query/1", "query": question, "notes": list(outcome.notes)}
    keys = ("group", "value", "low", "high", "n", "unit", "method")
    answers = [
        {key: getattr(answer, key) for key in keys} | ({"tasks": list(answer.tasks)} if answer.tasks is not None else {})
        for answer in outcome.answers or ()
    ]
    if len(answers) == 1 and answers[0]["group"] is None:
        return {**head, **{name: value for name, value in answers[0].items() if name != "group"}}
    return {**head, "groups": answers}


def finite(value: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def render(question: str, outcome: Outcome, limit: int) -> str:
    """The answer for a terminal: `42.0% [32.4%, 52.3%], n = 50 tasks (wilson)`, or a table."""
    from blade.query.measures import RATES, measure_of

    if outcome.columns is not None or outcome.answers is None:
        return grid(outcome.columns or (), outcome.rows, limit, outcome.is_cut)
    measure = measure_of(question) if not question.lstrip().startswith("engine.") else None
    part, by = (measure.part, measure.by) if measure else (None, None)
    is_rate = measure is not None and measure.name in RATES and part != "n"
    if by is not None:
        rows = [
            ("(none)" if answer.group is None else answer.group, *_cells(answer, is_rate)) for answer in outcome.answers
        ]
        return grid((by, "value", "95% interval", "n"), rows, limit)
    answer = outcome.answers[0]
    value, interval, n = _cells(answer, is_rate)
    if part is not None:
        return value
    text = f"{value} {interval}".strip() + (f", n = {n}" if n else "") + (f" ({answer.method})" if answer.method else "")
    return text + ("\n" + line(", ".join(answer.tasks[:200]), 4000) if answer.tasks else "")


def _cells(answer: Answer, is_rate: bool) -> tuple[str, str, str]:
    interval = ""
    if answer.low is not None and answer.high is not None:
        interval = f"[{number(answer.low, is_rate)}, {number(answer.high, is_rate)}]"
    unit = answer.unit.removesuffix("s") if answer.n == 1 else answer.unit
    return number(answer.value, is_rate), interval, f"{answer.n:,} {unit}" if answer.n is not None else ""


def number(value: Any, is_rate: bool = False) -> str:
    """A value as a person reads it."""
    if value is None:
        return "none"
    if isinstance(value, float):
        if is_rate:
            return f"{value * 100:.1f}%"
        return f"{int(value):,}" if value.is_integer() and abs(value) < 1e15 else f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else line(str(value), _WIDE)


def grid(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], limit: int, is_cut: bool = False,
    whole: str = "--limit 0, --csv or --json",
) -> str:  # fmt: skip
    """Rows in columns, cleaned, with what was left out said below."""
    shown = rows if limit <= 0 else rows[:limit]
    cells = [[line(str(name), _WIDE) for name in columns]]
    cells += [["" if value is None else number(value) for value in row] for row in shown]
    wide = [max(len(row[place]) for row in cells) for place in range(len(columns))]
    is_number = [all(isinstance(row[place], int | float | None) for row in shown) for place in range(len(columns))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, wide, is_number, strict=True)
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in wide))
    if len(rows) > len(shown) or is_cut:
        more = "more rows" if is_cut else f"{len(rows) - len(shown):,} more rows"
        lines.append(f"({more}: {whole} print all{' that were read' if is_cut else ''})")
    elif len(rows) != 1:
        lines.append(f"({len(rows):,} rows)")
    return "\n".join(lines)


def _csv(outcome: Outcome) -> str:
    """CSV in which no cell is a formula that a spreadsheet runs."""
    def guarded(value: Any) -> Any:
        text = lines(value) if isinstance(value, str) else ""
        return value if not isinstance(value, str) else f"'{text}" if text[:1] in "=+-@\t" and text else text

    columns, rows = outcome.table()
    page = io.StringIO()
    csv.writer(page).writerows([guarded(value) for value in row] for row in (columns, *rows))
    return page.getvalue()


def _write_parquet(outcome: Outcome, path: Path) -> None:
    import duckdb
    import numpy as np

    from blade.tables.database import literal, quoted

    columns, rows = outcome.table()
    measured = ("VARCHAR", "DOUBLE", "DOUBLE", "DOUBLE", "BIGINT", "VARCHAR", "VARCHAR")[-len(columns) :]
    plain = {"BOOLEAN", "BIGINT", "INTEGER", "DOUBLE", "FLOAT", "VARCHAR", "HUGEINT", "DATE", "TIMESTAMP"}
    arrays, cells = {}, []
    for place, (name, kind) in enumerate(zip(columns, outcome.types or measured, strict=True)):
        arrays[name] = np.empty(len(rows), object)
        arrays[name][:] = [row[place] for row in rows]
        type_ = kind if kind in plain or kind.startswith("DECIMAL") else "VARCHAR"
        cells.append(f"cast({quoted(name)} as {type_}) as {quoted(name)}")
    connection = duckdb.connect(":memory:")
    connection.register("answer", arrays)
    try:
        connection.execute(f"copy (select {', '.join(cells)} from answer) to {literal(str(path))} (format parquet)")
    except duckdb.IOException as error:
        raise cannot_write(path, OSError(str(error).partition("\n")[0])) from error


_CALLS = re.compile(
    r"'(?:[^']|'')*'|(?P<function>[A-Za-z_]\w*)\s*\(|(?P<sign>\|\||(?<=[\w)\"])(?:\[|\s+\[[^\[\],]*:))|\b(?P<kind>blob|bytea|bit)\b",
    re.IGNORECASE,
)


def _refuse_respelt(question: str) -> None:
    """Redaction knows a private value by its letters: none may be cut, turned round or encoded before."""
    from blade.sanitize.rule_table import words

    plain = words("plain_functions")
    for hit in _CALLS.finditer(question):
        word = hit["function"] or hit["sign"] or hit["kind"]
        if word and word.lower() not in plain:
            hint = "select whole columns, or leave --redact out"
            raise UsageError(f"{word.strip()} may spell a private value in a way that --redact cannot see", hint, "usage")


def redacted(outcome: Outcome, loaded: Sequence[Any]) -> Outcome:
    """The answer with placeholders for what looks private."""
    import msgspec

    own = redactor(loaded)
    if outcome.columns is not None:
        columns, rows = own.table(outcome.columns, outcome.rows)
        return msgspec.structs.replace(outcome, columns=columns, rows=rows)
    old = outcome.answers or ()
    (by, _), cells = own.table((outcome.by or "group", "value"), [(answer.group, answer.value) for answer in old])
    answers = tuple(
        msgspec.structs.replace(answer, group=group, value=value)
        for answer, (group, value) in zip(old, cells, strict=True)
    )
    return msgspec.structs.replace(outcome, answers=answers, by=outcome.by and by)

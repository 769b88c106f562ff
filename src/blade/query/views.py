"""Put the tables of several runs under one name each, and our functions over them, into a connection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from blade.query.select import OF_TRACES, TABLES
from blade.tables.database import connect, literal, lock, quoted

if TYPE_CHECKING:
    import duckdb


class Files(msgspec.Struct, frozen=True):
    """The database files of one run."""

    run: str
    tables: str
    traces: tuple[str, ...] = ()  # made when steps, calls or texts are first asked for


class Damaged(Exception):
    """Tables are not as they were written."""


def damage(error: Exception) -> Damaged | None:
    """The damage to its files that a database complains of; None for any other complaint."""
    import duckdb

    text = str(error).partition("\n")[0]
    is_damage = isinstance(error, duckdb.IOException | duckdb.SerializationException)
    return Damaged(text) if is_damage or text.startswith("Corrupt database file") else None


FIELD_TEXTS = "field_texts"  # for `says` alone: a query cannot name it
_KEYS = {"run": "varchar", "task": "varchar", "repeat": "bigint", "row": "bigint"}
_TRACE_COLUMNS = {  # of tables that are not made yet
    "steps": "step bigint, kind varchar, tool varchar, text varchar, chars bigint, failed boolean, "
    "answered boolean",
    "calls": "step bigint, tool varchar, arguments varchar, result varchar, failed boolean",
    "texts": "path varchar, step bigint, line bigint, template varchar, text varchar, n bigint, "
    "is_last boolean",
    FIELD_TEXTS: "path varchar, text varchar",
}
# Our functions are given the rollout they are asked of; `located` adds it to a query.
_MACROS = (
    """create macro calls_of(in_run, in_row, named) as (
        select count(*) from calls as made
        where made.run = in_run and made."row" = in_row and made.tool = named)""",
    """create macro check_failed_of(in_run, in_row, named) as exists (
        select 1 from checks as held
        where held.run = in_run and held."row" = in_row and held.status = 'failed'
        and named in (held.name, held.path, held.path || '.' || held.name))""",
    """create macro says_of(in_run, in_row, pattern) as exists (
        select 1 from steps as said where said.run = in_run and said."row" = in_row
        and said.kind = 'message' and regexp_matches(said.text, pattern)),
    (in_run, in_row, pattern, speaker) as exists (
        select 1 from steps as said where said.run = in_run and said."row" = in_row
        and (speaker = 'any' or said.kind =
            case speaker when 'tool' then 'result' when 'model' then 'message' else speaker end)
        and regexp_matches(said.text, pattern))
      or exists (
        select 1 from field_texts as held where held.run = in_run and held."row" = in_row
        and speaker in (held.path, 'any') and regexp_matches(held.text, pattern))""",
)


def opened(runs: tuple[Files, ...], memory_mb: int, threads: int) -> duckdb.DuckDBPyConnection:
    """A connection in which the tables of all runs have their names, and nothing else can be reached."""
    files = {f"r{number}": Path(run.tables) for number, run in enumerate(runs)}
    for number, run in enumerate(runs):
        files |= {f"r{number}t{part}": Path(path) for part, path in enumerate(run.traces)}
    import duckdb

    try:
        connection = connect(files, memory_mb, threads)
    except duckdb.Error as error:
        raise damage(error) or error from error
    for table in (*TABLES, FIELD_TEXTS):
        connection.execute(f"create view {table} as {_union(table, runs)}")
    for macro in _MACROS:
        connection.execute(macro)
    lock(connection)
    return connection


def _union(table: str, runs: tuple[Files, ...]) -> str:
    parts: list[str] = []
    for number, run in enumerate(runs):
        if table in OF_TRACES or table == FIELD_TEXTS:
            parts += [_joined(run.run, f"r{number}t{part}", table, number) for part in range(len(run.traces))]
        elif table in ("checks", "answers"):
            parts.append(_joined(run.run, f"r{number}", table, number))
        else:
            parts.append(f"select {literal(run.run)} as run, * from r{number}.{quoted(table)}")
    return " union all by name ".join(parts) if parts else _nothing(table)


def _joined(run: str, file: str, table: str, number: int) -> str:
    """A table whose rows know their rollout by its number alone, with the other keys."""
    keys = f'{literal(run)} as run, held.task, held.repeat, made."row"'
    rollouts = f'join r{number}.rollouts as held using ("row")'
    return f'select {keys}, made.* exclude ("row") from {file}.{table} as made {rollouts}'


def _nothing(table: str) -> str:
    columns = [f"{quoted(name)} {kind}" for name, kind in _KEYS.items()] + _TRACE_COLUMNS[table].split(", ")
    cells = [f"null::{kind} as {name}" for name, kind in (column.rsplit(" ", 1) for column in columns)]
    return f"select {', '.join(cells)} where false"

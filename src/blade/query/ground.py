"""Evaluate queries on some runs: measures and SELECTs on their tables, the rest by asking the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blade.errors import BladeError, UsageError
from blade.query import measures, select, views
from blade.query.measures import Answer, Measure, measure_of
from blade.query.names import bad_pattern
from blade.query.views import Damaged, Files

if TYPE_CHECKING:
    import duckdb

MEMORY_MB = 2_000
MAX_ROWS = 1_000_000
_THREADS = 2


class Table(msgspec.Struct, frozen=True):
    """What a SELECT gives."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool = False  # there were more rows


class Ground:
    """Some runs that can be asked. Their files are made when they are needed, and open while it lives."""

    def __init__(
        self,
        runs: tuple[str, ...],
        files: Callable[[bool], tuple[Files, ...]],  # with traces, or without
        engine: Callable[[str], Any] | None = None,
        connection: duckdb.DuckDBPyConnection | None = None,  # one that is open already, for all queries
    ) -> None:
        self.runs = runs
        self.files = files
        self.engine = engine
        self._given = connection
        self._connections: dict[bool, duckdb.DuckDBPyConnection] = {}
        self._answers: dict[str, list[Answer] | Table] = {}

    def ask(self, query: str) -> list[Answer] | Table:
        """What a query gives; the second time at once."""
        if query not in self._answers:
            try:
                self._answers[query] = self._asked(query)
            except Damaged:
                if self._given is not None:
                    raise
                self.discard()
                self._answers[query] = self._asked(query)
        return self._answers[query]

    def discard(self) -> None:
        """Remove the files of the tables, so that they are made anew."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        for files in self.files(True):
            for path in (files.tables, *files.traces):
                Path(path).unlink(missing_ok=True)

    def _asked(self, query: str) -> list[Answer] | Table:
        if query.lstrip().startswith("engine."):
            if self.engine is None:
                raise select.refused("what the engine concludes cannot be asked here")
            return [Answer(self.engine(query.strip()))]
        return answered(query, self.connection, self.runs)

    def connection(self, with_traces: bool) -> duckdb.DuckDBPyConnection:
        """The tables of the runs, with those of their traces where they are needed."""
        if self._given is not None:
            return self._given
        if with_traces not in self._connections:
            try:
                opened = views.opened(self.files(with_traces), MEMORY_MB, _THREADS)
            except Damaged:
                self.discard()
                opened = views.opened(self.files(with_traces), MEMORY_MB, _THREADS)
            self._connections[with_traces] = opened
        return self._connections[with_traces]


def answered(
    query: str,
    connection: Callable[[bool], duckdb.DuckDBPyConnection],
    runs: tuple[str, ...],
) -> list[Answer] | Table:
    """What a measure or a SELECT gives."""
    import duckdb

    measure = measure_of(query)
    try:
        if measure is None:
            if not select.is_sql(query):
                raise measures.misread(query) or select.refused(
                    f"{query.strip()[:60]!r} is no measure and no SELECT",
                    f"the measures are {', '.join(measures.NAMES)}; for anything else write a SELECT",
                )
            return _selected(query, connection)
        with_traces = bool(_tables_of(query, measure, connection(False)) & select.OF_TRACES)
        answers = measures.answer(measure, connection(with_traces), runs)
        return [measures.part_of(answer, measure.part) for answer in answers]
    except duckdb.InterruptException as error:
        raise select.refused("the query took too long and was stopped") from error
    except duckdb.OutOfMemoryException as error:
        raise select.refused("the query needs more memory than it may have") from error
    except duckdb.Error as error:
        if damaged := views.damage(error):
            raise damaged from error
        raise bad_pattern(query, connection(False)) or select.refused(_first_line(error)) from error


def _tables_of(query: str, measure: Measure, connection: duckdb.DuckDBPyConnection) -> set[str]:
    try:
        tree = select.parsed("".join(measures.asked(measure)), connection)
    except UsageError as error:
        raise measures.misread(query) or error from error
    return select.tables_in(tree)


def _selected(query: str, connection: Callable[[bool], duckdb.DuckDBPyConnection]) -> Table:
    node = select.parsed(query, connection(False))
    held = connection(bool(select.tables_in(node) & select.OF_TRACES))
    select.refuse_twins(node, held)
    cursor = held.execute(select.located(query, node))
    rows = cursor.fetchmany(MAX_ROWS + 1)
    columns = [column[0] for column in cursor.description or ()]
    types = [str(column[1]) for column in cursor.description or ()]
    return Table(tuple(columns), tuple(types), tuple(map(tuple, rows[:MAX_ROWS])), len(rows) > MAX_ROWS)


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    hint = next((line.strip() for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))), "")
    if lines and lines[0].startswith("Binder Error: Referenced table"):
        hint = 'Write a dotted path in double quotes: "a.b".'
    return f"{lines[0] if lines else 'the query failed'} {hint}".strip()


def value(query: str, ground: Ground) -> Any:
    """The one value that a query gives; UsageError where it gives none or several."""
    found = ground.ask(query)
    if isinstance(found, Table):
        if len(found.rows) != 1 or len(found.rows[0]) != 1:
            shape = f"{len(found.rows):,} rows of {len(found.columns)} columns"
            raise select.refused(f"the query gives {shape}, not one value")
        return found.rows[0][0]
    if len(found) != 1 or found[0].group is not None:
        raise select.refused(f"the query gives {len(found)} groups, not one value")
    return found[0].value


__all__ = ["Answer", "BladeError", "Ground", "Table", "answered", "value"]

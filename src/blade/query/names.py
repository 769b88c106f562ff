"""Say which names in a query no row has: a tool nobody calls, a check nobody has, a field without text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from blade.errors import UsageError
from blade.query.measures import measure_of
from blade.query.select import OUR_FUNCTIONS, nodes, parsed
from blade.query.views import FIELD_TEXTS

if TYPE_CHECKING:
    import duckdb

_SPEAKERS = ("any", "tool", "model", "user", "system", "message", "result", "reasoning", "call")
_SHOWN = 8
CONSTANT = "the query reads no column of any row: its answer says nothing of the run"
_CHECKS = "select distinct unnest([name, path, path || '.' || name]) as known from checks"
_KNOWN = {
    "calls": ("no rollout calls {!r}", "select distinct tool as known from calls where tool is not null"),
    "check_failed": ("no row has a check {!r}", _CHECKS),
    "says": ("no row has a text at {!r}", f"select distinct path as known from {FIELD_TEXTS}"),
}


def unknown(query: str, connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """What a query that was answered names and no row has, with the names that there are."""
    try:
        measure = measure_of(query)
        sql = f"select 1 from rollouts where {measure.where or 'true'}" if measure else query
        tree = parsed(sql, connection)
    except UsageError:
        return ()
    notes = [] if measure or _reads(tree) else [CONSTANT]
    for function, name in dict.fromkeys(_named(tree)):
        text, listing = _KNOWN[function]
        known = [row[0] for row in connection.execute(f"{listing} order by 1").fetchall()]
        if name not in known:
            few = ", ".join(known[:_SHOWN]) + (" …" if len(known) > _SHOWN else "")
            notes.append(text.format(name) + (f"; there are {few}" if few else ""))
    return tuple(notes)


def _reads(tree: dict[str, Any]) -> bool:
    """Whether what a query gives can depend on rows: it names a column, or counts or lists rows."""
    kinds = {node.get("type") for node in nodes(tree)}
    functions = {str(node.get("function_name")) for node in nodes(tree) if node.get("type") == "FUNCTION"}
    return "BASE_TABLE" in kinds and bool(kinds & {"COLUMN_REF", "STAR"} or "count_star" in functions)


def _named(tree: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Our functions in a query, with the name that each is given."""
    for node in nodes(tree):
        function = str(node.get("function_name", "")).lower() if node.get("type") == "FUNCTION" else ""
        if function in OUR_FUNCTIONS:
            given = [argument["expression"] for argument in node["arguments"]]
            values = [each["literal"]["text"] if "literal" in each else None for each in given]
            name = values[-1] if values else None
            is_name = function != "says" or (len(values) == 2 and name not in _SPEAKERS)
            if isinstance(name, str) and is_name:
                yield function, name

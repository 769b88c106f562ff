"""Refuse every statement but one SELECT over our own tables, by its parsed form and not by its spelling."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from blade.errors import UsageError
from blade.tables.database import RESERVED

if TYPE_CHECKING:
    import duckdb

TABLES = ("rollouts", "tasks", "runs", "fields", "checks", "answers", "steps", "calls", "texts")
OF_TRACES = frozenset(("steps", "calls", "texts"))  # made when they are first asked for
OUR_FUNCTIONS = frozenset(("calls", "says", "check_failed"))
_SOURCES = frozenset(
    ("BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "EMPTY_FROM")
)
# What reads settings or the session, writes, or gives another answer each time.
_REFUSED = frozenset(
    "current_setting getvariable getenv nextval currval txid_current write_log setseed random uuid uuidv4 "
    "uuidv7 gen_random_uuid now get_current_timestamp transaction_timestamp current_date today current_time "
    "get_current_time current_localtime current_localtimestamp current_database current_schema "
    "current_schemas current_user user session_user current_role current_query".split()
)
_MAX_CHARACTERS = 20_000
START = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|from|values)\b", re.I | re.S)
_TWINS = """select distinct path, "column" from fields as one where "column" <> path and exists (
    select 1 from fields as other where lower(other.path) = lower(one.path) and other.path <> one.path)"""


_PARSED: dict[str, dict[str, Any]] = {}  # a page asks the same few queries again and again


def parsed(sql: str, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The parsed form of exactly one SELECT over our tables, to be read only; UsageError for all else."""
    if sql in _PARSED:
        return _PARSED[sql]
    if len(sql) > _MAX_CHARACTERS:
        raise refused(f"the query has {len(sql):,} characters; at most {_MAX_CHARACTERS:,} are read")
    cell = connection.execute("select json_serialize_sql(?)", [sql]).fetchone()
    tree: dict[str, Any] = json.loads(cell[0]) if cell else {"error": True}
    if tree.get("error_type") == "not implemented":
        raise refused("only a SELECT is run")
    if tree.get("error"):
        raise refused(str(tree.get("error_message", "the query cannot be parsed")).partition("\n")[0])
    statements = tree.get("statements", [])
    if len(statements) != 1:
        raise refused(f"exactly one SELECT is run; this has {len(statements)} statements")
    node: dict[str, Any] = statements[0]["node"]
    ctes = [part["cte_map"] for part in nodes(node) if isinstance(part.get("cte_map"), dict)]
    known = {*TABLES, *(str(entry["key"]).lower() for cte in ctes for entry in cte.get("map", []))}
    for part in nodes(node):
        _refuse(part, known)
    while len(_PARSED) >= 2_000:
        _PARSED.pop(next(iter(_PARSED)), None)
    _PARSED[sql] = node
    return node


def nodes(tree: Any, *types: str) -> Iterator[dict[str, Any]]:
    """Every node of a parsed query, or those of some types."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if not types or part.get("type") in types:
                yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


def function_name(node: dict[str, Any]) -> str:
    """The name of the function that a node calls, in lower case; nothing for any other node."""
    return str(node.get("function_name", "")).lower() if node.get("type") == "FUNCTION" else ""


def _refuse(node: dict[str, Any], known: set[str]) -> None:
    kind, function = node.get("type"), function_name(node)
    if kind == "BASE_TABLE":
        table = str(node.get("table_name", "")).lower()
        if node.get("schema_name") or node.get("catalog_name") or table not in known:
            hint = f"the tables are {', '.join(TABLES)}"
            raise refused(f"there is no table {node.get('table_name')}", hint)
    elif kind == "TABLE_FUNCTION":
        name = str(node.get("function", {}).get("function_name", "")).lower()
        if name not in ("range", "generate_series", "unnest"):
            raise refused(f"{name}() is not available: a query sees the tables alone")
    elif kind is not None and "sample" in node and "alias" in node and kind not in _SOURCES:
        raise refused(f"{str(kind).lower().replace('_', ' ')} is not available: write one SELECT")
    if function in _REFUSED or function.startswith(("pragma_", "duckdb_", "read_", "pg_")):
        raise refused(f"{function}() is not available: the same rows must give the same answer")


def refuse_twins(tree: dict[str, Any], connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse a name that two fields have, but for the case of its letters, and that means the other one."""
    columns = (node["column_names"][-1] for node in nodes(tree, "COLUMN_REF"))
    names = [name for name in dict.fromkeys(map(str, columns)) if name.lower() not in RESERVED]
    twins = dict(connection.execute(_TWINS).fetchall()) if names else {}
    for name in names:
        if name in twins:
            hint = f'write "{twins[name]}" for {name!r}'
            raise refused(f"another field is called {name!r} but for the case of its letters", hint)


def located(sql: str, node: dict[str, Any]) -> str:
    """The query with our functions told which rollout they are asked of."""
    data = sql.encode()
    for place, alias in sorted(_asked_of(node, None), reverse=True):
        bracket = data.index(b"(", place)
        name = data[place:bracket].strip()
        rollout = f'_of({alias}.run, {alias}."row", '.encode()
        data = data[:place] + name + rollout + data[bracket + 1 :]
    return data.decode()


def _asked_of(tree: Any, alias: str | None) -> Iterator[tuple[int, str]]:
    """Where our functions stand in a query, and what the rollouts around each are called."""
    if isinstance(tree, list):
        for part in tree:
            yield from _asked_of(part, alias)
    if not isinstance(tree, dict):
        return
    if tree.get("type") == "SELECT_NODE":
        alias = next(_rollouts_in(tree.get("from_table")), alias)
    if function_name(tree) in OUR_FUNCTIONS:
        if alias is None:
            raise refused(f"{tree['function_name']}() is asked of rollouts, and this query reads none")
        yield int(tree["query_location"]), alias
    for part in tree.values():
        yield from _asked_of(part, alias)


def _rollouts_in(source: Any) -> Iterator[str]:
    """What a FROM calls the rollouts."""
    if not isinstance(source, dict):
        return
    if source.get("type") == "BASE_TABLE" and str(source.get("table_name")).lower() == "rollouts":
        alias = str(source.get("alias") or "rollouts").replace('"', '""')
        yield f'"{alias}"'
    elif source.get("type") == "JOIN":
        yield from _rollouts_in(source.get("left"))
        yield from _rollouts_in(source.get("right"))


def tables_in(node: dict[str, Any]) -> set[str]:
    """The tables a query reads, those behind our functions too."""
    used = {str(part["table_name"]).lower() for part in nodes(node, "BASE_TABLE")}
    for function in map(function_name, nodes(node, "FUNCTION")):
        used |= {"calls": {"calls"}, "says": {"steps", "texts"}}.get(function, set())
    return used & set(TABLES)


def columns_in(node: dict[str, Any]) -> set[str]:
    """The columns that a query names, in lower case."""
    refs = (part["column_names"] for part in nodes(node, "COLUMN_REF"))
    return {str(names[-1]).lower() for names in refs if names}


def refused(message: str, hint: str = "see the tables and functions under `blade query --help`") -> UsageError:
    """A query that is not run."""
    return UsageError(message, hint, "bad-query")

"""Say what a query cannot see: names that no row has, texts that the tables cut, fields of another name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from blade.errors import UsageError
from blade.query.measures import RATES, asked, measure_of
from blade.query.select import OUR_FUNCTIONS, columns_in, nodes, parsed, refused
from blade.query.views import FIELD_TEXTS
from blade.tables.census import KEPT
from blade.tables.database import RESERVED
from blade.tables.traces import FIRST, LAST, MAX_LINES

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
    "run": ("there is no run {!r}", "select run as known from runs"),
}
_LINES = (
    f"texts holds at most {FIRST + LAST} lines of a message and {MAX_LINES} of a field: the first and the "
    "last; says(REGEX) searches all of them"
)
_NO_REWARD = "no row has a reward; for rows that are not NeMo Gym's, --map reward=FIELD names it"
_WHOLE = frozenset(("count", "any_value", "first", "last", "mode", "list"))  # for which a cut text will do
_JUDGED = frozenset(("reward", "passed", "score"))
_COMPARED = frozenset(("COMPARISON", "BETWEEN"))


def unknown(query: str, connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """What a query that was answered names and no row has, with the names that there are."""
    tree = _tree(query, connection)
    if tree is None:
        return ()
    notes = [] if measure_of(query) or _reads(tree) else [CONSTANT]
    for function, name in dict.fromkeys(_named(tree)):
        text, listing = _KNOWN[function]
        known = [row[0] for row in connection.execute(f"{listing} order by 1").fetchall()]
        if name not in known:
            few = ", ".join(known[:_SHOWN]) + (" …" if len(known) > _SHOWN else "")
            notes.append(text.format(name) + (f"; there are {few}" if few else ""))
    return tuple(notes)


def limits(query: str, connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """What the tables do not hold of what a query that was answered looks at."""
    tree, measure = _tree(query, connection), measure_of(query)
    if tree is None:
        return ()
    tables = {str(node["table_name"]).lower() for node in nodes(tree) if node.get("type") == "BASE_TABLE"}
    notes = [_LINES] if "texts" in tables else []
    named = columns_in(tree) if "rollouts" in tables else set()
    compared = {name for node in nodes(tree) if _compares(node) for name in columns_in(node)} & named
    sql = 'select distinct path, "column", is_cut from fields where is_cut or "column" <> path order by all'
    for path, column, is_cut in connection.execute(sql).fetchall() if named else ():
        if column is None:
            continue  # it has no column: a query cannot name it
        if is_cut and column.lower() in compared:
            how = f"says(REGEX, '{path}') searches all of them"
            notes.append(f"{column} holds long texts, cut after {KEPT} characters; {how}")
        if path.lower() in named & set(RESERVED) and column != path and column.lower() not in named:
            ours = f"{path} is a column of BLADE's own"
            notes.append(f"{ours}; the field {path} of the rows is called \"{column}\" here")
    if (measure is not None and measure.name in RATES) or named & _JUDGED:
        found = connection.execute("select count(*), count(reward) from rollouts").fetchone()
        notes += [_NO_REWARD] if found and found[0] and not found[1] else []
        unjudged = "select run from rollouts group by run having count(passed) = 0 and count(reward) > 0"
        for (run,) in connection.execute(f"{unjudged} order by run").fetchall():
            notes.append(f"{run} has no pass rate: its rewards are not 0 or 1; set --pass-threshold X")
    return tuple(notes)


def bad_pattern(query: str, connection: duckdb.DuckDBPyConnection) -> UsageError | None:
    """What is wrong with the first regular expression of a query that cannot be used; None if all can."""
    import duckdb

    for node in nodes(_tree(query, connection)):
        function = str(node.get("function_name", "")).lower() if node.get("type") == "FUNCTION" else ""
        if function != "says" and not function.startswith("regexp_"):
            continue
        given = _given(node)
        pattern = next(iter(given[function != "says" :]), None)
        try:
            connection.execute("select regexp_matches('', ?)", [pattern])
        except duckdb.Error as error:
            why = str(error).partition("\n")[0].partition("Error: ")[2]
            hint = "write \\( for a bracket itself; the syntax is RE2's, which has no look-ahead and no \\1"
            return refused(f"the regular expression {pattern!r} cannot be used: {why}", hint)
    return None


def _tree(query: str, connection: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    """The parsed form of a measure or a SELECT; None where it has none."""
    try:
        measure = measure_of(query)
        return parsed("".join(asked(measure)) if measure else query, connection)
    except UsageError:
        return None


def _compares(node: dict[str, Any]) -> bool:
    """Whether a part of a query looks into texts: a comparison, a list of values, a function of a text."""
    if node.get("type") == "FUNCTION":
        return str(node.get("function_name", "")).lower() not in _WHOLE
    return node.get("class") in _COMPARED or str(node.get("type")) in ("COMPARE_IN", "COMPARE_NOT_IN")


def _given(node: dict[str, Any]) -> list[Any]:
    """What a function is given, where it is written out; None for what is computed."""
    given = [argument["expression"] for argument in node["arguments"]]
    return [each["literal"]["text"] if "literal" in each else None for each in given]


def _reads(tree: dict[str, Any]) -> bool:
    """Whether what a query gives can depend on rows: it names a column, or counts or lists rows."""
    kinds = {node.get("type") for node in nodes(tree)}
    functions = {str(node.get("function_name")) for node in nodes(tree) if node.get("type") == "FUNCTION"}
    return "BASE_TABLE" in kinds and bool(kinds & {"COLUMN_REF", "STAR"} or "count_star" in functions)


def _named(tree: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Our functions in a query, with the name that each is given; and the runs that it names."""
    for node in nodes(tree):
        yield from (("run", name) for name in _runs(node))
        function = str(node.get("function_name", "")).lower() if node.get("type") == "FUNCTION" else ""
        if function in OUR_FUNCTIONS:
            values = _given(node)
            name = values[-1] if values else None
            is_name = function != "says" or (len(values) == 2 and name not in _SPEAKERS)
            if isinstance(name, str) and is_name:
                yield function, name


def _runs(node: dict[str, Any]) -> Iterator[str]:
    """The texts that the column `run` is said to equal."""
    if node.get("type") == "COMPARE_EQUAL":
        sides = [node["left"], node["right"]]
    elif node.get("type") == "COMPARE_IN":
        sides = node["children"]
    else:
        return
    if any(side.get("column_names", [""])[-1].lower() == "run" for side in sides):
        literals = (side.get("literal", {}) for side in sides)
        yield from (literal["text"] for literal in literals if literal.get("kind") == "STRING")

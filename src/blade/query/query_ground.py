"""Evaluate queries on the tables of some runs, and say what a query cannot see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blade.errors import UsageError
from blade.query import measures, select
from blade.query.measures import RATES, Answer, asked, measure_of
from blade.query.select import OF_TRACES, OUR_FUNCTIONS, TABLES, columns_in, function_name, nodes
from blade.tables.census import KEPT
from blade.tables.database import RESERVED, literal, quoted
from blade.tables.trace_tables import FIRST, LAST, MAX_LINES

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
_KEYS = "run varchar, task varchar, repeat bigint, row bigint"
_TRACE_COLUMNS = {  # of tables that are not made yet
    "steps": "step bigint, kind varchar, tool varchar, text varchar, chars bigint, failed boolean, answered boolean",
    "calls": "step bigint, tool varchar, arguments varchar, result varchar, failed boolean",
    "texts": "path varchar, step bigint, line bigint, template varchar, text varchar, n bigint, is_last boolean",
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


def opened(runs: tuple[Files, ...], memory_mb: int) -> duckdb.DuckDBPyConnection:
    """A connection in which the tables of all runs have their names, and nothing else can be reached."""
    files = {f"r{number}": run.tables for number, run in enumerate(runs)}
    for number, run in enumerate(runs):
        files |= {f"r{number}t{part}": path for part, path in enumerate(run.traces)}
    import duckdb

    try:
        connection = duckdb.connect(":memory:", config={"threads": 2, "memory_limit": f"{memory_mb}MB"})
        for name, path in files.items():
            connection.execute(f"attach {literal(path)} as {quoted(name)} (read_only)")
    except duckdb.Error as error:
        raise damage(error) or error from error
    for table in (*TABLES, FIELD_TEXTS):
        connection.execute(f"create view {table} as {_union(table, runs)}")
    for macro in _MACROS:
        connection.execute(macro)
    for setting in (  # the files and the settings are shut for good
        "temp_directory = ''",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"set {setting}")
    return connection


def _union(table: str, runs: tuple[Files, ...]) -> str:
    parts: list[str] = []
    for number, run in enumerate(runs):
        is_of_traces = table in OF_TRACES or table == FIELD_TEXTS
        files = [f"r{number}t{part}" for part in range(len(run.traces))] if is_of_traces else [f"r{number}"]
        for file in files:
            if is_of_traces or table in ("checks", "answers"):  # whose rows know their rollout by its number alone
                keys = f'{literal(run.run)} as run, held.task, held.repeat, made."row"'
                rollouts = f'join r{number}.rollouts as held using ("row")'
                parts.append(f'select {keys}, made.* exclude ("row") from {file}.{table} as made {rollouts}')
            else:
                parts.append(f"select {literal(run.run)} as run, * from {file}.{quoted(table)}")
    if not parts:
        columns = map(str.split, f"{_KEYS}, {_TRACE_COLUMNS[table]}".split(", "))
        parts = [f"select {', '.join(f'null::{kind} as {quoted(name)}' for name, kind in columns)} where false"]
    return " union all by name ".join(parts)


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


def unknown(query: str, connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """What a query that was answered names and no row has, with the names that there are."""
    tree = _tree(query, connection)
    if tree is None:
        return ()
    # what a query gives can depend on rows if it names a column, or counts or lists rows
    counts = any(function_name(node) == "count_star" for node in nodes(tree, "FUNCTION"))
    reads = any(nodes(tree, "BASE_TABLE")) and (counts or any(nodes(tree, "COLUMN_REF", "STAR")))
    notes = [] if measure_of(query) or reads else [CONSTANT]
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
    tables = {str(node["table_name"]).lower() for node in nodes(tree, "BASE_TABLE")}
    notes = [_LINES] if "texts" in tables else []
    named = columns_in(tree) if "rollouts" in tables else set()
    compared: set[str] = set()  # columns whose texts are looked into: by a comparison, a list, a function of a text
    for node in nodes(tree):
        function = function_name(node)
        looks = ("COMPARISON", "BETWEEN", "COMPARE_IN", "COMPARE_NOT_IN")
        is_looking = node.get("class") in looks or node.get("type") in looks
        if function not in _WHOLE if function else is_looking:
            compared |= columns_in(node) & named
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
    if (measure is not None and measure.name in RATES) or named & {"reward", "passed", "score"}:
        counts = connection.execute("select count(*), count(reward) from rollouts").fetchone()
        notes += [_NO_REWARD] if counts and counts[0] and not counts[1] else []
        unjudged = "select run from rollouts group by run having count(passed) = 0 and count(reward) > 0"
        for (run,) in connection.execute(f"{unjudged} order by run").fetchall():
            notes.append(f"{run} has no pass rate: its rewards are not 0 or 1; set --pass-threshold X")
    return tuple(notes)


def bad_pattern(query: str, connection: duckdb.DuckDBPyConnection) -> UsageError | None:
    """What is wrong with the first regular expression of a query that cannot be used; None if all can."""
    import duckdb

    for node in nodes(_tree(query, connection), "FUNCTION"):
        function = function_name(node)
        if function != "says" and not function.startswith("regexp_"):
            continue
        pattern = next(iter(_arguments(node)[function != "says" :]), None)
        try:
            connection.execute("select regexp_matches('', ?)", [pattern])
        except duckdb.Error as error:
            why = str(error).partition("\n")[0].partition("Error: ")[2]
            hint = "write \\( for a bracket itself; the syntax is RE2's, which has no look-ahead and no \\1"
            return select.refused(f"the regular expression {pattern!r} cannot be used: {why}", hint)
    return None


def _tree(query: str, connection: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    """The parsed form of a measure or a SELECT; None where it has none."""
    try:
        measure = measure_of(query)
        return select.parsed("".join(asked(measure)) if measure else query, connection)
    except UsageError:
        return None


def _arguments(node: dict[str, Any]) -> list[Any]:
    """What a function is given, where it is written out; None for what is computed."""
    arguments = [argument["expression"] for argument in node["arguments"]]
    return [each["literal"]["text"] if "literal" in each else None for each in arguments]


def _named(tree: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Our functions in a query, with the name that each is given; and the runs that it names."""
    for node in nodes(tree):
        yield from (("run", name) for name in _runs(node))
        function = function_name(node)
        if function in OUR_FUNCTIONS and (values := _arguments(node)):
            name = values[-1]
            is_name = function != "says" or (len(values) == 2 and name not in _SPEAKERS)
            if isinstance(name, str) and is_name:
                yield function, name


def _runs(node: dict[str, Any]) -> Iterator[str]:
    """The texts that the column `run` is said to equal."""
    sides = {"COMPARE_EQUAL": ("left", "right"), "COMPARE_IN": ("children",)}.get(str(node.get("type")), ())
    compared = [side for name in sides for side in (node[name] if name == "children" else [node[name]])]
    if any(side.get("column_names", [""])[-1].lower() == "run" for side in compared):
        literals = (side.get("literal", {}) for side in compared)
        yield from (literal["text"] for literal in literals if literal.get("kind") == "STRING")


MEMORY_MB = 2_000
MAX_ROWS = 1_000_000


class Table(msgspec.Struct, frozen=True):
    """What a SELECT gives."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_cut: bool = False  # there were more rows

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.columns)


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
        self._open = connection
        self._connections: dict[bool, duckdb.DuckDBPyConnection] = {}
        self._answers: dict[str, list[Answer] | Table] = {}

    def ask(self, query: str) -> list[Answer] | Table:
        """What a query gives; the second time at once."""
        if query not in self._answers:
            self._answers[query] = self._repaired(lambda: self._asked(query))
        return self._answers[query]

    def _repaired(self, work: Callable[[], Any]) -> Any:
        """What `work` gives; where the files are damaged, on files that are made anew."""
        try:
            return work()
        except Damaged:
            if self._open is not None:
                raise
            self.discard()
            return work()

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
        if self._open is not None:
            return self._open
        if with_traces not in self._connections:
            self._connections[with_traces] = self._repaired(lambda: opened(self.files(with_traces), MEMORY_MB))
        return self._connections[with_traces]


def answered(
    query: str, connection: Callable[[bool], duckdb.DuckDBPyConnection], runs: tuple[str, ...]
) -> list[Answer] | Table:
    """What a measure or a SELECT gives."""
    import duckdb

    measure = measure_of(query)
    try:
        if measure is None:
            if not select.START.match(query):
                message = f"{query.strip()[:60]!r} is no measure and no SELECT"
                hint = f"the measures are {', '.join(measures.NAMES)}; for anything else write a SELECT"
                raise measures.misread(query) or select.refused(message, hint)
            return _selected(query, connection)
        try:
            tree = select.parsed("".join(measures.asked(measure)), connection(False))
        except UsageError as error:
            raise measures.misread(query) or error from error
        with_traces = bool(select.tables_in(tree) & select.OF_TRACES)
        return measures.answer(measure, connection(with_traces), runs)
    except duckdb.InterruptException as error:
        raise select.refused("the query took too long and was stopped") from error
    except duckdb.OutOfMemoryException as error:
        raise select.refused("the query needs more memory than it may have") from error
    except duckdb.Error as error:
        if damaged := damage(error):
            raise damaged from error
        lines = str(error).splitlines() or ["the query failed"]
        hint = next((line.strip() for line in lines[1:] if line.startswith(("Did you mean", "Candidate"))), "")
        if lines[0].startswith("Binder Error: Referenced table"):
            hint = 'Write a dotted path in double quotes: "a.b".'
        raise bad_pattern(query, connection(False)) or select.refused(f"{lines[0]} {hint}".strip()) from error


def _selected(query: str, connection: Callable[[bool], duckdb.DuckDBPyConnection]) -> Table:
    node = select.parsed(query, connection(False))
    tables = connection(bool(select.tables_in(node) & select.OF_TRACES))
    select.refuse_twins(node, tables)
    cursor = tables.execute(select.located(query, node))
    rows = cursor.fetchmany(MAX_ROWS + 1)
    columns = [column[0] for column in cursor.description or ()]
    types = [str(column[1]) for column in cursor.description or ()]
    return Table(tuple(columns), tuple(types), tuple(map(tuple, rows[:MAX_ROWS])), len(rows) > MAX_ROWS)


def value(query: str, ground: Ground) -> Any:
    """The one value that a query gives; UsageError where it gives none or several."""
    answer = ground.ask(query)
    if isinstance(answer, Table):
        if answer.shape != (1, 1):
            raise select.refused("the query gives {:,} rows of {} columns, not one value".format(*answer.shape))
        return answer.rows[0][0]
    if len(answer) != 1 or answer[0].group is not None:
        raise select.refused(f"the query gives {len(answer)} groups, not one value")
    return answer[0].value

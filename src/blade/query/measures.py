"""Parse and answer the short form of a query: a measure, a condition, a column to group by."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from blade import stats
from blade.errors import UsageError
from blade.query.select import OF_TRACES, columns_in, located, parsed, refuse_twins, refused, tables_in
from blade.tables.database import literal, quoted

if TYPE_CHECKING:
    import duckdb

NAMES = ("count", "tasks", "rate", "pass_at_1", "pass_at_k", "pass_hat_k", "mean", "sum")
PARTS = ("low", "high", "n")
FORM = "the form is NAME[(k)][.PART] [where EXPR] [by COLUMN]"
_WITH_K, _OF_COLUMNS = ("pass_at_k", "pass_hat_k"), ("mean", "sum")
RATES = frozenset(("rate", "pass_at_1", *_WITH_K))
_FORM = re.compile(
    r"(?P<name>[a-z_0-9]+)\s*(?:\(\s*(?P<argument>[^()]*)\s*\))?\s*(?:\.\s*(?P<part>[a-z]+))?"
    r"(?:\s+where\s+(?P<where>.+?))?(?:\s+by\s+(?P<by>\"[^\"]+\"|[\w.]+))?\s*",
    re.IGNORECASE | re.DOTALL,
)


class Measure(msgspec.Struct, frozen=True):
    """`NAME[(k)][.PART] [where EXPR] [by COLUMN]`, taken apart."""

    name: str
    argument: str | None = None  # k, or the column of a mean or a sum
    part: str | None = None
    where: str | None = None
    by: str | None = None

    @property
    def k(self) -> int:
        return int(self.argument or 1)


class Answer(msgspec.Struct, frozen=True):
    """One number, and what it rests on."""

    value: Any
    n: int | None = None
    unit: str = ""  # what n counts
    low: float | None = None
    high: float | None = None
    method: str = ""
    group: Any = None  # the value of the column that was grouped by
    tasks: tuple[str, ...] | None = None  # of the measure `tasks`


def measure_of(query: str) -> Measure | None:
    """The query as a measure; None if it has another form."""
    hit = _FORM.fullmatch(query.strip().removesuffix(";"))
    if hit is None or hit["name"].lower() not in NAMES:
        return None
    name, argument, part = hit["name"].lower(), hit["argument"], (hit["part"] or "").lower() or None
    if name in _WITH_K and not (argument and argument.isdecimal() and 0 < int(argument) < 10**6):
        raise refused(f"{name} needs its k", f"write {name}(4)")
    if name in _OF_COLUMNS and not argument:
        raise refused(f"{name} needs a column", f"write {name}(turns)")
    if name not in (*_WITH_K, *_OF_COLUMNS) and argument:
        raise refused(f"{name} takes nothing in brackets", f"write {name}")
    if part not in (None, *PARTS):
        raise refused(f"{name}.{hit['part']} is not known", "the parts of a measure are low, high and n")
    return Measure(name, argument, part, hit["where"], hit["by"].strip('"') if hit["by"] else None)


def misread(query: str) -> UsageError | None:
    """What is wrong with the form of a query that begins with the name of a measure; None if nothing is."""
    hit = re.match(r"\s*(\w+)(.*?)\s*;?\s*$", query, re.DOTALL)
    if hit is None or hit[1].lower() not in NAMES:
        return None
    name, rest = hit[1].lower(), hit[2]
    if re.search(r"\bby$", rest, re.IGNORECASE):
        return refused("by names no column", f"write `{name} by COLUMN`; blade fields RUN lists the columns")
    if re.search(r"\bwhere(?:\s+by\b[^'\"()]*)?$", rest, re.IGNORECASE):
        return refused("where gives no condition", f"write a condition, such as `{name} where passed`")
    has_condition = re.search(r"\bwhere\s", rest, re.IGNORECASE)
    column = r"[^'\"()]+" if has_condition else ".+"  # a condition may hold `by` itself
    if by := re.search(rf"\sby\s+({column})$", rest, re.IGNORECASE | re.DOTALL):
        hint = "for several columns or an expression write a SELECT with `group by`"
        return refused(f"by takes one column, not {by[1][:60]!r}", hint)
    return None if has_condition else refused(f"{rest.strip()[:60]!r} cannot follow {name}", FORM)


def asked(measure: Measure) -> tuple[str, str]:
    """The rollouts that a measure is about as a SELECT: what it names, and its condition."""
    column = f", {_column(measure)}" if measure.name in _OF_COLUMNS else ""
    return f"select {_group(measure)}{column} from rollouts where ", f"({measure.where or 'true'})"


def _group(measure: Measure) -> str:
    return quoted(measure.by) if measure.by else "null"


def answer(measure: Measure, connection: duckdb.DuckDBPyConnection, runs: tuple[str, ...]) -> list[Answer]:
    """The measure, or its part, over the rows that meet its condition: one answer, or one for each group."""
    head, where = asked(measure)
    check = parsed(head + where, connection)
    refuse_twins(check, connection)
    where = located(head + where, check)[len(head) :]
    if len(runs) > 1 and "run" not in columns_in(check):
        hint = f"add `where run = '{runs[0]}'` or `by run`; the runs are {', '.join(runs[:8])}"
        raise refused(f"{len(runs)} runs were read and the query names none", hint)
    form = _amounts if measure.name in ("count", *_OF_COLUMNS) else _task_measures
    answers, part = form(measure, connection, where, _group(measure)), measure.part
    if part is None:
        return answers
    return [Answer(getattr(each, part), each.n, each.unit, method=each.method, group=each.group) for each in answers]


def by_task(
    query: str, run: str, connection: Callable[[bool], duckdb.DuckDBPyConnection]
) -> dict[str, float]:
    """The value of a measure for each task of a run; a count as the share of the task's rollouts."""
    measure = measure_of(query)
    amounts = {"count": "({where})::int", "rate": "passed::int", "pass_at_1": "passed::int", "mean": "{column}::double"}
    if measure is None or measure.name not in amounts or measure.by or measure.part:
        hint = "give count, rate, pass_at_1 or mean(COLUMN), with a condition if need be"
        raise refused(f"a gate cannot be asked {query!r}", hint)
    where = asked(measure)[1]
    amount = amounts[measure.name].format(where=where, column=_column(measure))
    condition = "true" if measure.name == "count" else where
    source = f"from rollouts where not masked and run = {literal(run)} and {condition}"
    sql = f"select task, avg({amount}) {source} group by 1"
    node = parsed(sql, connection(False))
    tables = connection(bool(tables_in(node) & OF_TRACES))
    rows = tables.execute(located(sql, node)).fetchall()
    return {task: float(amount) for task, amount in rows if amount is not None}


def _column(measure: Measure) -> str:
    """The column of a mean or a sum, as SQL writes it."""
    argument = (measure.argument or "").strip()
    return argument if argument.startswith('"') else quoted(argument)


def _amounts(measure: Measure, connection: Any, where: str, group: str) -> list[Answer]:
    amount, rows, scored = "count(*)", "*", "true"
    if measure.name != "count":
        rows, scored = f"cast({_column(measure)} as double)", "not masked"
        amount = f"{'avg' if measure.name == 'mean' else 'sum'}({rows})"
    sql = f"select {group}, {amount}, count({rows}) from rollouts where {scored} and {where} group by 1 order by 1"
    cells = connection.execute(sql).fetchall()
    if not cells and measure.by is None:
        cells = [(None, 0 if measure.name != "mean" else None, 0)]
    return [Answer(value, n, "rollouts", group=key) for key, value, n in cells]


def _task_measures(measure: Measure, connection: Any, where: str, group: str) -> list[Answer]:
    """Measures of which the task is the unit."""
    counted = "true" if measure.name == "tasks" else "not masked and passed is not null"
    sql = (
        f"select {group} as g, run, task, count(*), count(*) filter (where passed) from rollouts "
        f'where {counted} and {where} group by 1, 2, 3 order by 1, 2, min("row")'
    )
    # a group without a scored row has no rate, and is told
    keys = f"select distinct {group} from rollouts where {where} order by 1"
    keys_of = connection.execute(keys).fetchall() if measure.by else [(None,)]
    groups: dict[Any, list[tuple[str, int, int]]] = {key: [] for (key,) in keys_of}
    for key, _, task, n, passes in connection.execute(sql).fetchall():
        groups.setdefault(key, []).append((task, n, passes))
    if measure.name in RATES and not any(passes for rows in groups.values() for _, _, passes in rows):
        rewards = connection.execute("select count(reward) from rollouts").fetchone()[0]
        if not rewards:
            return [Answer(None, 0, "tasks", method="no row has a reward", group=key) for key in groups]
    return [_over_tasks(measure, key, rows) for key, rows in groups.items()]


def _over_tasks(measure: Measure, key: Any, rows: list[tuple[str, int, int]]) -> Answer:
    if measure.name == "tasks":
        return Answer(len(rows), len(rows), "tasks", group=key, tasks=tuple(task for task, _, _ in rows))
    n, passes = np.array([(n, passes) for _, n, passes in rows], np.int64).reshape(-1, 2).T
    if not n.size:
        return Answer(None, 0, "tasks", method="no scored row", group=key)
    if measure.name == "rate":
        if (n == 1).all():
            return msgspec.structs.replace(_mean(passes / n, n, passes, key), unit="rollouts")
        why = "rows of one task are not independent; see pass_at_1"
        return Answer(int(passes.sum()) / int(n.sum()), int(n.sum()), "rollouts", method=why, group=key)
    if measure.name == "pass_at_1":
        return _mean(passes / n, n, passes, key)
    form = stats.pass_at_k if measure.name == "pass_at_k" else stats.pass_hat_k
    values = form(n, passes, measure.k)
    values = values[~np.isnan(values)]
    if not values.size:
        return Answer(None, 0, "tasks", method=f"no task has {measure.k} scored rows", group=key)
    return _with(values, stats.mean_interval(values), key)


def _mean(rates: Any, n: Any, passes: Any, key: Any) -> Answer:
    """The mean over tasks, with the interval of a score."""
    starts = np.cumsum(n) - n
    rows = np.arange(int(n.sum())) - np.repeat(starts, n) < np.repeat(passes, n)  # of each task the passes first
    variance = stats.variance_components(rows.astype(float), starts, n)
    return _with(rates, stats.score_interval(rates, n, variance, binary_rows=True), key)


def _with(values: Any, interval: Any, key: Any) -> Answer:
    value = float(values.mean())
    if interval is None:
        why = "no interval: one task" if values.size == 1 else "no interval: all tasks have the same value"
        return Answer(value, values.size, "tasks", method=why, group=key)
    low, high, method = interval
    return Answer(value, values.size, "tasks", low, high, method, group=key)

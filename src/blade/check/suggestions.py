"""Suggest the one short query that gives an uncited number, from a bank that a few group-by queries fill."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from blade.check.arithmetic.figures import Figure
from blade.check.world import World
from blade.query.ground import value
from blade.tables.database import literal, quoted

MAX_QUERIES = 2_000
MAX_COLUMNS, MAX_VALUES = 24, 20  # columns that conditions are made of, and values of each
MAX_K = 8
_EFFORTS = "turns calls steps input_tokens output_tokens reasoning_tokens total_tokens seconds cost_usd"
_ENDS = "outcome last_tool last_kind stop_reason truncated errored timed_out equals_gold".split()
COUNT, RATE, MEAN = "count", "rate", "mean"
Group = dict[str, Any]  # what is counted of the rows with one value of a column


class Known(msgspec.Struct, frozen=True):
    """A short query and what it gives."""

    query: str
    value: float
    kind: str


class Suggestions:
    """The bank of short queries about each run, made when it is first asked."""

    def __init__(self, world: World) -> None:
        self._bank = cache(lambda run: list(islice(bank(world, run), MAX_QUERIES)))

    def query(self, figure: Figure, runs: Sequence[str]) -> str | None:
        """The query that gives a printed number, if exactly one of the bank does."""
        if figure.unit not in ("", "%", "$", "s") or figure.signed:
            return None
        fitting = {known.query for run in runs[:4] for known in self._bank(run) if _gives(known, figure)}
        return fitting.pop() if len(fitting) == 1 else None


def _gives(known: Known, figure: Figure) -> bool:
    is_whole = figure.step >= 1 and not figure.unit
    scaled = known.value * 100 if figure.unit == "%" else known.value
    if (figure.unit == "%") != (known.kind == RATE) and (figure.unit == "%" or is_whole):
        return False
    if known.kind == COUNT:
        return is_whole and scaled == figure.value
    if is_whole and abs(figure.value) < 100:
        return False  # a mean of 7.2 is not printed as 7
    return abs(scaled - figure.value) <= figure.step / 2 + 1e-9


def bank(world: World, run: str) -> Iterator[Known]:
    """The short queries about a run; of conditions that select the same rows the first."""
    columns, seen = world.columns(), set[tuple[Any, ...]]()
    efforts = [name for name in _EFFORTS.split() if columns.get(name, "VARCHAR") != "VARCHAR"]
    scope = f"run = {literal(run)}" if len(world.rows.runs) > 1 else ""
    yield from _whole_run(world, run, scope)
    plain: dict[str, float] = {}  # what a measure gives without a condition of its own
    for column in ("", "passed", *_columns(world, run, columns)):
        for group in _groups(world, run, column, efforts):
            condition, rows = _condition(column, group["key"]), (group["n"], group["place"], group["spread"])
            if condition is None or rows in seen:
                continue
            seen.add(rows)
            for name, outcome, number, kind in _measures(group, column, efforts):
                where = " and ".join(filter(None, (scope, condition, outcome)))
                if plain.setdefault(f"{name} {outcome}", number) != number or not condition:
                    yield Known(f"{name} where {where}" if where else name, float(number), kind)


def _condition(column: str, key: str | None) -> str | None:
    if not column or key is None:
        return None if column else ""
    name = column if re.fullmatch(r"[a-z_][a-z0-9_]*", column) else quoted(column)
    return {"true": name, "false": f"not {name}"}.get(key, f"{name} = {literal(key)}")


def _columns(world: World, run: str, columns: dict[str, str]) -> list[str]:
    """Columns of few values by which rows can be told apart."""
    sql = f"""select "column" from fields where run = {literal(run)} and "distinct" between 2 and {MAX_VALUES}
        and type in ('text', 'boolean') and role in ('task-level', 'verdict', 'other') order by 1"""
    names = [*_ENDS, *(row[0] for row in world.select(sql))]
    return [name for name in dict.fromkeys(names) if name in columns][:MAX_COLUMNS]


def _groups(world: World, run: str, column: str, efforts: Sequence[str]) -> list[Group]:
    """One for each value of a column."""
    scored = "filter (where not masked and passed is not null)"
    names = ["key", "n", "place", "spread", "tasks", "passes", "fails", "passing", "failing", "rate"]
    sql = f"""
        with held as (
            select *, {f"cast({quoted(column)} as varchar)" if column else "'true'"} as key from rollouts
            where run = {literal(run)}),
        rates as (
            select key, avg(rate) as pass_at_1 from (
                select key, task, avg(cast(passed as int)) {scored} as rate from held group by 1, 2)
            group by 1)
        select held.key, count(*), sum("row"), sum("row" * "row"), count(distinct task),
            count(*) filter (where passed), count(*) filter (where not passed),
            count(distinct task) filter (where passed), count(distinct task) filter (where not passed),
            avg(cast(passed as int)) {scored}, any_value(pass_at_1)
            {"".join(f", avg(held.{quoted(name)}) filter (where not masked)" for name in efforts)}
        from held left join rates on rates.key is not distinct from held.key
        group by held.key order by count(*) desc limit {MAX_VALUES}"""
    return [dict(zip([*names, "pass_at_1", *efforts], row, strict=True)) for row in world.select(sql)]


def _measures(group: Group, column: str, efforts: Sequence[str]) -> Iterator[tuple[str, str, float, str]]:
    """Measure, outcome, value and kind, for the rows of one group."""
    numbers = [("count", "", group["n"], COUNT), ("tasks", "", group["tasks"], COUNT)]
    numbers += [(f"mean({name})", "", group[name], MEAN) for name in efforts]
    if column not in ("passed", "outcome"):
        numbers += [("pass_at_1", "", group["pass_at_1"], RATE), ("rate", "", group["rate"], RATE)]
        for outcome, rows, tasks in (("passed", "passes", "passing"), ("not passed", "fails", "failing")):
            numbers += [("count", outcome, group[rows], COUNT), ("tasks", outcome, group[tasks], COUNT)]
    values = {(name, outcome): number for name, outcome, number, _ in numbers}
    for name, outcome, number, kind in numbers:
        # one row for each task: counts and rates of rows and of tasks are the same
        other = values.get(({"tasks": "count", "rate": "pass_at_1"}.get(name, ""), outcome))
        if number is not None and (other is None or abs(other - number) > 1e-9):
            yield name, outcome, number, kind


def _whole_run(world: World, run: str, scope: str) -> Iterator[Known]:
    """Measures of several repeats, intervals and buckets."""
    where = f" where {scope}" if scope else ""
    repeats = world.select(f"select repeats from runs where run = {literal(run)}")
    ks = range(2, min(MAX_K, repeats[0][0] if repeats else 1) + 1)
    queries = [f"{name}({k}){where}" for k in ks for name in ("pass_at_k", "pass_hat_k")]
    for query in [*queries, f"pass_at_1.low{where}", f"pass_at_1.high{where}"]:
        number = value(query, world.ground)
        if number is not None:
            yield Known(query, number, RATE)
    buckets = f"select bucket, count(*) from tasks where run = {literal(run)} group by 1"
    for bucket, n in world.select(buckets):
        where = " and ".join(filter(None, (scope, f"bucket = {literal(bucket)}")))
        yield Known(f"select count(*) from tasks where {where}", float(n), COUNT)

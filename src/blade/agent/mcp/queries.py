"""Answer questions that are put as queries, and list the fields that they may name."""

from __future__ import annotations

from typing import Any

from blade.agent.mcp import arguments
from blade.agent.mcp.answers import Answer, answer, listed, paged
from blade.agent.mcp.house import House
from blade.errors import UsageError
from blade.hostile import line
from blade.query.box import Outcome
from blade.report.blocks import Block, Code, Table, cells, para

SHOWN = 100  # rows of one answer


def query(house: House, asked: arguments.Query) -> Answer:
    """One measure, or one SELECT over the tables of a run."""
    from blade.pipeline import tabling
    from blade.query import box

    loaded = house.loaded(asked.runs)
    if not loaded:
        raise UsageError("no run was named", "give runs as blade_list_runs lists them", "no-such-run")
    ground = tabling.ground_of(loaded, asked.pass_threshold, house.watcher)
    outcome = box.raised(box.ask(ground, [asked.query])[0])
    columns, rows = outcome.table()
    document: dict[str, Any] = {
        "query": asked.query,
        "columns": list(columns),
        "rows": [list(row) for row in rows[:SHOWN]],
        "n_rows": len(rows),
        "truncated": outcome.is_cut or len(rows) > SHOWN,
        "notes": list(outcome.notes),
        **_single(outcome),
    }
    notes = [para(line(note, 400)) for note in outcome.notes]
    blocks = [para(Code(line(asked.query, 400))), *_table(columns, rows), *notes]
    return answer(asked, "Query", document, blocks)


def _single(outcome: Outcome) -> dict[str, Any]:
    answers = outcome.answers or ()
    if len(answers) != 1 or answers[0].group is not None:
        return {}
    only = answers[0]
    names = ("value", "low", "high", "n", "unit", "method")
    tasks = {"tasks": list(only.tasks[:SHOWN])} if only.tasks else {}
    return {**{name: getattr(only, name) for name in names}, **tasks}


def _table(columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> list[Block]:
    if not rows:
        return [para("No row.")]
    body = tuple(cells(*(_cell(value) for value in row)) for row in rows[:SHOWN])
    blocks: list[Block] = [Table(tuple(line(name, 80) for name in columns), body, "l" * len(columns))]
    if len(rows) > SHOWN:
        blocks.append(
            para(f"{len(rows) - SHOWN:,} more rows: narrow the query, or count instead of listing.")
        )
    return blocks


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else line(str(value), 300)


def fields(house: House, asked: arguments.Fields) -> Answer:
    """Every field of the rows of a run, and what it is by how its values behave."""
    from blade.pipeline import tabling
    from blade.query.ground import Table as Found

    loaded = house.loaded([asked.run] if asked.run else [])
    if not loaded:
        raise UsageError("no run was named", "give run as blade_list_runs lists it", "no-such-run")
    ground = tabling.ground_of(loaded[:1], None, house.watcher)
    found = ground.ask(
        'select path, "column", role, type, presence, "distinct", example from fields order by role, path'
    )
    assert isinstance(found, Found)
    names = ("path", "column", "role", "type", "presence", "distinct", "example")
    entries = [dict(zip(names, row, strict=True)) for row in found.rows if asked.role in (None, row[2])]

    def laid_out(entry: dict[str, Any]) -> tuple[Block, ...]:
        head = ("Field", "Role", "Type", "Rows", "Distinct", "Example")
        values = (entry[name] for name in ("path", "role", "type", "presence", "distinct", "example"))
        return (Table(head, (cells(*(_cell(value) for value in values)),), "lllrrl"),)

    page = paged(entries, asked, lambda entry: entry, laid_out)
    return listed(asked, "Fields", {"run": loaded[0].name}, "fields", page, joined=_one_table)


def _one_table(tables: tuple[tuple[Block, ...], ...]) -> tuple[Block, ...]:
    parts = [block for blocks in tables for block in blocks if isinstance(block, Table)]
    return (Table(parts[0].header, tuple(row for part in parts for row in part.rows), parts[0].align),)

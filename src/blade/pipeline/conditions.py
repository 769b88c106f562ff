"""Find the failed tasks whose rollouts meet a condition, each with a place to quote: labels by condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blade.errors import UsageError
from blade.ingest import opened
from blade.ingest.items import NOTHING, quotable, value_at
from blade.pipeline.load import Loaded
from blade.query import select
from blade.query.ground import Ground, Table
from blade.tables.database import literal

_QUOTE = 200  # characters
_SPEAKERS = {"tool": "result", "model": "message"}


def proposals_where(
    one: Loaded, ground: Ground, condition: str, given: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """A judgement for each failed task with a rollout that meets the condition: its first failing one."""
    rows = _rows(ground, condition)
    if not rows:
        raise UsageError(
            "no failing rollout meets the condition",
            f'count them with blade query RUN "count where not passed and ({condition})"',
            "nothing-to-judge",
        )
    parsed = select.parsed(f"select 1 from rollouts where ({condition})", ground.connection(False))
    found: list[Mapping[str, Any]] = []
    for task, repeat, row in rows:
        place = _spoken(ground, parsed, row) or _field(one, ground, parsed, row)
        found.append({**given, "task": task, "repeat": repeat, **place})
    return found


def _rows(ground: Ground, condition: str) -> list[tuple[str, int, int]]:
    sql = f'select task, repeat, "row" from rollouts where passed = false and ({condition}) order by "row"'
    found = ground.ask(sql)
    assert isinstance(found, Table)
    first: dict[str, tuple[str, int, int]] = {}
    for task, repeat, row in found.rows:
        first.setdefault(task, (task, repeat, row))
    return list(first.values())


def _constants(node: Mapping[str, Any]) -> list[str]:
    """The texts that a function is given."""
    cells = [
        part.get("literal", {}) for part in select.nodes(dict(node)) if part.get("type") == "VALUE_CONSTANT"
    ]
    return [str(cell["text"]) for cell in cells if isinstance(cell, dict) and cell.get("text") is not None]


def _spoken(ground: Ground, parsed: dict[str, Any], row: int) -> dict[str, Any] | None:
    """The step that a function of the condition speaks of, with words of it."""
    for node in select.nodes(parsed):
        name = str(node.get("function_name", "")).lower() if node.get("type") == "FUNCTION" else ""
        words = _constants(node) if name in ("says", "calls") else []
        if not words:
            continue
        if name == "calls":
            where = f"kind = 'call' and tool = {literal(words[0])} and length(text) > 0"
            quote = "text"
        else:
            kind = _SPEAKERS.get(words[1], words[1]) if len(words) > 1 else "message"
            speaker = "true" if kind == "any" else f"kind = {literal(kind)}"
            where = f"{speaker} and regexp_matches(text, {literal(words[0])})"
            around = r"[^\n]{0,90}"  # a quotation of a few words shows nothing
            quote = f"regexp_extract(text, {literal(f'{around}(?:{words[0]}){around}')})"
        found = ground.ask(
            f'select step, {quote} from steps where "row" = {row} and {where} order by step limit 1'
        )
        if isinstance(found, Table) and found.rows and found.rows[0][1]:
            return {"step": found.rows[0][0], "quote": found.rows[0][1][:_QUOTE]}
    return None


def _field(one: Loaded, ground: Ground, parsed: dict[str, Any], row: int) -> dict[str, Any]:
    """A field that the condition names, else the reward."""
    known = ground.ask('select lower("column"), path from fields where "column" is not null')
    assert isinstance(known, Table)
    paths = dict(known.rows)
    data = opened.row(one.run, row)
    for column in sorted(select.columns_in(parsed)):
        value = value_at(data, paths.get(column, column))
        if value not in (NOTHING, None, ""):
            return {"field": paths.get(column, column), "quote": quotable(value)[:_QUOTE]}
    return {"field": "reward", "quote": quotable(data.get("reward"))[:_QUOTE]}

"""Lay the traces of a run out as tables: steps, calls with their results, and the lines of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from blade import events
from blade.formats import single_rows
from blade.formats.assemble import Assembled
from blade.formats.field_columns import head
from blade.formats.rollout_steps import NESTED_KEYS
from blade.formats.row_decoder import UNREAD
from blade.tables.database import Array, is_none, masked

LONGEST = 64_000  # characters kept of a step or of a field: of a longer one its beginning and its end
RESULT = 4_000  # likewise of the result and of the arguments of a call
LINE = 300
FIRST, LAST, LOG = 2, 2, 6  # lines of a step that are kept, and last lines of a log
MAX_LINES = 40
LONG = 100  # characters beyond which a field has lines, and is not just a value
BATCH = 2_000  # rows that are handed over at a time

Table = dict[str, list[Any]]
_COLUMNS = {
    "steps": ("row", "step", "kind", "tool", "text", "chars", "failed", "answered"),
    "calls": ("row", "step", "tool", "arguments", "result", "failed"),
    "texts": ("row", "path", "step", "line", "template", "text", "n", "is_last"),
    "field_texts": ("row", "path", "text"),
}
_OPTIONAL = {"step": np.int64, "failed": bool, "answered": bool}
_TYPES = {"row": np.int64, "chars": np.int64, "line": np.int64, "n": np.int64, "is_last": bool}
_NO_TEXTS = {"responses_create_params", "response", *NESTED_KEYS, *UNREAD}


def batches(
    run: Assembled, positions: Sequence[int], overrides: Mapping[str, str]
) -> Iterator[dict[str, dict[str, Array]]]:
    """The three tables of some rows, a few thousand rows at a time."""
    for first in range(0, len(positions), BATCH):
        tables: dict[str, Table] = {name: {column: [] for column in columns} for name, columns in _COLUMNS.items()}
        for position in positions[first : first + BATCH]:
            _add(tables, run, position, overrides)
        yield {name: {column: _array(column, table[column]) for column in table} for name, table in tables.items()}


def _array(column: str, values: list[Any]) -> Array:
    if column in _TYPES:
        return np.array(values, _TYPES[column])
    texts = np.empty(len(values), object)
    texts[:] = values
    if column not in _OPTIONAL:
        return texts
    gone = is_none(texts)
    return masked(np.where(gone, 0, texts).astype(_OPTIONAL[column]), gone)


def _add(tables: dict[str, Table], run: Assembled, position: int, overrides: Mapping[str, str]) -> None:
    trace = single_rows.traced(run, position)
    for step in trace.steps:
        cells = (step.kind, step.tool, cut(step.text), len(step.text), step.failed, step.answered)
        _put(tables["steps"], position, step.index, *cells)
        if step.reasoning:  # thinking that stood inside the message
            thought = ("reasoning", None, cut(step.reasoning), len(step.reasoning), None, None)
            _put(tables["steps"], position, step.index, *thought)
        if step.kind in ("result", "user", "message"):
            _lines(tables["texts"], position, None, step.index, step.text, FIRST, LAST)
    tools = events.declared_tools(trace.row)
    for call in events.calls(trace.steps, tools, overrides):
        texts = (cut(call.raw, RESULT), cut(call.output, RESULT))
        _put(tables["calls"], position, call.step, call.tool, *texts, call.failed)
    for path, text in texts_of(trace.row):
        _put(tables["field_texts"], position, path, cut(text))
        if len(text) > LONG or "\n" in text.strip():
            _lines(tables["texts"], position, path, None, text, MAX_LINES // 2, MAX_LINES // 2)


def _put(table: Table, *values: Any) -> None:
    for column, value in zip(table.values(), values, strict=True):
        column.append(value)


def cut(text: str, most: int = LONGEST) -> str:
    """A long text by its beginning and its end."""
    return text if len(text) <= most else f"{text[: most * 3 // 4]} … {text[-most // 4 :]}"


def _lines(table: Table, row: int, path: str | None, step: int | None, text: str, first: int, last: int) -> None:
    """The templates of the first and the last lines of a text, each once, with how often it stands there."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > first + last:
        lines = lines[:first] + lines[-last:]
    templates = [(number, line, events.masked(line[:LINE])) for number, line in lines]
    counts = Counter(template for _, _, template in templates)
    ends = {template for _, _, template in templates[-(LOG if path else LAST) :]}
    seen: set[str] = set()
    for number, line, template in templates:
        if template not in seen:
            seen.add(template)
            cells = (template, head(line.strip(), LINE), counts[template], template in ends)
            _put(table, row, path, step, number, *cells)


def texts_of(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts of a row beside its trace, with their paths."""
    waiting = [(key, value, 1) for key, value in row.items() if key not in _NO_TEXTS]
    while waiting:
        path, value, depth = waiting.pop(0)
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping) and depth < 6:
            waiting += [(f"{path}.{key}", inner, depth + 1) for key, inner in list(value.items())[:200]]
        elif isinstance(value, list) and depth < 6:
            waiting += [(f"{path}[]", inner, depth + 1) for inner in value[:50]]

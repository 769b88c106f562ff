"""Write typed tables into database files beside the index, and open them again for queries."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blade.formats.field_columns import ABSENT, BOOL, LIST, MAX_WHOLE, NULL, NUMBER, OBJECT, TEXT
from blade.model import Values
from blade.tables import cache

if TYPE_CHECKING:
    import duckdb

Array = NDArray[Any]
Columns = Mapping[str, Array]


def typed(values: Values, order: Array) -> tuple[Array, str] | None:
    """The values of some rows and their type; None where no row holds a scalar. Mixed types become text."""
    kind, number = values.kind[order], values.number[order]
    kinds = {int(k) for k in np.unique(kind)} - {ABSENT, NULL, LIST, OBJECT}
    if not kinds:
        return None
    if kinds == {BOOL}:
        return masked(np.nan_to_num(number) != 0, kind != BOOL), "boolean"
    if kinds == {NUMBER}:
        return numbers(number), "number"
    texts = coded(values.code[order], values.texts)
    if kinds == {TEXT}:
        return texts, "text"
    for row in np.flatnonzero((kind == BOOL) | (kind == NUMBER)).tolist():
        value = float(number[row])
        texts[row] = spelled(value) if kind[row] == NUMBER else "true" if value else "false"
    return texts, "mixed"


def numbers(values: Array) -> Array:
    """Numbers as integers where all are whole; what is no number is masked."""
    gone = np.isnan(values)
    present = values[~gone]
    if present.size and np.all(np.abs(present) < MAX_WHOLE) and np.all(present == np.floor(present)):
        return masked(np.nan_to_num(values).astype(np.int64), gone)
    return masked(values, gone)


def masked(values: Array, gone: Array) -> Array:
    """Values, some of which are missing."""
    array: Array = np.ma.masked_array(values, gone)
    return array


def is_none(texts: Array) -> Array:
    """Which of some texts are missing."""
    return np.array([text is None for text in texts.tolist()], bool)


def stacked(tables: Sequence[Columns]) -> dict[str, Array]:
    """Tables of the same columns one under the other; what is missing in one stays missing."""
    columns: dict[str, Array] = {}
    for name in tables[0]:
        parts = [table[name] for table in tables]
        is_masked = any(map(np.ma.isMaskedArray, parts))
        columns[name] = np.ma.concatenate(parts) if is_masked else np.concatenate(parts)  # type: ignore[no-untyped-call]
    return columns


def coded(codes: Array, texts: tuple[str, ...]) -> Array:
    """Texts by their codes, None for -1."""
    return np.array([*texts, None], object)[codes]


def spelled(value: float) -> str:
    """A number as JSON would write it."""
    return str(int(value)) if value.is_integer() and abs(value) < MAX_WHOLE else repr(value)


# What every run's `rollouts` have; a field of a row with one of these names gets another.
KEYS = ("run", "task", "repeat", "row")
RESERVED = (
    *KEYS, "task_name", "reward", "passed", "score", "masked", "outcome", "answer", "gold", "equals_gold",
    "last_tool", "last_kind", "turns", "calls", "steps", "input_tokens", "output_tokens", "reasoning_tokens",
    "total_tokens", "seconds", "cost_usd", "stop_reason", "truncated", "errored", "timed_out", "model",
    "agent", "file", "line",
)  # fmt: skip


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


class Writer:
    """A database file that is being written."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._known: set[str] = set()

    def add(self, table: str, columns: Columns) -> None:
        """Add rows to a table, which the first rows create."""
        self._connection.register("batch", dict(columns))
        if table in self._known:
            self._connection.execute(f"insert into {quoted(table)} select * from batch")
        else:
            self._connection.execute(f"create table {quoted(table)} as select * from batch")
            self._known.add(table)
        self._connection.unregister("batch")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Writer]:
    """A database file that is there whole afterwards, or not at all; Unwritable where there is no room for it."""
    import duckdb

    with cache.writing():
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix="tables-", suffix=".part")
        os.close(handle)
        os.unlink(name)  # the database makes the file itself
    mask = os.umask(0o077)  # rollouts are private text
    try:
        connection = duckdb.connect(name, config={"threads": 2, "memory_limit": "400MB"})
    finally:
        os.umask(mask)
    try:
        with cache.writing():
            yield Writer(connection)
            connection.close()
            os.replace(name, path)
    except BaseException as error:
        connection.close()
        for rest in (name, f"{name}.wal"):
            with contextlib.suppress(OSError):
                os.unlink(rest)
        text = str(error).partition("\n")[0]
        is_full = isinstance(error, duckdb.Error) and "Could not write file" in text
        if is_full or isinstance(error, duckdb.IOException):
            raise cache.Unwritable(text.rpartition(": ")[2]) from error
        raise

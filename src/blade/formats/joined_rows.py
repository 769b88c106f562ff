"""Join the indexed sources of a run into one set of columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from blade.formats.columns import NO_INDEX
from blade.formats.field_columns import PARENTS, rank
from blade.formats.row_decoder import MAX_FIELDS
from blade.model import PROMPT, Column, Values


class Indexed(Protocol):
    """An indexed source; `store` offers it."""

    path: Path
    n_rows: int

    @property
    def n_skipped(self) -> int: ...

    def fields(self) -> list[str]: ...
    def numbers(self, name: str) -> NDArray[Any]: ...
    def texts(self, name: str) -> tuple[NDArray[Any], tuple[str, ...]]: ...
    def field(self, name: str) -> Column: ...
    def paths(self) -> list[str]: ...
    def values(self, name: str, family: str) -> Values: ...
    def checks(self) -> tuple[NDArray[Any], dict[str, tuple[NDArray[Any], tuple[str, ...]]]]: ...
    def lines(self) -> NDArray[Any]: ...
    def row_bytes(self, row: int) -> bytes: ...
    def row_hash(self, row: int) -> int: ...


class Rows:
    """All rows of some sources, in the order of the sources."""

    def __init__(self, sources: list[Indexed]) -> None:
        self.sources = sources
        self.starts = np.cumsum([0, *[source.n_rows for source in sources]])
        self.n_rows = int(self.starts[-1])

    def numbers(self, name: str) -> NDArray[Any]:
        """A fixed column of numbers."""
        return _joined([source.numbers(name) for source in self.sources])

    def texts(self, name: str) -> tuple[NDArray[Any], tuple[str, ...]]:
        """A fixed column of texts."""
        return _recoded([source.texts(name) for source in self.sources])

    def fields(self) -> list[str]:
        """Names of the fields seen in any source; of too many the first in rank."""
        seen = {name for source in self.sources for name in source.fields()}
        if len(seen) <= MAX_FIELDS:
            return sorted(seen)
        nested = {name for name in seen if "." in name and name.partition(".")[0] in PARENTS}
        first = [sorted(names, key=rank)[:MAX_FIELDS] for names in (seen - nested, nested)]
        return sorted(first[0] + first[1])

    def field(self, name: str) -> Column:
        """A verifier or metadata field."""
        columns = [source.field(name) for source in self.sources]
        if len(columns) == 1:
            return columns[0]
        code, texts = _recoded([(column.code, column.texts) for column in columns])
        joined = [
            _joined([getattr(column, part) for column in columns]) for part in ("kind", "number", "hash")
        ]
        return Column(joined[0], joined[1], code, texts, joined[2])

    def paths(self) -> list[str]:
        """Dotted paths of the scalars inside objects."""
        return sorted({path for source in self.sources for path in source.paths()})

    def values(self, name: str, family: str) -> Values:
        """A scalar of all rows with its texts; `family` is f for fields, s for paths, t for our own."""
        parts = [source.values(name, family) for source in self.sources]
        code, texts = _recoded([(part.code, part.texts) for part in parts])
        kinds, numbers = [part.kind for part in parts], [part.number for part in parts]
        return Values(_joined(kinds), _joined(numbers), code, texts)

    def checks(self) -> tuple[NDArray[Any], dict[str, tuple[NDArray[Any], tuple[str, ...]]]]:
        """The checks inside lists and wide objects, by row."""
        parts = [source.checks() for source in self.sources]
        rows = [rows + int(start) for (rows, _), start in zip(parts, self.starts, strict=False)]
        columns = {name: _recoded([part_columns[name] for _, part_columns in parts]) for name in parts[0][1]}
        return _joined(rows), columns

    def place(self, row: int) -> tuple[Indexed, int]:
        """The source of a row and its number there."""
        number = int(self.starts.searchsorted(row, side="right")) - 1
        return self.sources[number], row - int(self.starts[number])

    def row_bytes(self, row: int) -> bytes:
        """The line of a row."""
        source, local = self.place(row)
        return source.row_bytes(local)

    def row_hash(self, row: int) -> int:
        """A hash of the content of a row."""
        source, local = self.place(row)
        return source.row_hash(local)


class Fields(Mapping[str, Column]):
    """The fields of some rows in a given order, each loaded when first asked for."""

    def __init__(self, rows: Rows, order: NDArray[Any]) -> None:
        self._rows = rows
        self._order = order
        self._names = rows.fields()
        self._loaded: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._loaded:
            if name == PROMPT:
                self._loaded[name] = self._prompt()
            elif name in self._names:
                column, order = self._rows.field(name), self._order
                self._loaded[name] = Column(
                    column.kind[order],
                    column.number[order],
                    column.code[order],
                    column.texts,
                    column.hash[order],
                )
            else:
                raise KeyError(name)
        return self._loaded[name]

    def _prompt(self) -> Column:
        hashes = self._rows.numbers("prompt_hash")[self._order].astype(np.uint64)
        n = len(hashes)
        kind = np.where(hashes == 0, 0, 5).astype(np.uint8)
        return Column(kind, np.full(n, np.nan), np.full(n, -1, np.int32), (), hashes)

    def __iter__(self) -> Iterator[str]:
        yield from self._names
        yield PROMPT

    def __len__(self) -> int:
        return len(self._names) + 1

    def __contains__(self, name: object) -> bool:
        return name in self._names or name == PROMPT


def _joined(columns: list[NDArray[Any]]) -> NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _recoded(columns: list[tuple[NDArray[Any], tuple[str, ...]]]) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Text columns of several sources under one set of codes."""
    if len(columns) == 1:
        return columns[0]
    known: dict[str, int] = {}
    known_codes = []
    for codes, texts in columns:
        table = np.array([known.setdefault(text, len(known)) for text in texts] + [-1], np.int32)
        known_codes.append(table[codes])
    return np.concatenate(known_codes), tuple(known)


__all__ = ["NO_INDEX", "Fields", "Indexed", "Rows"]

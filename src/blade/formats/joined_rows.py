"""Join the stored columns of the sources of a run into one set of columns, and open its rows by number."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from blade.formats.field_columns import BOOL, NULL, NUMBER, PARENTS, TEXT, rank
from blade.formats.row_decoder import MAX_FIELDS
from blade.model import PROMPT, Column, Values

Texts = tuple[NDArray[Any], tuple[str, ...]]  # codes, -1 for none, and what they stand for


class Stored(Protocol):
    """Some rows of a source as columns; `tables` offers it."""

    n_rows: int

    @property
    def names(self) -> Collection[str]: ...
    def get(self, name: str, dtype: str, fill: Any) -> NDArray[Any]: ...  # `fill` where there is no such column
    def texts(self, name: str) -> list[str]: ...  # what the codes of a column stand for


class Indexed(Protocol):
    """An indexed source; `tables` offers it."""

    path: Path
    n_rows: int

    @property
    def parts(self) -> Sequence[Stored]: ...
    @property
    def lines(self) -> NDArray[Any]: ...
    def row_bytes(self, row: int) -> bytes: ...


class Rows:
    """All rows of some sources, in the order of the sources."""

    parts: Sequence[Stored]

    def __init__(self, sources: Sequence[Indexed]) -> None:
        self.sources = sources
        self.parts = [part for source in sources for part in source.parts]
        self.starts = np.cumsum([0, *[source.n_rows for source in sources]])
        self.n_rows = int(self.starts[-1])

    def numbers(self, name: str) -> NDArray[Any]:
        """A fixed column of numbers."""
        return self._column(name, "<f8", np.nan)

    def texts(self, name: str) -> Texts:
        """A fixed column of texts: codes, -1 for none, and what they stand for."""
        return self._coded(f"t.{name}")

    def fields(self) -> list[str]:
        """Names of the verifier and metadata fields seen in any row; of too many the first in rank."""
        seen = self._names("f.")
        if len(seen) <= MAX_FIELDS:
            return sorted(seen)
        nested = {name for name in seen if "." in name and name.partition(".")[0] in PARENTS}
        return sorted(name for names in (seen - nested, nested) for name in sorted(names, key=rank)[:MAX_FIELDS])

    def paths(self) -> list[str]:
        """Dotted paths of the scalars inside objects, seen in any row."""
        return sorted(self._names("s."))

    def _names(self, family: str) -> set[str]:
        names = {name for part in self.parts for name in part.names if name.startswith(family)}
        return {name[len(family) : -len(":kind")] for name in names if name.endswith(":kind")}

    def field(self, name: str) -> Column:
        """A verifier or metadata field, each value with one hash: of its text, its bits or its raw JSON."""
        kind, number, code, texts = self._scalars(f"f.{name}")
        hashes = self._column(f"f.{name}:hash", "<u8", 0).copy()
        known = [xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) for text in texts]
        is_text = (kind == TEXT) & (code >= 0)
        hashes[is_text] = np.array([*known, 0], np.uint64)[code[is_text]]
        is_number = (kind == BOOL) | (kind == NUMBER)
        bits = (number[is_number] + 0.0).view(np.uint64)
        hashes[is_number] = (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + kind[is_number]
        hashes[kind == NULL] = 1
        return Column(kind, number, code, texts, hashes)

    def values(self, name: str, family: str) -> Values:
        """A scalar of all rows with its texts, of long ones how they begin; `family` is f for fields, s for paths."""
        key = f"{family}.{name}"
        kind, number, code, texts = self._scalars(key)
        head_code, heads = self._coded(f"{key}:head")
        long = np.flatnonzero((code < 0) & (head_code >= 0))
        if not long.size:
            return Values(kind, number, code, texts)
        # two long texts that begin alike are two values
        hashes = self._column(f"{key}:hash", "<u8", 0)[long]
        known, first, each = np.unique(hashes, return_index=True, return_inverse=True)
        beginning = head_code[long[first]]
        alike = np.bincount(beginning, minlength=len(heads)) > 1
        longs = [
            f"{heads[place]} #{value & 0xFFFFFFFF:08x}" if alike[place] else heads[place]
            for place, value in zip(beginning.tolist(), known.tolist(), strict=True)
        ]
        code = code.copy()
        code[long] = each + len(texts)
        return Values(kind, number, code, (*texts, *longs))

    def checks(self) -> tuple[NDArray[Any], dict[str, Texts]]:
        """The checks inside lists and wide objects: their rows, and path, name, status and value as codes."""
        starts = np.cumsum([0, *[part.n_rows for part in self.parts]]).tolist()
        none = np.zeros(0, np.int64)
        rows = [part.get("c.row", "<i8", 0) if "c.row" in part.names else none for part in self.parts]
        counts = list(map(len, rows))
        rows = [here + start for here, start in zip(rows, starts, strict=False)]
        names = ("path", "name", "status", "value")
        return _joined(rows, "<i8"), {name: self._coded(f"c.{name}", counts) for name in names}

    def _scalars(self, key: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[str, ...]]:
        kind, number = self._column(f"{key}:kind", "u1", 0), self._column(f"{key}:number", "<f8", np.nan)
        return kind, number, *self._coded(key)

    def _column(self, name: str, dtype: str, fill: Any) -> NDArray[Any]:
        return _joined([part.get(name, dtype, fill) for part in self.parts], dtype)

    def _coded(self, key: str, counts: Sequence[int | None] | None = None) -> Texts:
        """A column of texts of all parts under one set of codes; of each part all entries, or so many."""
        known: dict[str, int] = {}
        columns = []
        for part, count in zip(self.parts, counts or [None] * len(self.parts), strict=True):
            codes = part.get(f"{key}:code", "<i4", -1)[:count]
            here = np.array([known.setdefault(text, len(known)) for text in part.texts(key)] + [-1], np.int32)
            columns.append(here[codes])  # code -1 picks the last entry, -1
        return _joined(columns, "<i4"), tuple(known)

    def place(self, row: int) -> tuple[Indexed, int]:
        """The source of a row and its number there."""
        number = int(self.starts.searchsorted(row, side="right")) - 1
        return self.sources[number], row - int(self.starts[number])

    def row_bytes(self, row: int) -> bytes:
        """The line of a row."""
        source, local = self.place(row)
        return source.row_bytes(local)

    def row_hash(self, row: int) -> int:
        return xxhash.xxh3_64_intdigest(self.row_bytes(row))


class Fields(Mapping[str, Column]):
    """The fields of some rows in a given order, each loaded when first asked for."""

    def __init__(self, rows: Rows, order: NDArray[Any]) -> None:
        self._rows, self._order = rows, order
        self._names = [*rows.fields(), PROMPT]
        self._loaded: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._loaded:
            whole, order = self._prompts() if name == PROMPT else self._rows.field(name), self._order
            self._loaded[name] = Column(
                whole.kind[order], whole.number[order], whole.code[order], whole.texts, whole.hash[order]
            )
        return self._loaded[name]

    def _prompts(self) -> Column:
        hashes = self._rows.numbers("prompt_hash").astype(np.uint64)
        n = len(hashes)
        kind = np.where(hashes == 0, 0, 5).astype(np.uint8)
        return Column(kind, np.full(n, np.nan), np.full(n, -1, np.int32), (), hashes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def _joined(columns: list[NDArray[Any]], dtype: str) -> NDArray[Any]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns) if columns else np.empty(0, dtype)

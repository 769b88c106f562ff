"""Read the columns of an index over all its parts, and open single rows of its source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from blade.errors import Unreadable
from blade.model import Column, Skipped, Values
from blade.tables.blocks import BlockReader
from blade.tables.manifest import Manifest
from blade.tables.parts import OpenPart

_TEXT_KIND = 4


class Index:
    """One indexed source: columns by name, rows by number."""

    def __init__(self, folder: Path, path: Path, known: Manifest) -> None:
        self.path = path
        self.manifest = known
        self._parts = [OpenPart(folder / part.file, part) for part in known.parts if part.rows]
        self._blocks = BlockReader(folder / known.blocks) if known.blocks else None
        self.n_rows = sum(part.entry.rows for part in self._parts)
        self._file: int | None = None
        self._places: tuple[NDArray[Any], NDArray[Any]] | None = None

    @property
    def n_skipped(self) -> int:
        return sum(part.n_skipped for part in self.manifest.parts)

    def skipped(self) -> list[Skipped]:
        """The lines that could not be read, the first thousand of each part."""
        return [
            Skipped(str(self.path), part.first_line + line + 1, reason)
            for part in self.manifest.parts
            for line, reason in part.skipped
        ]

    def fields(self) -> list[str]:
        """Names of the verifier and metadata fields seen in any row."""
        names = {
            name[2 : -len(":kind")]
            for part in self._parts
            for name in part.names
            if name.startswith("f.") and name.endswith(":kind")
        }
        return sorted(names)

    def numbers(self, name: str) -> NDArray[Any]:
        """A fixed column of numbers."""
        return self._joined([part.get(name, "<f8", np.nan) for part in self._parts], "<f8")

    def lines(self) -> NDArray[Any]:
        """The 1-based line of each row."""
        return self._joined(
            [part.get("line", "<i8", 0) + part.entry.first_line + 1 for part in self._parts], "<i8"
        )

    def texts(self, name: str) -> tuple[NDArray[Any], tuple[str, ...]]:
        """A fixed column of texts: codes, -1 for none, and what they stand for."""
        return self._coded(f"t.{name}")

    def field(self, name: str) -> Column:
        """A verifier or metadata field over all rows."""
        key = f"f.{name}"
        kind = self._joined([part.get(f"{key}:kind", "u1", 0) for part in self._parts], "u1")
        number = self._joined([part.get(f"{key}:number", "<f8", np.nan) for part in self._parts], "<f8")
        code, texts = self._coded(key)
        hashed = self._joined([part.get(f"{key}:hash", "<u8", 0) for part in self._parts], "<u8")
        return Column(kind, number, code, texts, _hashes(kind, number, code, texts, hashed))

    def paths(self) -> list[str]:
        """Dotted paths of the scalars inside objects, seen in any row."""
        ending = ":kind"
        names = {name for part in self._parts for name in part.names if name.startswith("s.")}
        return sorted(name[2 : -len(ending)] for name in names if name.endswith(ending))

    def values(self, name: str, family: str) -> Values:
        """A scalar over all rows with its texts, of long ones how they begin; `family` is f, s or t."""
        key = f"{family}.{name}"
        kind = self._joined([part.get(f"{key}:kind", "u1", 0) for part in self._parts], "u1")
        number = self._joined([part.get(f"{key}:number", "<f8", np.nan) for part in self._parts], "<f8")
        code, texts = self._coded(key)
        head_code, heads = self._coded(f"{key}:head")
        held = np.flatnonzero((code < 0) & (head_code >= 0))
        if not held.size:
            return Values(kind, number, code, texts)
        # two long texts that begin alike are two values
        hashes = self._joined([part.get(f"{key}:hash", "<u8", 0) for part in self._parts], "<u8")[held]
        known, first, each = np.unique(hashes, return_index=True, return_inverse=True)
        beginning = head_code[held[first]]
        alike = np.bincount(beginning, minlength=len(heads)) > 1
        longs = [
            f"{heads[place]} #{value & 0xFFFFFFFF:08x}" if alike[place] else heads[place]
            for place, value in zip(beginning.tolist(), known.tolist(), strict=True)
        ]
        code = code.copy()
        code[held] = each + len(texts)
        return Values(kind, number, code, (*texts, *longs))

    def checks(self) -> tuple[NDArray[Any], dict[str, tuple[NDArray[Any], tuple[str, ...]]]]:
        """The checks inside lists and wide objects: their rows, and path, name, status and value as codes."""
        rows, start = [], 0
        for part in self._parts:
            rows.append(part.get("c.row", "<i8", 0)[: part.length("c.row")] + start)
            start += part.entry.rows
        columns = {name: self._coded(f"c.{name}", "c.row") for name in ("path", "name", "status", "value")}
        return self._joined(rows, "<i8"), columns

    def _coded(self, key: str, like: str | None = None) -> tuple[NDArray[Any], tuple[str, ...]]:
        """A column of texts; one that has an entry for each of `like` instead of one for each row."""
        known: dict[str, int] = {}
        columns = []
        for part in self._parts:
            codes = part.get(f"{key}:code", "<i4", -1)
            codes = codes if like is None else codes[: part.length(like)]
            here = np.array([known.setdefault(text, len(known)) for text in part.texts(key)] + [-1], np.int32)
            columns.append(here[codes])  # code -1 picks the last entry, -1
        return self._joined(columns, "<i4"), tuple(known)

    @staticmethod
    def _joined(columns: list[NDArray[Any]], dtype: str) -> NDArray[Any]:
        if len(columns) == 1:
            return columns[0]
        return np.concatenate(columns) if columns else np.empty(0, dtype)

    def row_bytes(self, row: int) -> bytes:
        """The line of one row, read from the source."""
        if self._places is None:
            self._places = (self.numbers("offset"), self.numbers("length"))
        offset, length = int(self._places[0][row]), int(self._places[1][row])
        try:
            if self._blocks is not None:
                return self._blocks.read(offset, length)
            if self._file is None:
                self._file = os.open(self.path, os.O_RDONLY)
            return os.pread(self._file, length, offset)
        except OSError as error:
            raise unreadable(self.path, error) from error
        except ValueError as error:
            raise Unreadable(
                f"the index of {self.path} is damaged: {error}",
                "empty the cache with `blade doctor --clean`",
                "unreadable-file",
            ) from error

    def row_hash(self, row: int) -> int:
        """A hash of the content of one row."""
        return xxhash.xxh3_64_intdigest(self.row_bytes(row))


def unreadable(path: Path, error: OSError) -> Unreadable:
    """The operating system would not let us read a source."""
    return Unreadable(
        f"cannot read {path}: {error.strerror or error}",
        "check that the file is still there and that you may read it",
        "unreadable-file",
    )


def _hashes(
    kind: NDArray[Any], number: NDArray[Any], code: NDArray[Any], texts: tuple[str, ...], hashed: NDArray[Any]
) -> NDArray[Any]:
    """One hash per value: of the text, of the bits of a number, or of the raw JSON of anything else."""
    found = hashed.copy()
    table = np.array(
        [xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) for text in texts] + [0], np.uint64
    )
    is_text = (kind == _TEXT_KIND) & (code >= 0)
    found[is_text] = table[code[is_text]]
    is_number = (kind == 2) | (kind == 3)
    bits = (number[is_number] + 0.0).view(np.uint64)
    found[is_number] = (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + kind[is_number]
    found[kind == 1] = 1
    return found

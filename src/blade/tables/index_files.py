"""Write the files of an index, and read from them: columns over all parts, and single rows of the source."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash
import zstandard
from numpy.typing import NDArray

from blade.errors import Unreadable
from blade.model import Column, Part, Skipped, Values
from blade.tables.cache import Stamp, writing

# A part is one line of JSON, column -> (type, start, bytes), and then the columns one after the other.
Header = dict[str, tuple[str, int, int]]
Texts = tuple[NDArray[Any], tuple[str, ...]]  # codes, -1 for none, and what they stand for
_TEXTS = "json"  # the type of a list of texts
_TEXT_KIND = 4
_END = 16  # bytes at the end of the blocks: where their table starts, and its digest


class PartEntry(msgspec.Struct, frozen=True):
    """What the manifest says of a part."""

    file: str
    digest: str
    source: str  # digest of the lines that it was made of
    rows: int
    lines: int
    first_line: int  # of the part in its source, 0-based
    start: int
    end: int
    open_ended: bool
    n_skipped: int
    skipped: list[tuple[int, str]]


class Manifest(msgspec.Struct, frozen=True):
    """What an index knows of its source."""

    made_by: str  # what wrote the parts
    stamp: Stamp  # of the source before it was read; what a writer adds meanwhile is left for the next time
    head: str
    tail: str
    blocks: str = ""  # the file of inflated lines, for a source that can only be read from the front
    parts: list[PartEntry] = []

    @property
    def size(self) -> int:
        return self.stamp[0]


def write_part(part: Part, folder: Path) -> PartEntry:
    """Keep `part` in `folder` under a new name."""
    header: Header = {}
    pieces: list[Any] = []
    start = 0
    columns = {name: (values.dtype.str, np.ascontiguousarray(values).data) for name, values in part.columns.items()}
    texts = {f"{name}:texts": (_TEXTS, memoryview(_spelled(known))) for name, known in part.texts.items()}
    for name, (kind, data) in {**columns, **texts}.items():
        header[name] = (kind, start, data.nbytes)
        pieces.append(data)
        start += data.nbytes
    name, digest = _written([json.dumps(header).encode() + b"\n", *pieces], folder)
    return PartEntry(name, digest, part.digest, part.n_rows, part.n_lines, 0, part.start, part.end, part.open_ended,
                     part.n_skipped, list(part.skipped))  # fmt: skip


def _spelled(texts: list[str]) -> bytes:
    try:
        return msgspec.json.encode(texts)
    except UnicodeEncodeError:  # half of a surrogate pair is a text too: in ASCII
        return json.dumps(texts).encode()


def _written(pieces: list[Any], folder: Path) -> tuple[str, str]:
    """Write the pieces to a new file; its name and digest."""
    digest = xxhash.xxh3_64()
    with writing():
        handle, name = tempfile.mkstemp(dir=folder, prefix="part-")
        try:
            with os.fdopen(handle, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                    digest.update(piece)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    return Path(name).name, digest.hexdigest()


class OpenPart:
    """A part on disk, its columns read when asked for; ValueError if it is not as it was written."""

    def __init__(self, path: Path, entry: PartEntry) -> None:
        self.entry = entry
        # the handle stays open, so the columns stay readable if another process replaces the index
        self._file = path.open("rb")
        if hashlib.file_digest(self._file, xxhash.xxh3_64).hexdigest() != entry.digest:
            raise ValueError(f"{path} is damaged")
        self._file.seek(0)
        self._header = msgspec.json.decode(self._file.readline(), type=Header)
        self._first = self._file.tell()
        self.names = self._header.keys()

    def get(self, name: str, dtype: str, fill: Any) -> NDArray[Any]:
        """A column, or `fill` for all rows if the part has none of that name."""
        if name in self._header:
            return np.frombuffer(self._read(name), self._header[name][0])
        return np.full(self.entry.rows, fill, dtype)

    def length(self, name: str) -> int:
        """How many entries a column has; 0 if there is none of that name."""
        dtype, _, size = self._header.get(name, ("u1", 0, 0))
        return size // np.dtype(dtype).itemsize

    def texts(self, name: str) -> list[str]:
        """What the codes of a text column stand for."""
        key = f"{name}:texts"
        return msgspec.json.decode(self._read(key), type=list[str]) if key in self._header else []

    def _read(self, name: str) -> bytes:
        _, start, length = self._header[name]
        return os.pread(self._file.fileno(), length, self._first + start)


# -- inflated lines -------------------------------------------------------------------------------


class BlockWriter:
    """Appends blocks of whole lines of a compressed source, each compressed on its own; a table stands last."""

    def __init__(self, folder: Path) -> None:
        with writing():
            handle, name = tempfile.mkstemp(dir=folder, prefix="blocks-")
        self.name = Path(name).name
        self._file = os.fdopen(handle, "wb")
        self._table: list[tuple[int, int, int]] = []
        self._zstd = zstandard.ZstdCompressor(level=1, write_checksum=True)

    def add(self, data: bytes, offset: int) -> None:
        """Keep `data`, which stands at `offset` of the inflated source."""
        packed = self._zstd.compress(data)
        with writing():
            self._table.append((offset, self._file.tell(), len(packed)))
            self._file.write(packed)

    def close(self) -> None:
        """Write the table; what was added can be read from now on."""
        table = np.array(self._table, "<i8").tobytes()
        with writing(), self._file:
            start = self._file.tell()
            self._file.write(table)
            self._file.write(start.to_bytes(8, "little") + xxhash.xxh3_64_digest(table))


class BlockReader:
    """Opens lines of the inflated source by their offset; ValueError if they are not as they were written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        handle = self._file.fileno()
        size = os.fstat(handle).st_size
        last = os.pread(handle, _END, max(0, size - _END))
        start = int.from_bytes(last[:8], "little")
        table = os.pread(handle, max(0, size - _END - start), start) if start <= size else b""
        if last[8:] != xxhash.xxh3_64_digest(table):
            raise ValueError(f"{path} is damaged")
        self._table = np.frombuffer(table, "<i8").reshape(-1, 3)
        self._unzstd = zstandard.ZstdDecompressor()
        self._last: tuple[int, bytes] = (-1, b"")

    def read(self, offset: int, length: int) -> bytes:
        """The bytes of one line; lines never cross blocks."""
        number = int(self._table[:, 0].searchsorted(offset, side="right")) - 1
        start, position, size = map(int, self._table[number])
        if self._last[0] != number:
            try:
                data = self._unzstd.decompress(os.pread(self._file.fileno(), size, position))
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from error
            self._last = (number, data)
        return self._last[1][offset - start : offset - start + length]


# -- an open index --------------------------------------------------------------------------------


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
        return self._names("f.")

    def paths(self) -> list[str]:
        """Dotted paths of the scalars inside objects, seen in any row."""
        return self._names("s.")

    def _names(self, family: str) -> list[str]:
        names = {name for part in self._parts for name in part.names if name.startswith(family)}
        return sorted(name[len(family) : -len(":kind")] for name in names if name.endswith(":kind"))

    def numbers(self, name: str) -> NDArray[Any]:
        """A fixed column of numbers."""
        return self._column(name, "<f8", np.nan)

    def lines(self) -> NDArray[Any]:
        """The 1-based line of each row."""
        return _joined([part.get("line", "<i8", 0) + part.entry.first_line + 1 for part in self._parts], "<i8")

    def texts(self, name: str) -> Texts:
        """A fixed column of texts: codes, -1 for none, and what they stand for."""
        return self._coded(f"t.{name}")

    def field(self, name: str) -> Column:
        """A verifier or metadata field over all rows."""
        kind, number, code, texts = self._scalars(f"f.{name}")
        hashes = self._column(f"f.{name}:hash", "<u8", 0)
        return Column(kind, number, code, texts, _hashes(kind, number, code, texts, hashes))

    def values(self, name: str, family: str) -> Values:
        """A scalar over all rows with its texts, of long ones how they begin; `family` is f, s or t."""
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
        rows, start = [], 0
        for part in self._parts:
            rows.append(part.get("c.row", "<i8", 0)[: part.length("c.row")] + start)
            start += part.entry.rows
        columns = {name: self._coded(f"c.{name}", "c.row") for name in ("path", "name", "status", "value")}
        return _joined(rows, "<i8"), columns

    def _scalars(self, key: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[str, ...]]:
        kind, number = self._column(f"{key}:kind", "u1", 0), self._column(f"{key}:number", "<f8", np.nan)
        return kind, number, *self._coded(key)

    def _column(self, name: str, dtype: str, fill: Any) -> NDArray[Any]:
        return _joined([part.get(name, dtype, fill) for part in self._parts], dtype)

    def _coded(self, key: str, like: str | None = None) -> Texts:
        """A column of texts; one that has an entry for each of `like` instead of one for each row."""
        known: dict[str, int] = {}
        columns = []
        for part in self._parts:
            codes = part.get(f"{key}:code", "<i4", -1)
            codes = codes if like is None else codes[: part.length(like)]
            here = np.array([known.setdefault(text, len(known)) for text in part.texts(key)] + [-1], np.int32)
            columns.append(here[codes])  # code -1 picks the last entry, -1
        return _joined(columns, "<i4"), tuple(known)

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


def _joined(columns: list[NDArray[Any]], dtype: str) -> NDArray[Any]:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.empty(0, dtype)


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
    hashes = hashed.copy()
    known = [xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass")) for text in texts]
    is_text = (kind == _TEXT_KIND) & (code >= 0)
    hashes[is_text] = np.array([*known, 0], np.uint64)[code[is_text]]
    is_number = (kind == 2) | (kind == 3)
    bits = (number[is_number] + 0.0).view(np.uint64)
    hashes[is_number] = (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + kind[is_number]
    hashes[kind == 1] = 1
    return hashes

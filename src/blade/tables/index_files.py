"""Write the files of an index, and read from them: columns over all parts, and single rows of the source."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import xxhash
import zstandard
from numpy.typing import NDArray

from blade.errors import Unreadable
from blade.formats.joined_rows import Rows
from blade.formats.lines import digest, unreadable
from blade.model import Part, Skipped
from blade.tables import cache
from blade.tables.cache import Stamp, write_new, writing

# A part is one line of JSON, column -> (type, start, bytes), and then the columns one after the other.
Header = dict[str, tuple[str, int, int]]
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
    blocks: str = ""  # the file of inflated lines, for a source that can only be read from the front
    parts: list[PartEntry] = []

    @property
    def size(self) -> int:
        return self.stamp[0]


def write_part(part: Part, folder: Path) -> PartEntry:
    """Keep `part` in `folder` under a new name."""
    columns = {name: (values.dtype.str, np.ascontiguousarray(values).data) for name, values in part.columns.items()}
    columns |= {f"{name}:texts": ("json", memoryview(_spelled(known))) for name, known in part.texts.items()}
    ends = np.cumsum([data.nbytes for _, data in columns.values()]).tolist()
    header: Header = {
        name: (kind, end - data.nbytes, data.nbytes)
        for (name, (kind, data)), end in zip(columns.items(), ends, strict=True)
    }
    pieces: list[Any] = [json.dumps(header).encode() + b"\n", *(data for _, data in columns.values())]
    digest = xxhash.xxh3_64()
    for piece in pieces:
        digest.update(piece)
    with writing():
        name = write_new(folder, "part-", pieces)
    return PartEntry(Path(name).name, digest.hexdigest(), part.digest, part.n_rows, part.n_lines, 0, part.start,
                     part.end, part.open_ended, part.n_skipped, list(part.skipped))  # fmt: skip


def _spelled(texts: list[str]) -> bytes:
    try:
        return msgspec.json.encode(texts)
    except UnicodeEncodeError:  # half of a surrogate pair is a text too: in ASCII
        return json.dumps(texts).encode()


class OpenPart:
    """A part on disk, its columns read when asked for; ValueError if it is not as it was written."""

    def __init__(self, path: Path, entry: PartEntry) -> None:
        self.entry, self.n_rows = entry, entry.rows
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
        return np.full(self.n_rows, fill, dtype)

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
            packed = os.pread(self._file.fileno(), size, position)
            try:
                self._last = (number, self._unzstd.decompress(packed))
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from error
        return self._last[1][offset - start : offset - start + length]


# -- an open index --------------------------------------------------------------------------------


class Index(Rows):
    """One indexed source: columns by name, rows by number."""

    def __init__(self, folder: Path, path: Path, known: Manifest) -> None:
        self.path = path
        self.manifest = known
        self.parts = [OpenPart(folder / part.file, part) for part in known.parts if part.rows]
        self.n_rows = sum(part.n_rows for part in self.parts)
        super().__init__([self])
        self._blocks = BlockReader(folder / known.blocks) if known.blocks else None
        self._file: int | None = None
        self._seen = known.stamp[:4]

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

    @cached_property
    def lines(self) -> NDArray[Any]:
        """The 1-based line of each row."""
        parts = [part for part in self.manifest.parts if part.rows]
        first = np.repeat([part.first_line + 1 for part in parts], [part.rows for part in parts])
        return self.numbers("line") + first if parts else np.empty(0, np.int64)

    @cached_property
    def _places(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.numbers("offset"), self.numbers("length")

    def holds(self) -> bool:
        """Whether the lines lie in the source as they were read; lines that were added do no harm."""
        stamp = self.manifest.stamp
        if not stamp[3]:  # standard input or a pipe
            return True
        try:
            now = cache.stamp_of(self.path)
            if now == stamp or self.manifest.blocks:  # of a compressed source the lines are kept
                return now[3] == stamp[3] and now[0] >= stamp[0]
            finished = [part for part in self.manifest.parts if part.rows and not part.open_ended]
            return all(digest(self.path, part.start, part.end) == part.source for part in finished)
        except OSError:
            return False

    def refuse_changed(self) -> None:
        """Refuse a source whose lines became others since they were read."""
        if not self.holds():
            hint = "run the command again; a file that is still being written should only grow"
            raise Unreadable(f"{self.path} changed while it was read", hint, "unreadable-file")

    def row_bytes(self, row: int) -> bytes:
        """The line of one row, read from the source."""
        offset, length = (int(places[row]) for places in self._places)
        try:
            if self._blocks is not None:
                return self._blocks.read(offset, length)
            if self._file is None:
                self._file = os.open(self.path, os.O_RDONLY)
            status = os.fstat(self._file)
            now = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            if now != self._seen and (now[3] != self._seen[3] or now[0] <= self._seen[0]):
                self.refuse_changed()
            self._seen = now
            return os.pread(self._file, length, offset)
        except OSError as error:
            raise unreadable(self.path, error) from error
        except ValueError as error:
            hint = "empty the cache with `blade doctor --clean`"
            raise Unreadable(f"the index of {self.path} is damaged: {error}", hint, "unreadable-file") from error

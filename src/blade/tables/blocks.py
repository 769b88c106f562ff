"""Keep the inflated lines of a compressed source so that one line opens at once."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import xxhash
import zstandard

from blade.tables.cache import writing

_END = 16  # bytes: where the table starts, and its digest


class BlockWriter:
    """Appends blocks of whole lines, each compressed on its own; a table of them stands last."""

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

"""Keep small pieces of text on disk, to be read again in another order."""

from __future__ import annotations

import mmap
import tempfile
from array import array


class Spool:
    """Pieces in the order they came, in a file without a name; only where they lie is held in memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="blade-", buffering=1 << 20)  # noqa: SIM115 (kept open)
        self._ends = array("q", [0])
        self._map: mmap.mmap | None = None

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, piece: bytes) -> int:
        """Its number."""
        self._file.write(piece)
        self._ends.append(self._ends[-1] + len(piece))
        return len(self._ends) - 2

    def __getitem__(self, number: int) -> bytes:
        first, end = self._ends[number], self._ends[number + 1]
        if first == end:
            return b""
        if self._map is None or end > len(self._map):
            self._file.flush()
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return self._map[first:end]

    def close(self) -> None:
        if self._map is not None:
            self._map.close()
        self._file.close()

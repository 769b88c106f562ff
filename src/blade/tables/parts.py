"""Write a `Part` to one file and read its columns back."""

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
from numpy.typing import NDArray

from blade.model import Part
from blade.tables.cache import writing

# A part is one line of JSON, column -> (type, start, bytes), and then the columns one after the other.
Header = dict[str, tuple[str, int, int]]
_TEXTS = "json"  # the type of a list of texts


class PartEntry(msgspec.Struct, frozen=True):
    """What the manifest says of a part."""

    file: str
    digest: str
    source: str  # of the bytes that it was made of
    rows: int
    lines: int
    first_line: int  # of the part in its source, 0-based
    start: int
    end: int
    open_ended: bool
    n_skipped: int
    skipped: list[tuple[int, str]]


def write_part(part: Part, folder: Path, source: str = "") -> PartEntry:
    """Keep `part` in `folder` under a new name; `source` is the digest of the bytes that it was made of."""
    header: Header = {}
    pieces: list[Any] = []
    start = 0
    for name, values in part.columns.items():
        header[name] = (values.dtype.str, start, values.nbytes)
        pieces.append(np.ascontiguousarray(values).data)
        start += values.nbytes
    for name, texts in part.texts.items():
        data = _spelled(texts)
        header[f"{name}:texts"] = (_TEXTS, start, len(data))
        pieces.append(data)
        start += len(data)
    name, digest = _kept([json.dumps(header).encode() + b"\n", *pieces], folder)
    return PartEntry(name, digest, source, part.n_rows, part.n_lines, 0, part.start, part.end, part.open_ended,
                     part.n_skipped, list(part.skipped))  # fmt: skip


def _spelled(texts: list[str]) -> bytes:
    try:
        return msgspec.json.encode(texts)
    except UnicodeEncodeError:  # half of a surrogate pair is a text too: in ASCII
        return json.dumps(texts).encode()


def _kept(pieces: list[Any], folder: Path) -> tuple[str, str]:
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
        if name not in self._header:
            return 0
        dtype, _, size = self._header[name]
        return size // np.dtype(dtype).itemsize

    def texts(self, name: str) -> list[str]:
        """What the codes of a text column stand for."""
        key = f"{name}:texts"
        return msgspec.json.decode(self._read(key), type=list[str]) if key in self._header else []

    def _read(self, name: str) -> bytes:
        _, start, length = self._header[name]
        return os.pread(self._file.fileno(), length, self._first + start)

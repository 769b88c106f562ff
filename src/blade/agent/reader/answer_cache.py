"""Keep accepted answers as JSON lines, each at once: what was paid for is not asked again."""

from __future__ import annotations

import contextlib
import fcntl
import os
from hashlib import blake2b
from pathlib import Path

import msgspec

from blade.agent.reader.questions import Answer
from blade.agent.reader.spending import Usage

_MOST = 256 << 20  # bytes: a file beyond this is not what its name says


class Line(msgspec.Struct, frozen=True):
    """An answer under the key of its question."""

    key: str
    answer: Answer
    usage: Usage


_DECODER = msgspec.json.Decoder(Line)


class Kept:
    """The answers of one model at one endpoint."""

    def __init__(self, folder: Path, model: str, host: str) -> None:
        name = blake2b(f"{host}\0{model}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        self.path = folder / f"{name}.jsonl"
        self._held: dict[str, Line] | None = None

    def get(self, key: str) -> Answer | None:
        """The last answer that was kept under a key."""
        if self._held is None:
            self._held = {line.key: line for line in _lines(self.path)}
        entry = self._held.get(key)
        return entry.answer if entry else None

    def keep(self, key: str, answer: Answer, usage: Usage) -> bool:
        """Append an answer whole; False where the folder cannot be written."""
        line = Line(key, answer, usage)
        try:
            _append(self.path, msgspec.json.encode(line) + b"\n")
        except (OSError, UnicodeError):  # half a character of a broken row cannot be written as JSON
            return False
        if self._held is not None:
            self._held[key] = line
        return True


def _append(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # what is quoted is as private as the rollouts: only its owner reads it
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        with contextlib.suppress(
            OSError
        ):  # a file system without locks: lines are still written in one piece
            fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file).st_size
        # a line that was torn when a process was killed must not swallow ours
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        try:
            left = memoryview((b"\n" if torn else b"") + content)
            while left:
                left = left[os.write(file, left) :]
        except BaseException:
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)


def _lines(path: Path) -> list[Line]:
    """The whole lines of a file; one that was torn, or written in another form, is asked again."""
    lines = []
    try:
        if path.stat().st_size > _MOST:
            return []
        content = path.read_bytes()
    except OSError:
        return []
    for line in content.split(b"\n"):
        with contextlib.suppress(msgspec.DecodeError):
            lines.append(_DECODER.decode(line))
    return lines

"""Keep judgements as JSON lines beside a run: appended whole under a lock, never rewritten."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from blade.errors import Unreadable
from blade.model import Judgement

_MOST = 64 << 20  # bytes: a file beyond this is not what its name says
_DECODER = msgspec.json.Decoder(Judgement)


class Withdrawn(msgspec.Struct, frozen=True):
    """A line that takes a judgement back."""

    withdrawn: str  # its id
    by: str
    at: str


def withdrawal(one: Judgement, by: str, at: str) -> Withdrawn:
    """The line that takes a judgement back."""
    return Withdrawn(one.id, by, at)


def append(path: Path, lines: Sequence[Judgement | Withdrawn]) -> None:
    """Add all of the lines or none; whoever else writes or reads waits meanwhile."""
    if not lines:
        return
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        with _locked(path) as file:
            size = os.fstat(file).st_size
            # a line that was torn when a machine went down must not swallow ours
            torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
            _whole(file, (b"\n" if torn else b"") + content, size)
    except OSError as error:
        raise Unreadable(
            f"cannot write {path}: {error.strerror}",
            "judgements are kept beside the rollouts; make that folder writable, or copy the run",
            "cannot-write",
        ) from error


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)  # and with it the lock


def _whole(file: int, content: bytes, size: int) -> None:
    """All bytes to the disk, or the file as it was."""
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    except BaseException:
        os.ftruncate(file, size)
        raise


def read(path: Path) -> tuple[tuple[Judgement, ...], int]:
    """The judgements of a file that were not taken back, in the order of their lines; and how many lines are
    none."""
    found: dict[str, Judgement] = {}
    bad = 0
    for line in _lines(path):
        try:
            one = _DECODER.decode(line)
            found.pop(one.id, None)  # given again: it counts from now
            found[one.id] = one
        except msgspec.DecodeError:
            try:
                found.pop(msgspec.json.decode(line, type=Withdrawn).withdrawn, None)
            except msgspec.DecodeError:
                bad += 1
    return tuple(found.values()), bad


def _lines(path: Path) -> Iterable[bytes]:
    try:
        if path.stat().st_size > _MOST:
            raise Unreadable(
                f"{path} is too large", "it holds one line for each judgement", "unreadable-file"
            )
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            content = file.read()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise Unreadable(
            f"cannot read {path}: {error.strerror}", "make it readable, or move it away", "unreadable-file"
        ) from error
    return (line for line in content.split(b"\n") if line.strip())


def held(judgements: Sequence[Judgement], task: str, by: str) -> tuple[Judgement, ...]:
    """What an author said of a task."""
    return tuple(one for one in judgements if one.task == task and one.by == by)

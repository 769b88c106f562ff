"""Keep judgements as JSON lines beside a run: appended whole under a lock, never rewritten."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from blade.errors import Unreadable
from blade.model import Judgement

MOST = 64 << 20  # bytes: a file beyond this is not what its name says
_PATIENCE = 30.0  # seconds that a writer waits for another
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # file systems without them
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
    """Add all of the lines or none; what is an author's last word on its task already is not said again."""
    try:
        with _locked(path) as file:
            held = _content(file)
            found, _ = _read(held)
            news = b"".join(msgspec.json.encode(line) + b"\n" for line in _news(found, lines))
            # a line that was torn when a machine went down must not swallow ours
            torn = bool(held) and not held.endswith(b"\n")
            _whole(file, (b"\n" if torn else b"") + news if news else b"", len(held))
    except OSError as error:
        raise Unreadable(
            f"cannot write {path}: {error.strerror or error}",
            "judgements are kept beside the rollouts; make that folder writable, or copy the run",
            "cannot-write",
        ) from error


def _news(
    found: Sequence[Judgement], lines: Sequence[Judgement | Withdrawn]
) -> Iterator[Judgement | Withdrawn]:
    last = {(one.agent, one.task, one.by): one.id for one in found}
    for line in lines:
        if isinstance(line, Judgement):
            key = (line.agent, line.task, line.by)
            if last.get(key) == line.id:
                continue
            last[key] = line.id
        yield line


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The file, alone; never through a link, and nothing but a regular file."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.open(path, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        _wait(file)
        yield file
    finally:
        os.close(file)  # and with it the lock


def _wait(file: int) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return  # a line is written in one go all the same
            if error.errno not in (errno.EAGAIN, errno.EACCES) or time.monotonic() > end:
                raise OSError(error.errno, "somebody else holds it") from error
        time.sleep(0.02)


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
    """The judgements of a file that were not taken back, each author's last word last; and how many lines are
    none. A line that is being written is not there yet."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return (), 0
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise _unreadable(path, "it is no regular file")
        content = _content(file)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    finally:
        os.close(file)
    return _read(content)


def _unreadable(path: Path, why: str) -> Unreadable:
    return Unreadable(f"cannot read {path}: {why}", "make it readable, or move it away", "unreadable-file")


def _content(file: int) -> bytes:
    size = os.fstat(file).st_size
    if size > MOST:
        raise OSError(errno.EFBIG, "it is too large to hold judgements")
    return os.pread(file, MOST, 0)


def _read(content: bytes) -> tuple[tuple[Judgement, ...], int]:
    found: dict[str, Judgement] = {}
    bad = 0
    whole, _, torn = content.rpartition(b"\n")
    for line in [*whole.split(b"\n"), *([torn] if torn.rstrip().endswith(b"}") else [])]:
        if not line.strip():
            continue
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


def held(judgements: Sequence[Judgement], task: str, by: str) -> tuple[Judgement, ...]:
    """What an author said of a task."""
    return tuple(one for one in judgements if one.task == task and one.by == by)

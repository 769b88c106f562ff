"""Keep rollouts as they come: one writer, whole lines, and what earlier sittings left behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from blade.errors import Unreadable, UsageError
from blade_eval.environment import Row
from blade_eval.runner import encode
from blade_eval.runner.places import Places

_BLOCK = 1 << 20
_BITS = 4096
_NAMED = 10  # line numbers that a message names
Key = tuple[int, int]  # task and repeat


class _Response(msgspec.Struct):
    usage: Any = None


class Told(msgspec.Struct):
    """What a line of the rollouts tells the one who goes on with the run."""

    task: Any = msgspec.field(name="_ng_task_index", default=None)
    repeat: Any = msgspec.field(name="_ng_rollout_index", default=None)
    terminal: Any = msgspec.field(name="_ng_failure_terminal", default=None)
    reward: Any = None
    response: Any = None

    @property
    def key(self) -> Key | None:
        is_key = type(self.task) is int and type(self.repeat) is int
        return (self.task, self.repeat) if is_key else None


class _Scored(Told):
    response: _Response | None = None


@dataclass
class Standing:
    """Which rollouts are there and how often others failed; a task's repeats are the bits of a number."""

    scored: dict[int, int] = field(default_factory=dict)
    failed: dict[Key, int] = field(default_factory=dict)  # failure lines so far
    terminal: set[Key] = field(default_factory=set)  # which no attempt can help
    far: set[Key] = field(default_factory=set)  # repeats whose number would make a huge number of bits
    unreadable: dict[Path, list[int]] = field(default_factory=dict)  # numbers of lines that are no rows
    n_scored: int = 0

    def has(self, key: Key) -> bool:
        if key[1] >= _BITS:
            return key in self.far
        return bool(self.scored.get(key[0], 0) >> key[1] & 1)

    def add(self, key: Key) -> None:
        if key[1] >= _BITS:
            self.far.add(key)
        else:
            self.scored[key[0]] = self.scored.get(key[0], 0) | 1 << key[1]
        self.n_scored += 1

    def is_given_up(self, key: Key, attempts: int) -> bool:
        return key in self.terminal or self.failed.get(key, 0) >= attempts

    def n_given_up(self, attempts: int) -> int:
        tried = set(self.failed) | self.terminal
        return sum(self.is_given_up(key, attempts) and not self.has(key) for key in tried)


class Kept:
    """The files of a run, open for this process alone.

    Lines go to the system whole, those of one moment in one write, so a killed process loses at most that
    moment's. What only a dead machine could lose is brought to disk every few seconds and at the end
    (`synced`): a sync for each line would cost more than the rollouts it saves, and a lost rollout is run
    again by --resume.
    """

    def __init__(self, places: Places) -> None:
        try:
            places.rollouts.parent.mkdir(parents=True, exist_ok=True)
            self._rollouts = _appending(places.rollouts)
            if not _is_ours(self._rollouts, places.rollouts):
                os.close(self._rollouts)
                raise UsageError(
                    f"another process is writing {places.rollouts}",
                    "wait for it to end, or write elsewhere with --output",
                    "run-is-locked",
                )
            self._failures = _appending(places.failures)
        except OSError as error:
            raise cannot_write(places.rollouts, error) from error
        self._places = places

    def rollouts(self, lines: list[bytes]) -> None:
        self._write(self._rollouts, self._places.rollouts, b"".join(lines))

    def failure(self, row: Row) -> None:
        self._write(self._failures, self._places.failures, encode.line(row))

    def emptied(self) -> None:
        """Nothing of an earlier run stays."""
        for file in (self._rollouts, self._failures):
            os.ftruncate(file, 0)
        at = self._places
        for path in (at.aggregate, at.manifest, _aside(at.rollouts), _aside(at.failures)):
            path.unlink(missing_ok=True)

    def set_aside(self, path: Path, numbers: Sequence[int]) -> str:
        """Take lines that are no rows out of one of the files, into one beside it; what was done.

        The file is replaced as a whole; the new one is locked before it has the name.
        """
        open_file = self._rollouts if path == self._places.rollouts else self._failures
        real = path.resolve()
        draft = real.with_name(real.name + ".tmp")
        try:
            _parted(real, frozenset(numbers), draft, _aside(path))
            new = _appending(draft)
            try:
                os.fchmod(new, os.fstat(open_file).st_mode & 0o7777)
                fcntl.flock(new, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.fsync(new)
                os.replace(draft, real)
                os.dup2(new, open_file, inheritable=False)
            finally:
                os.close(new)
        finally:
            draft.unlink(missing_ok=True)
        named = ", ".join(map(str, numbers[:_NAMED])) + (", …" if len(numbers) > _NAMED else "")
        what = f"line {named} was no row and stands" if len(numbers) == 1 else (
            f"{len(numbers):,} lines ({named}) were no rows and stand"
        )  # fmt: skip
        return f"{path.name}: {what} in {_aside(path).name} now; a rollout that is missing runs again"

    def synced(self) -> None:
        at = self._places
        for file, path in ((self._rollouts, at.rollouts), (self._failures, at.failures)):
            try:
                os.fsync(file)
            except OSError as error:
                raise cannot_write(path, error) from error

    def close(self) -> None:
        try:
            self.synced()
        finally:
            for file in (self._rollouts, self._failures):
                os.close(file)

    def _write(self, file: int, path: Path, text: bytes) -> None:
        data = memoryview(text)
        try:
            while data:
                data = data[os.write(file, data) :]
        except OSError as error:  # the torn line is repaired by --resume
            raise cannot_write(path, error) from error


def _appending(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)


def _is_ours(file: int, path: Path) -> bool:
    """Lock an open file; not one whose name another process has given to a new file meanwhile."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return path.exists() and os.path.samestat(os.fstat(file), path.stat())


def _aside(path: Path) -> Path:
    return path.with_name(path.name + ".unreadable")


def _parted(path: Path, numbers: frozenset[int], draft: Path, aside: Path) -> None:
    with path.open("rb") as file, draft.open("wb") as kept, aside.open("ab") as other:
        for number, line in enumerate(file, 1):
            (other if number in numbers else kept).write(line)
        other.flush()
        os.fsync(other.fileno())


def cannot_write(path: Path, error: OSError) -> Unreadable:
    return Unreadable(
        f"cannot write {path}: {error.strerror or error}",
        "make room or choose another place; a run goes on with --resume where it stopped",
        "cannot-write",
    )


# -- what earlier sittings left -----------------------------------------------------------------


def mended(path: Path) -> str | None:
    """Give a file whole lines again: drop a torn last one, end one that lacks its newline; what was done."""
    if not path.exists() or not path.stat().st_size:
        return None
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        begin = _last_line(file, size)
        file.seek(begin)
        last = file.read()
        if last.endswith(b"\n") and _is_row(last):
            return None
        if last.endswith(b"\n") and not last.strip():
            return None
        if _is_row(last):
            file.write(b"\n")
            return f"{path.name}: the last line had no newline; it is whole and stays"
        file.truncate(begin)
    return f"{path.name}: dropped {len(last):,} bytes of a last line that was torn; its rollout runs again"


def _last_line(file: Any, size: int) -> int:
    """Where the last line begins."""
    end = size - 1  # a newline at the very end belongs to the line it ends
    while end > 0:
        begin = max(0, end - _BLOCK)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return int(begin + found + 1)
        end = begin
    return 0


def _is_row(line: bytes) -> bool:
    return encode.any_row(line) is not None


def standing(places: Places, seen: Callable[[Told], None] | None = None) -> Standing:
    """What the files of a run hold; every scored row is shown to `seen` once."""
    found = Standing()
    for told in told_of(places.rollouts, _Scored, _noting(found, places.rollouts)):
        key = told.key
        if key is not None and key[1] >= 0 and not found.has(key):
            found.add(key)
            if seen is not None:
                seen(told)
    for told in told_of(places.failures, Told, _noting(found, places.failures)):
        key = told.key
        if key is not None:
            found.failed[key] = found.failed.get(key, 0) + 1
            if told.terminal is True:
                found.terminal.add(key)
    return found


def _noting(standing: Standing, path: Path) -> Callable[[int], None]:
    return lambda number: standing.unreadable.setdefault(path, []).append(number)


def told_of(
    path: Path, kind: type[Told] = Told, unreadable: Callable[[int], None] | None = None
) -> Iterator[Told]:
    """The lines of a file that can be read, one at a time; of others the number is told."""
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decoder.decode(line)
            except encode.NOT_JSON:  # another tool's spelling, perhaps; what is no row at all runs again
                row = encode.any_row(line)
                if row is not None:
                    yield Told(
                        row.get("_ng_task_index"),
                        row.get("_ng_rollout_index"),
                        row.get("_ng_failure_terminal"),
                        row.get("reward"),
                    )
                elif unreadable is not None and line.strip():
                    unreadable(number)

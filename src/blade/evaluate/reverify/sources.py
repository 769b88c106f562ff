"""Find the rollouts that are to be judged again, each with the task it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from blade.errors import NothingToRead, Unreadable
from blade.evaluate.environment import Row
from blade.evaluate.run import encode

JUDGE_FAILED = ("judge_failed", "judge_invalid")
Key = tuple[int, int]


class _Keyed(msgspec.Struct):
    task: Any = msgspec.field(name="_ng_task_index", default=None)
    repeat: Any = msgspec.field(name="_ng_rollout_index", default=None)
    kind: Any = msgspec.field(name="_ng_failure_class", default=None)

    @property
    def key(self) -> Key | None:
        return (self.task, self.repeat) if type(self.task) is int and type(self.repeat) is int else None


@dataclass(frozen=True)
class Pair:
    """A task as it was asked, and the stored row of what came of it."""

    key: Key
    task: Row
    stored: Row


class Inputs:
    """The materialised rows of a run, by key; only their places are held in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = opened(path)
        self._places: dict[Key, int] = {}
        place = 0
        for number, line in enumerate(self._file, 1):
            if line.strip():
                key = _key(path, number, line)
                if key in self._places:
                    raise _wrong(path, number, f"task {key[0]}, repeat {key[1]} stands there twice")
                self._places[key] = place
            place += len(line)
        if not self._places:
            raise NothingToRead(
                f"{path} holds no row", "give --inputs the materialised inputs", "no-rollouts"
            )

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def task(self, key: Key) -> Row | None:
        """The row of a key."""
        place = self._places.get(key)
        if place is None:
            return None
        self._file.seek(place)
        row: Row = encode.decode(self._file.readline())
        return row

    def close(self) -> None:
        self._file.close()


def check(inputs: Inputs, path: Path) -> None:
    """Find what is wrong with a file of rollouts before anything is written for it."""
    seen: set[Key] = set()
    for key, _, number in keyed(path):
        if key in seen:
            raise _wrong(path, number, f"task {key[0]}, repeat {key[1]} stands there twice")
        if key not in inputs:
            raise _foreign(path, number, key)
        seen.add(key)


def pairs(inputs: Inputs, path: Path) -> Iterator[Pair]:
    """Every rollout of a file with its task, in the order of the file."""
    for key, line, number in keyed(path):
        yield _pair(inputs, path, number, key, line)


def judge_failed(inputs: Inputs, path: Path, succeeded: set[Key]) -> Iterator[Pair]:
    """The last failure of every rollout that only lacks the judge's verdict."""
    lines: dict[Key, tuple[bytes, int]] = {}
    if path.exists():
        for key, line, number in keyed(path):
            kind = msgspec.json.decode(line, type=_Keyed).kind
            if kind in JUDGE_FAILED and key not in succeeded:
                lines[key] = (line, number)
    for key, (line, number) in sorted(lines.items()):
        yield _pair(inputs, path, number, key, line)


def keyed(path: Path) -> Iterator[tuple[Key, bytes, int]]:
    """Key, line and line number of every row that is no blank line."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _key(path, number, line), line, number


def _pair(inputs: Inputs, path: Path, number: int, key: Key, line: bytes) -> Pair:
    task = inputs.task(key)
    if task is None:
        raise _foreign(path, number, key)
    return Pair(key, task, encode.decode(line))


def _key(path: Path, number: int, line: bytes) -> Key:
    try:
        key = msgspec.json.decode(line, type=_Keyed).key
    except (msgspec.DecodeError, RecursionError) as error:
        raise _wrong(path, number, f"it is no JSON object ({error})") from None
    if key is None:
        raise _wrong(path, number, "it has no _ng_task_index and _ng_rollout_index")
    return key


def opened(path: Path) -> BinaryIO:
    """A file of rows, to be read."""
    if path.suffix in (".gz", ".zst"):
        raise Unreadable(
            f"{path} is packed", "unpack it first: rows are read by their places", "unreadable-file"
        )
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NothingToRead(f"there is no file {path}", "check the path", "no-such-path") from None
    except OSError as error:
        why = error.strerror or error
        raise Unreadable(f"cannot read {path}: {why}", "check its rights", "unreadable-file") from error


def _wrong(path: Path, number: int, what: str) -> Unreadable:
    return Unreadable(
        f"{path}, line {number}: {what}",
        "--inputs and --rollouts must be of one run: X_materialized_inputs.jsonl and X.jsonl",
        "reverify-mismatch",
    )


def _foreign(path: Path, number: int, key: Key) -> Unreadable:
    return _wrong(path, number, f"task {key[0]}, repeat {key[1]} is none of the inputs")

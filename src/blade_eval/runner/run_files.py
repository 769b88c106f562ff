"""Open, lock, write and resume the files of a run; their names derive from the path given to --output."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from blade.errors import NothingToRead, Unreadable, UsageError
from blade_eval.environment import Row
from blade_eval.runner import json_lines, run_manifest

# /dev/stdout may lead to a file, but the names beside it are nobody's to take
_DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


@dataclass(frozen=True)
class Places:
    """The files of a run, named as NeMo Gym names them; the manifest is ours."""

    rollouts: Path
    materialized: Path
    failures: Path
    aggregate: Path
    manifest: Path


def beside(output: Path) -> Places:
    """The files of the run whose rollouts go to `output`."""

    def named(ending: str) -> Path:
        return output.with_name(output.stem + ending)

    return Places(
        output,
        named("_materialized_inputs.jsonl"),
        named("_failures.jsonl"),
        named("_aggregate_metrics.json"),
        named("_manifest.json"),
    )


def usable(places: Places) -> Places:
    """The places, if each is free or a file: lines are appended, locked, read again and brought to disk."""
    for path in (places.rollouts, places.materialized, places.failures, places.aggregate, places.manifest):
        if path.is_dir():
            raise UsageError(f"{path} is a folder", _output_hint(places.rollouts), "output-no-file")
        if (path.exists() and not path.is_file()) or path.absolute().parent in _DEVICES:
            raise UsageError(
                f"{path} is a device or a pipe, and a run keeps its rollouts in a file",
                "name a file with --output",
                "output-no-file",
            )
    return places


def named(text: str) -> Path:
    """The path of --output; a slash at its end means a folder, also one that is not there yet."""
    if text.endswith("/"):
        raise UsageError(f"{text} is a folder", _output_hint(Path(text)), "output-no-file")
    return Path(text)


def _output_hint(output: Path) -> str:
    return f"--output names the file of the rollouts, such as {output / 'rollouts.jsonl'}"


_BLOCK = 1 << 20
_BITS = 4096
_NAMED = 10  # line numbers that a message names
Key = tuple[int, int]  # task and repeat


class _Response(msgspec.Struct):
    usage: Any = None


class LineHead(msgspec.Struct):
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


class _Scored(LineHead):
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
        self._write(self._failures, self._places.failures, json_lines.line(row))

    def emptied(self) -> None:
        """Nothing of an earlier run stays."""
        for file in (self._rollouts, self._failures):
            os.ftruncate(file, 0)
        places = self._places
        for path in (places.aggregate, places.manifest, _aside(places.rollouts), _aside(places.failures)):
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
        places = self._places
        for file, path in ((self._rollouts, places.rollouts), (self._failures, places.failures)):
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
    with path.open("rb") as file, draft.open("wb") as rest, aside.open("ab") as other:
        for number, line in enumerate(file, 1):
            (other if number in numbers else rest).write(line)
        other.flush()
        os.fsync(other.fileno())


def cannot_write(path: Path, error: OSError) -> Unreadable:
    return Unreadable(
        f"cannot write {path}: {error.strerror or error}",
        "make room or choose another place; a run goes on with --resume where it stopped",
        "cannot-write",
    )


# -- what earlier sittings left -----------------------------------------------------------------


def mend(path: Path) -> str | None:
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
        newline = file.read(end - begin).rfind(b"\n")
        if newline >= 0:
            return int(begin + newline + 1)
        end = begin
    return 0


def _is_row(line: bytes) -> bool:
    return json_lines.any_row(line) is not None


def read_standing(places: Places, seen: Callable[[LineHead], None] | None = None) -> Standing:
    """What the files of a run hold; every scored row is shown to `seen` once."""
    state = Standing()
    for head in line_heads(places.rollouts, _Scored, _noting(state, places.rollouts)):
        key = head.key
        if key is not None and key[1] >= 0 and not state.has(key):
            state.add(key)
            if seen is not None:
                seen(head)
    for head in line_heads(places.failures, LineHead, _noting(state, places.failures)):
        key = head.key
        if key is not None:
            state.failed[key] = state.failed.get(key, 0) + 1
            if head.terminal is True:
                state.terminal.add(key)
    return state


def _noting(standing: Standing, path: Path) -> Callable[[int], None]:
    return lambda number: standing.unreadable.setdefault(path, []).append(number)


def line_heads(
    path: Path, kind: type[LineHead] = LineHead, unreadable: Callable[[int], None] | None = None
) -> Iterator[LineHead]:
    """The lines of a file that can be read, one at a time; of others the number is told."""
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decoder.decode(line)
            except json_lines.NOT_JSON:  # another tool's spelling, perhaps; what is no row at all runs again
                row = json_lines.any_row(line)
                if row is not None:
                    yield LineHead(
                        row.get("_ng_task_index"),
                        row.get("_ng_rollout_index"),
                        row.get("_ng_failure_terminal"),
                        row.get("reward"),
                    )
                elif unreadable is not None and line.strip():
                    unreadable(number)


_MOST_NAMED = 5  # differences that a message names


@dataclass(frozen=True)
class OpenRun:
    """The files of a run, open and whole, and what they hold."""

    kept: Kept
    standing: Standing
    expected: int
    is_resumed: bool


def open_run(
    places: Places,
    rows: Iterable[Row],
    identity: Row,
    *,
    resume: bool,
    force: bool,
    notice: Callable[[str], None],
    seen: Callable[[LineHead], None] | None = None,
) -> OpenRun:
    """Write the materialised rows, or see that those of the earlier sitting are the same."""
    files = Kept(places)  # before anything is looked at: another process may be writing
    draft = places.materialized.with_name(places.materialized.name + ".tmp")
    try:
        has_before = _size(places.rollouts) > 0 or _size(places.failures) > 0
        if has_before and not resume and not force:
            raise UsageError(
                f"{places.rollouts} is there already",
                "--resume goes on with it, --force begins anew and deletes it, --output names another file",
                "output-exists",
            )
        expected = _drafted(draft, rows)
        goes_on = resume and _same(places, draft, identity, has_before, notice)
        if goes_on:
            draft.unlink()
            for path in (places.rollouts, places.failures):
                notes = mend(path)
                if notes:
                    notice(notes)
        else:
            files.emptied()
            os.replace(draft, places.materialized)
        standing = read_standing(places, seen)
        for path, numbers in standing.unreadable.items():
            notice(files.set_aside(path, numbers))
        return OpenRun(files, standing, expected, goes_on)
    except OSError as error:
        files.close()
        raise cannot_write(places.rollouts, error) from error
    except BaseException:
        files.close()
        raise
    finally:
        draft.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _drafted(draft: Path, rows: Iterable[Row]) -> int:
    count = 0
    with draft.open("wb", buffering=1 << 20) as file:
        for row in rows:
            file.write(json_lines.line(row))
            count += 1
    if not count:
        raise NothingToRead(
            "there is no row to run", "the input is empty, or this shard or limit has no task", "no-rows"
        )
    return count


def _same(
    places: Places, draft: Path, identity: Row, has_before: bool, notice: Callable[[str], None]
) -> bool:
    """Whether there is an earlier sitting of this very run; one of another run is refused."""
    if not has_before:  # also when it was killed before its first rollout
        notice("there is nothing to go on with yet; the run begins")
        return False
    if not places.materialized.exists():
        raise UsageError(
            f"{places.materialized.name} is missing, so nobody knows which rollouts are",
            "begin anew with --force, or with another --output",
            "cannot-resume",
        )
    before = run_manifest.read_manifest(places.manifest)
    changed = run_manifest.differences(before.get("identity") or {}, identity) if before else []
    if not changed:
        difference = _difference(places.materialized, draft)
        changed = [difference] if difference else []
    if changed:
        more = f"; and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
        raise UsageError(
            f"this is not the run that {places.rollouts} holds: {'; '.join(changed[:_MOST_NAMED])}{more}",
            "give the same data and flags to go on; --force begins anew, --output names another file",
            "cannot-resume",
        )
    return True


def _difference(earlier: Path, other: Path) -> str:
    """Where two materialised files part, as objects: their spelling may differ."""
    with earlier.open("rb") as before, other.open("rb") as after:
        for number, (old, new) in enumerate(zip_longest(_text_lines(before), _text_lines(after)), 1):
            if old == new:
                continue
            if old is None or new is None:
                return f"it had {'more' if new is None else 'fewer'} rows (line {number} of the inputs)"
            left, right = json_lines.decode(old), json_lines.decode(new)
            if left != right:
                keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
                return f"line {number} of the inputs has another {', '.join(keys[:3])}"
    return ""


def _text_lines(file: Iterable[bytes]) -> Iterator[bytes]:
    return (line for line in file if line.strip())

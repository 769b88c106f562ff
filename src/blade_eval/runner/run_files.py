"""Open, lock, write and resume the files of a run; their names derive from the path given to --output."""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from blade.errors import NothingToRead, Unreadable, UsageError
from blade_eval.environment import Row
from blade_eval.runner import json_lines

# /dev/stdout may lead to a file, but the names beside it are nobody's to take
_DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


class Places(NamedTuple):
    """The files of a run, named as NeMo Gym names them; the manifest is ours."""

    rollouts: Path
    materialized: Path
    failures: Path
    aggregate: Path
    manifest: Path


ENDINGS = "_materialized_inputs.jsonl _failures.jsonl _aggregate_metrics.json _manifest.json".split()
INPUTS, FAILURES, METRICS, MANIFEST = ENDINGS


def beside(output: Path) -> Places:
    """The files of the run whose rollouts go to `output`."""
    return Places(output, *(output.with_name(output.stem + ending) for ending in ENDINGS))


def usable(places: Places) -> Places:
    """The places, if each is free or a file: lines are appended, locked, read again and brought to disk."""
    for path in places:
        if path.is_dir():
            raise _no_file(path, places.rollouts)
        if (path.exists() and not path.is_file()) or path.absolute().parent in _DEVICES:
            what = f"{path} is a device or a pipe, and a run keeps its rollouts in a file"
            raise UsageError(what, "name a file with --output", "output-no-file")
    return places


def named(text: str) -> Path:
    """The path of --output; a slash at its end means a folder, also one that is not there yet."""
    if text.endswith("/"):
        raise _no_file(text, Path(text))
    return Path(text)


def _no_file(path: Path | str, output: Path) -> UsageError:
    hint = f"--output names the file of the rollouts, such as {output / 'rollouts.jsonl'}"
    return UsageError(f"{path} is a folder", hint, "output-no-file")


def cannot_write(path: Path, error: OSError) -> Unreadable:
    hint = "make room or choose another place; --resume continues where the run stopped"
    return Unreadable(f"cannot write {path}: {error.strerror or error}", hint, "cannot-write")


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file that appears whole under its name, or not at all."""
    draft = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            yield file
        mask = os.umask(0o022)  # it can only be read by setting it
        os.umask(mask)
        os.chmod(draft, 0o666 & ~mask)
        os.replace(draft, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            os.unlink(draft)


def read_manifest(path: Path) -> Row | None:
    """The manifest of an earlier sitting; None where there is none that can be read."""
    with suppress(OSError):
        return json_lines.any_row(path.read_bytes())
    return None


def write_manifest(path: Path, manifest: Row) -> None:
    with written(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


# -- rollouts and failures ----------------------------------------------------------------------

_NAMED = 10  # line numbers that a message names
Key = tuple[int, int]  # task and repeat


class _Response(msgspec.Struct):
    usage: Any = None


class LineHead(msgspec.Struct):
    """What a line of the rollouts tells whoever continues the run."""

    task: Any = msgspec.field(name="_ng_task_index", default=None)
    repeat: Any = msgspec.field(name="_ng_rollout_index", default=None)
    terminal: Any = msgspec.field(name="_ng_failure_terminal", default=None)
    reward: Any = None
    response: _Response | None = None

    @property
    def key(self) -> Key | None:
        is_key = type(self.task) is int and type(self.repeat) is int
        return (self.task, self.repeat) if is_key else None


@dataclass
class Standing:
    """Which rollouts are there, and how often others failed."""

    scored: set[Key] = field(default_factory=set)
    failed: Counter[Key] = field(default_factory=Counter)  # failure lines so far
    terminal: set[Key] = field(default_factory=set)  # which no attempt can help
    unreadable: dict[Path, list[int]] = field(default_factory=dict)  # numbers of lines that are no rows

    def is_given_up(self, key: Key, attempts: int) -> bool:
        return key in self.terminal or self.failed[key] >= attempts

    def n_given_up(self, attempts: int) -> int:
        return sum(self.is_given_up(key, attempts) for key in {*self.failed, *self.terminal} - self.scored)


class Kept:
    """The files of a run, open for this process alone.

    Lines go to the system whole, so a killed process loses none. What only a dead machine could lose is brought
    to disk every few seconds and at the end (`synced`): a sync for each line would cost more than the rollouts
    it saves, and a lost rollout is run again by --resume.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        try:
            places.rollouts.parent.mkdir(parents=True, exist_ok=True)
            rollouts = _appending(places.rollouts)
            try:
                fcntl.flock(rollouts, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # not one whose name another process has given to a new file meanwhile
                is_ours = places.rollouts.exists() and os.path.samestat(os.fstat(rollouts), places.rollouts.stat())
            except BlockingIOError:
                is_ours = False
            if not is_ours:
                os.close(rollouts)
                hint = "wait for it to end, or write elsewhere with --output"
                raise UsageError(f"another process is writing {places.rollouts}", hint, "run-is-locked")
            self._open = {places.rollouts: rollouts, places.failures: _appending(places.failures)}
        except OSError as error:
            raise cannot_write(places.rollouts, error) from error

    def rollout(self, line: bytes) -> None:
        self._write(self._places.rollouts, line)

    def failure(self, row: Row) -> None:
        self._write(self._places.failures, json_lines.line(row))

    def emptied(self) -> None:
        for path, file in self._open.items():
            os.ftruncate(file, 0)
            _aside(path).unlink(missing_ok=True)
        self._places.aggregate.unlink(missing_ok=True)
        self._places.manifest.unlink(missing_ok=True)

    def set_aside(self, path: Path, numbers: Sequence[int]) -> str:
        """Take lines that are no rows out of a file, into one beside it; what was done. The new file is locked before it has the name."""
        open_file, real, others = self._open[path], path.resolve(), frozenset(numbers)
        draft = real.with_name(real.name + ".tmp")
        try:
            with real.open("rb") as file, draft.open("wb") as rest, _aside(path).open("ab") as other:
                for number, line in enumerate(file, 1):
                    (other if number in others else rest).write(line)
                other.flush()
                os.fsync(other.fileno())
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
        names = ", ".join(map(str, numbers[:_NAMED])) + (", …" if len(numbers) > _NAMED else "")
        what = f"{len(numbers):,} lines ({names}) were no rows and stand"
        if len(numbers) == 1:
            what = f"line {names} was no row and stands"
        return f"{path.name}: {what} in {_aside(path).name} now; a rollout that is missing runs again"

    def synced(self) -> None:
        for path, file in self._open.items():
            try:
                os.fsync(file)
            except OSError as error:
                raise cannot_write(path, error) from error

    def close(self) -> None:
        try:
            self.synced()
        finally:
            for file in self._open.values():
                os.close(file)

    def _write(self, path: Path, text: bytes) -> None:
        data = memoryview(text)
        try:
            while data:
                data = data[os.write(self._open[path], data) :]
        except OSError as error:  # the torn line is repaired by --resume
            raise cannot_write(path, error) from error


def _appending(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)


def _aside(path: Path) -> Path:
    return path.with_name(path.name + ".unreadable")


# -- what earlier sittings left -----------------------------------------------------------------


def mend(path: Path) -> str | None:
    """Give a file whole lines again: drop a torn last one, end one that lacks its newline; what was done."""
    if not _size(path):
        return None
    with path.open("r+b") as file:
        with mmap.mmap(file.fileno(), 0) as content:
            begin = content.rfind(b"\n", 0, len(content) - 1) + 1  # one at the very end belongs to its line
        file.seek(begin)
        last = file.read()
        is_row, is_ended = json_lines.any_row(last) is not None, last.endswith(b"\n")
        if is_ended and (is_row or not last.strip()):
            return None
        if is_row:
            file.write(b"\n")
            return f"{path.name}: the last line had no newline; it is whole and stays"
        file.truncate(begin)
    return f"{path.name}: dropped {len(last):,} bytes of a last line that was torn; its rollout runs again"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def read_standing(places: Places, seen: Callable[[LineHead], None] | None = None) -> Standing:
    """What the files of a run hold; every scored row is shown to `seen` once."""
    state = Standing()
    for head in _line_heads(places.rollouts, state):
        if (key := head.key) is not None and key not in state.scored:
            state.scored.add(key)
            if seen is not None:
                seen(head)
    for head in _line_heads(places.failures, state):
        if (key := head.key) is not None:
            state.failed[key] += 1
            if head.terminal is True:
                state.terminal.add(key)
    return state


def _line_heads(path: Path, state: Standing) -> Iterator[LineHead]:
    """The lines of a file that can be read, one at a time; the numbers of others are noted."""
    if not path.exists():
        return
    decode = msgspec.json.Decoder(LineHead).decode
    keys = ("_ng_task_index", "_ng_rollout_index", "_ng_failure_terminal", "reward")
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decode(line)
            except json_lines.NOT_JSON:  # another tool's spelling, perhaps; what is no row at all runs again
                row = json_lines.any_row(line)
                if row is not None:
                    yield LineHead(*map(row.get, keys))
                elif line.strip():
                    state.unreadable.setdefault(path, []).append(number)


class OpenRun(NamedTuple):
    """The files of a run, open and whole, and what they hold."""

    kept: Kept
    standing: Standing
    expected: int
    is_resumed: bool


def open_run(
    places: Places, rows: Iterable[Row], identity: Row, *, resume: bool, force: bool,
    notice: Callable[[str], None], seen: Callable[[LineHead], None] | None = None,
) -> OpenRun:  # fmt: skip
    """Write the materialised rows, or see that those of the earlier sitting are the same."""
    files = Kept(places)  # before anything is looked at: another process may be writing
    draft = places.materialized.with_name(places.materialized.name + ".tmp")
    try:
        has_before = _size(places.rollouts) > 0 or _size(places.failures) > 0
        if has_before and not resume and not force:
            hint = "--resume continues, --force deletes it and starts over, --output names another file"
            raise UsageError(f"{places.rollouts} is there already", hint, "output-exists")
        expected = 0
        with draft.open("wb", buffering=1 << 20) as file:
            for expected, row in enumerate(rows, 1):  # noqa: B007
                file.write(json_lines.line(row))
        if not expected:
            hint = "the input is empty, or this shard or limit has no task"
            raise NothingToRead("there is no row to run", hint, "no-rows")
        goes_on = resume and _same(places, draft, identity, has_before, notice)
        if goes_on:
            for note in filter(None, map(mend, (places.rollouts, places.failures))):
                notice(note)
        else:
            files.emptied()
            os.replace(draft, places.materialized)
        standing = read_standing(places, seen)
        for path, numbers in standing.unreadable.items():
            notice(files.set_aside(path, numbers))
        return OpenRun(files, standing, expected, goes_on)
    except BaseException as error:
        files.close()
        if isinstance(error, OSError):
            raise cannot_write(places.rollouts, error) from error
        raise
    finally:
        draft.unlink(missing_ok=True)


def _same(
    places: Places, draft: Path, identity: Row, has_before: bool, notice: Callable[[str], None]
) -> bool:
    """Whether there is an earlier sitting of this very run; one of another run is refused."""
    if not has_before:  # also when it was killed before its first rollout
        notice("there is nothing to go on with yet; the run begins")
        return False
    if not places.materialized.exists():
        what = f"{places.materialized.name} is missing, so nobody knows which rollouts are"
        raise UsageError(what, "begin anew with --force, or with another --output", "cannot-resume")
    before = read_manifest(places.manifest) or {}
    changes = differences(before.get("identity") or {}, identity) if before else []
    changes = changes or [*_other_inputs(places.materialized, draft)]
    if changes:
        more = f"; and {len(changes) - 5} more" if len(changes) > 5 else ""
        what = f"this is not the run that {places.rollouts} holds: {'; '.join(changes[:5])}{more}"
        hint = "give the same data and flags to go on; --force begins anew, --output names another file"
        raise UsageError(what, hint, "cannot-resume")
    return True


def differences(before: Row, after: Row) -> list[str]:
    """What of a run's identity has changed, each as `what: before, now after`."""
    old, new = dict(_flat(before)), dict(_flat(after))
    return [
        f"{key}: was {_shown(old.get(key))}, now {_shown(new.get(key))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping | list):
        yield name.removeprefix("."), value
        return
    for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value, 1):
        yield from _flat(inner, f"{name}.{key}")


def _shown(value: Any) -> str:
    text = "not given" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _other_inputs(earlier: Path, other: Path) -> Iterator[str]:
    """Where two materialised files part first, as objects: their spelling may differ."""
    with earlier.open("rb") as before, other.open("rb") as after:
        lines = ((line for line in file if line.strip()) for file in (before, after))
        for number, (old, new) in enumerate(zip_longest(*lines), 1):
            if old is None or new is None:
                yield f"it had {'more' if new is None else 'fewer'} rows (line {number} of the inputs)"
                return
            left, right = (json_lines.decode(old), json_lines.decode(new)) if old != new else ({}, {})
            if left != right:
                keys = [key for key in {**left, **right} if left.get(key) != right.get(key)]
                yield f"line {number} of the inputs has another {', '.join(keys[:3])}"
                return

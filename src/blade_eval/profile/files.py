"""Read rollouts and materialised inputs into tables, and name and write what stands beside them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from blade.errors import Unreadable
from blade.formats import careful, find
from blade_eval.profile import numbers, reading
from blade_eval.profile.reading import Line, Members, Seen
from blade_eval.profile.spool import Spool
from blade_eval.profile.table import Keys, Names, Table
from blade_eval.runner.kept import cannot_write

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


@dataclass
class Inputs:
    """What was expected: a key for every line, and of each task and agent the first row."""

    keys: Keys
    samples: Spool = field(default_factory=Spool)
    first: dict[tuple[int, int], int] = field(default_factory=dict)  # task and agent's code, to its sample

    def sample(self, task: int, row: int) -> bytes:
        """The row that stands for the task of an input."""
        return self.samples[self.first[task, self.keys.code(row)]]


def read_inputs(path: Path, agents: Names) -> tuple[Inputs, Seen]:
    """A file of materialised inputs; one that cannot be read whole says nothing of what was expected."""
    seen, inputs = Seen(path), Inputs(Keys(agents))
    for line in reading.read(path, seen):
        found = key_of(path, line, seen)
        if found is None:
            continue
        task, repeat, agent = found
        inputs.keys.add(task, repeat, agent, 0, line.number, hash(line.data))
        whose = (task, -1 if agent is None else agents.code(agent))
        if whose not in inputs.first:
            members = reading.members(line, Seen(path)) or {}
            inputs.first[whose] = inputs.samples.add(sample(members, line))
    if seen.bad:
        number, reason = seen.bad[0]
        more = f" ({len(seen.bad)} such lines)" if len(seen.bad) > 1 else ""
        raise Unreadable(
            f"{path}, line {number}: {reason}{more}",
            "without it nobody knows what was expected: restore the file, or remove what is no row",
            "unreadable-line",
        )
    return inputs, seen


def read_results(path: Path, table: Table, source: int = 0) -> Seen:
    """Add the rows of a rollouts file to a table; lines that are no rows are noted."""
    seen = Seen(path)
    for line in reading.read(path, seen):
        result = result_of(path, line, seen)
        if result is not None:
            table.add(result, source, line.number, hash(line.data))
    return seen


def result_of(path: Path, line: Line, seen: Seen) -> numbers.Result | None:
    """What profiling keeps of a line; None, and noted in `seen`, where it holds no row."""
    try:
        light = numbers.of_line(line.data) if len(line.data) < numbers.LIGHT else None
        if light is not None:
            return light
        members = reading.members(line, seen)
        if members is None:
            return None
        found = numbers.of_members(members)
        if found.is_beyond and line.number not in seen.not_finite[-1:]:
            seen.not_finite.append(line.number)
        return found
    except numbers.NoKey as error:
        raise without_key(path, line, error) from None


class _Key(msgspec.Struct, gc=False):
    """A row that is as it should be, read without anything else."""

    task: int = msgspec.field(name=numbers.TASK)
    repeat: int = msgspec.field(name=numbers.REPEAT)
    agent_ref: numbers.Agent | None = None


_key = msgspec.json.Decoder(_Key).decode


def key_of(path: Path, line: Line, seen: Seen) -> tuple[int, int, str | None] | None:
    """Task, repeat and agent of a line; None, and noted in `seen`, where it holds no row."""
    try:
        key = _key(line.data)
        if abs(key.task) < numbers.FAR and abs(key.repeat) < numbers.FAR:
            return key.task, key.repeat, key.agent_ref.name if key.agent_ref else None
    except (msgspec.DecodeError, RecursionError):
        pass
    members = reading.members(line, seen)
    if members is None:
        return None
    agent = numbers.agent_name(members.get("agent_ref"))
    try:
        return numbers.index(members, numbers.TASK), numbers.index(members, numbers.REPEAT), agent
    except numbers.NoKey as error:
        raise without_key(path, line, error) from None


def without_key(path: Path, line: Line, error: Exception) -> Unreadable:
    return Unreadable(
        f"{path}, line {line.number}: {error}",
        "rows are told apart by _ng_task_index and _ng_rollout_index, which `eval run` writes; "
        "`blade diagnose` reads files without them",
        "rows-without-indices",
    )


def sample(members: Members, line: Line) -> bytes:
    """The row without its indices, as the incumbent would write it again."""
    row = {name: raw for name, raw in members.items() if name not in (numbers.TASK, numbers.REPEAT)}
    try:
        return _encode({name: _decode(raw) for name, raw in row.items()})
    except (msgspec.DecodeError, RecursionError, OverflowError, UnicodeError):
        found = careful.members(line.data)[0] or {}
        return _encode({name: _finite(found[name]) for name in row if name in found})


def _finite(raw: msgspec.Raw) -> Any:
    """A value with null for every number that is none; as it stands if it is odd in another way."""
    try:
        value = json.loads(bytes(raw))
        _encode(value)
    except (ValueError, RecursionError, OverflowError):
        return raw
    return value


def beside(rollouts: Path, ending: str) -> Path:
    """The path of a sidecar: the name of the rollouts file without its endings, and this one."""
    return rollouts.parent / f"{stem(rollouts)}{ending}"


def stem(path: Path) -> str:
    """The name without its last ending, as the incumbent takes it; of packed files without both."""
    packed = path.name.removesuffix(".gz").removesuffix(".zst")
    return find.stem(path) if packed != path.name else path.stem


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file that appears whole under its name, or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        with os.fdopen(handle, "wb", buffering=1 << 20) as file:
            yield file
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            os.unlink(name)


def _umask() -> int:
    """What new files of this process may not be; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

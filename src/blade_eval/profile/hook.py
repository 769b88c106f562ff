"""Add metrics of one's own: a Python file with a function `metrics`, and the rows it is given."""

from __future__ import annotations

import math
import runpy
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from blade.errors import UsageError
from blade.formats import careful
from blade_eval.profile import reading
from blade_eval.profile.numbers import LONG

if TYPE_CHECKING:
    from blade_eval.profile.entries import Rows
    from blade_eval.profile.reading import Members

Kept = TypeVar("Kept")  # a row, or what is kept of it
Tasks = list[list[dict[str, Any]]]
_KEPT_OF_RESPONSE = ("usage", "incomplete_details")
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True)
class Hook:
    """The function of a file, which turns the tasks of one agent into named numbers."""

    path: Path
    metrics: Callable[[Tasks], Mapping[str, Any]]

    def by_agent(self, told: Rows, paths: Sequence[Path]) -> dict[str, dict[str, float]]:
        """What it finds for each agent; what is no finite number is undefined, and left out."""
        return {name: self._found(tasks) for name, tasks in tasks_by_agent(told, paths).items()}

    def _found(self, tasks: Tasks) -> dict[str, float]:
        try:
            found = self.metrics(tasks)
        except (Exception, SystemExit) as error:
            at = [
                frame
                for frame in traceback.extract_tb(error.__traceback__)
                if frame.filename == str(self.path)
            ]
            where = f" in line {at[-1].lineno}" if at else ""
            raise _failed(self.path, f"`metrics` failed{where}: {type(error).__name__}: {error}") from error
        if not isinstance(found, Mapping):
            raise _failed(self.path, f"`metrics` returned {type(found).__name__}, not a dict of numbers")
        for name, value in found.items():
            if (
                not isinstance(name, str)
                or isinstance(value, bool)
                or not isinstance(value, int | float | np.number)
            ):
                raise _failed(self.path, f"`metrics` returned {name!r}: {value!r}, which is no named number")
        numbers = {name: _float(value) for name, value in found.items()}
        return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond any float
        return math.inf


def loaded(path: Path) -> Hook:
    """Run a file and take its function."""
    if not path.is_file():
        raise _failed(path, "there is no such file")
    try:
        function = runpy.run_path(str(path)).get("metrics")
    except (Exception, SystemExit) as error:
        raise _failed(path, f"it does not load: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise _failed(path, "it defines no function `metrics`")
    return Hook(path, function)


def _failed(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path}: {reason}",
        "define `def metrics(tasks): ...` which takes a list of lists of rows and returns a dict of numbers",
        "metrics-hook",
    )


def tasks_by_agent(told: Rows, paths: Sequence[Path]) -> dict[str, Tasks]:
    """The measured rows of each agent by task and repeat, without what is long: prompt, response, traces."""
    return grouped(told, {row: stripped(members) for row, members in again(told, paths)})


def again(told: Rows, paths: Sequence[Path]) -> Iterator[tuple[int, Members]]:
    """Every measured row, read once more from where it stands."""
    wanted = {told.table.keys.place(int(row)): int(row) for row in told.measured()}
    for source, path in enumerate(paths):
        for line, members in reading.rows(path, reading.Seen(path)):
            row = wanted.get((source, line.number))
            if row is not None:
                yield row, members


def grouped(told: Rows, rows: Mapping[int, Kept]) -> dict[str, list[list[Kept]]]:
    """Rows of a table by agent, task and repeat."""
    task, repeat = told.table.keys.task, told.table.keys.repeat
    order = sorted(rows, key=lambda row: (told.agent[row], task[row], repeat[row]))
    found: dict[str, list[list[Kept]]] = {}
    last = None
    for row in order:
        tasks = found.setdefault(told.names[told.agent[row]], [])
        if last != (told.agent[row], task[row]):
            tasks.append([])
        last = (told.agent[row], task[row])
        tasks[-1].append(rows[row])
    return found


def stripped(members: Members) -> dict[str, Any]:
    """A row as the servers of the incumbent get it: of the response the usage alone, no attachments."""
    row = {
        name: _value(raw) for name, raw in members.items() if name not in LONG and not name.startswith("ng_")
    }
    response = members.get("response")
    if response is not None and bytes(memoryview(response)[:1]) == b"{":
        found = careful.members(bytes(response))[0] or {}
        row["response"] = {name: _value(found[name]) for name in _KEPT_OF_RESPONSE if name in found}
    return row


def without_long(rows: Iterator[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same of rows that were parsed already."""
    for row in rows:
        kept = {name: value for name, value in row.items() if name not in LONG and not name.startswith("ng_")}
        response = row.get("response")
        if isinstance(response, Mapping):
            kept["response"] = {name: response[name] for name in _KEPT_OF_RESPONSE if name in response}
        yield kept


def _value(raw: msgspec.Raw) -> Any:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None

"""Hold the numbers of many rows as columns, and their keys, without holding the rows."""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blade_eval.profile.numbers import Result
from blade_eval.profile.spool import Spool

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# One row of keys, packed at once: to append to six arrays takes longer than to read the row.
_KEY = np.dtype([("task", "<i8"), ("repeat", "<i8"), ("line", "<i8"), ("content", "<i8"), ("agent", "<i4"),
                 ("source", "<i4")])  # fmt: skip
_pack, _unpack = struct.Struct("<qqqqii").pack, struct.Struct("<qqqqii").unpack_from


class Column(NamedTuple):
    """The present values of one column, by rising position of their rows."""

    name: str
    positions: Ints
    values: Floats


class Names:
    """Texts as small whole numbers, in the order they were met."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}

    def code(self, value: Any) -> int:
        found = self.codes.get(value)
        return self.codes.setdefault(value, len(self.codes)) if found is None else found

    @property
    def texts(self) -> list[Any]:
        return list(self.codes)


class Keys:
    """Task, repeat and agent of rows, where they stand, and a hash by which copies are known."""

    def __init__(self, agents: Names | None = None) -> None:
        self.agents = agents or Names()
        self._data = bytearray()

    def __len__(self) -> int:
        return len(self._data) // _KEY.itemsize

    def add(self, task: int, repeat: int, agent: str | None, source: int, line: int, content: int) -> None:
        code = -1 if agent is None else self.agents.code(agent)
        self._data += _pack(task, repeat, line, content, code, source)

    def _of(self, name: str) -> Ints:
        return np.frombuffer(bytes(self._data), _KEY)[name].astype(np.int64)

    @property
    def task(self) -> Ints:
        return self._of("task")

    @property
    def repeat(self) -> Ints:
        return self._of("repeat")

    @property
    def agent(self) -> Ints:
        """Codes of `agents`; -1 where the row names none."""
        return self._of("agent")

    @property
    def content(self) -> Ints:
        return self._of("content")

    @property
    def source(self) -> Ints:
        """The file that each row stands in."""
        return self._of("source")

    def code(self, row: int) -> int:
        """The agent of one row."""
        return self._row(row)[4]

    def place(self, row: int) -> tuple[int, int]:
        """The source and the line of a row."""
        _, _, line, _, _, source = self._row(row)
        return source, line

    def _row(self, row: int) -> tuple[int, int, int, int, int, int]:
        found: tuple[int, int, int, int, int, int] = _unpack(self._data, row * _KEY.itemsize)
        return found


@dataclass
class Table:
    """Result rows: their keys and, of each numeric column, who has it and which value."""

    keys: Keys = field(default_factory=Keys)
    servers: Names = field(default_factory=Names)
    infos: Spool = field(default_factory=Spool)
    masked: bytearray = field(default_factory=bytearray)
    _server: array[int] = field(default_factory=lambda: array("i"))
    _shapes: dict[tuple[str, ...], _Shape] = field(default_factory=dict)

    def add(self, result: Result, source: int = 0, line: int = 0, content: int = 0) -> None:
        row = len(self.masked)
        self.keys.add(result.task, result.repeat, result.agent, source, line, content)
        self.masked.append(result.masked)
        self._server.append(self.servers.code(result.server))
        self.infos.add(result.info)
        names = tuple(result.numbers)
        shape = self._shapes.get(names)
        if shape is None:
            shape = self._shapes[names] = _Shape(array("q"), array("d"))
        shape.rows.append(row)
        shape.values.extend(result.numbers.values())

    @property
    def server(self) -> Ints:
        return _ints(self._server)

    def columns(self, order: Ints) -> list[Column]:
        """The columns of the rows in `order`, in the order in which those rows first name them."""
        place = np.full(len(self.keys), -1, np.int64)
        place[order] = np.arange(order.size)
        parts: dict[str, list[tuple[Ints, Floats]]] = {}
        for names, shape in sorted(self._shapes.items(), key=lambda entry: _first(entry[1], place)):
            at = place[_ints(shape.rows)]
            chosen = at >= 0
            values = np.frombuffer(shape.values, np.float64).reshape(at.size, -1)[chosen] if names else None
            for number, name in enumerate(names if chosen.any() else ()):
                assert values is not None
                parts.setdefault(name, []).append((at[chosen], values[:, number]))
        return [_joined(name, found) for name, found in parts.items()]


class _Shape(NamedTuple):
    """Rows that name the same numbers in the same order, and those numbers, row by row."""

    rows: array[int]
    values: array[float]


def _first(shape: _Shape, place: Ints) -> int:
    """The first place that a row of the shape has, past all others if it has none."""
    at = place[_ints(shape.rows)]
    found = at[at >= 0]
    return int(found.min()) if found.size else place.size


def _joined(name: str, parts: list[tuple[Ints, Floats]]) -> Column:
    positions = np.concatenate([at for at, _ in parts])
    values = np.concatenate([values for _, values in parts])
    if positions.size > 1 and (positions[1:] < positions[:-1]).any():
        rising = np.argsort(positions, kind="stable")
        positions, values = positions[rising], values[rising]
    return Column(name, positions, values)


def _ints(values: array[int]) -> Ints:
    return np.array(values, np.int64)

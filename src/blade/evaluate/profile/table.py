"""Hold the numbers of many rows as columns, and their keys, without holding the rows."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blade.evaluate.profile.numbers import Result
from blade.evaluate.profile.spool import Spool

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


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
        return self.codes.setdefault(value, len(self.codes))

    @property
    def texts(self) -> list[Any]:
        return list(self.codes)


class Keys:
    """Task, repeat and agent of rows, where they stand, and a hash by which copies are known."""

    def __init__(self, agents: Names | None = None) -> None:
        self.agents = agents or Names()
        self._task, self._repeat, self._agent = array("q"), array("q"), array("i")
        self._source, self._line, self._content = array("i"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._task)

    def add(self, task: int, repeat: int, agent: str | None, source: int, line: int, content: int) -> None:
        self._task.append(task)
        self._repeat.append(repeat)
        self._agent.append(-1 if agent is None else self.agents.code(agent))
        self._source.append(source)
        self._line.append(line)
        self._content.append(content)

    @property
    def task(self) -> Ints:
        return _ints(self._task)

    @property
    def repeat(self) -> Ints:
        return _ints(self._repeat)

    @property
    def agent(self) -> Ints:
        """Codes of `agents`; -1 where the row names none."""
        return _ints(self._agent)

    @property
    def content(self) -> Ints:
        return _ints(self._content)

    def code(self, row: int) -> int:
        """The agent of one row."""
        return self._agent[row]

    def place(self, row: int) -> tuple[int, int]:
        """The source and the line of a row."""
        return self._source[row], self._line[row]


@dataclass
class Table:
    """Result rows: their keys and, of each numeric column, who has it and which value."""

    keys: Keys = field(default_factory=Keys)
    servers: Names = field(default_factory=Names)
    infos: Spool = field(default_factory=Spool)
    masked: bytearray = field(default_factory=bytearray)
    _server: array[int] = field(default_factory=lambda: array("i"))
    _shapes: Names = field(default_factory=Names)  # which names a row has, in its own order
    _shape: array[int] = field(default_factory=lambda: array("i"))
    _columns: dict[str, tuple[array[int], array[float]]] = field(default_factory=dict)

    def add(self, result: Result, source: int = 0, line: int = 0, content: int = 0) -> None:
        row = len(self.keys)
        self.keys.add(result.task, result.repeat, result.agent, source, line, content)
        self.masked.append(result.masked)
        self._server.append(self.servers.code(result.server))
        self._shape.append(self._shapes.code(tuple(result.numbers)))
        self.infos.add(result.info)
        for name, value in result.numbers.items():
            column = self._columns.get(name)
            if column is None:
                column = self._columns[name] = (array("q"), array("d"))
            column[0].append(row)
            column[1].append(value)

    @property
    def server(self) -> Ints:
        return _ints(self._server)

    def columns(self, order: Ints) -> list[Column]:
        """The columns of the rows in `order`, in the order in which those rows first name them."""
        place = np.full(len(self.keys), -1, np.int64)
        place[order] = np.arange(order.size)
        found = []
        for name in self._names_in(order):
            rows, values = self._columns[name]
            found.append(_ordered(name, place[_ints(rows)], np.frombuffer(values, np.float64)))
        return found

    def _names_in(self, order: Ints) -> list[str]:
        shapes, first = np.unique(_ints(self._shape)[order], return_index=True)
        known = self._shapes.texts
        return list(dict.fromkeys(name for at in np.argsort(first) for name in known[shapes[at]]))


def _ordered(name: str, positions: Ints, values: Floats) -> Column:
    chosen = positions >= 0
    positions, values = positions[chosen], values[chosen]
    if positions.size > 1 and (positions[1:] < positions[:-1]).any():
        rising = np.argsort(positions, kind="stable")
        positions, values = positions[rising], values[rising]
    return Column(name, positions, values)


def _ints(values: array[int]) -> Ints:
    return np.array(values, np.int64)

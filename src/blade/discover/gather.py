"""Turn observed features into columns of 0 and 1 and of numbers, an entry for each completed rollout."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from blade.discover import grammar
from blade.model import Judged

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Bools, Floats, Ints

TASK = "task:"
MAX_COLUMNS = 1200
FEW, SMALL = 4, 100
CELLS = 40_000_000  # bytes that the columns of a run may take


class Gathered:
    """What was observed, with each distinct feature kept once: fill it while the rows are being read."""

    def __init__(self, observed: Iterable[tuple[int, tuple[str, ...]]] = ()) -> None:
        self.names: dict[str, int] = {}
        self.positions = array("q")
        self.codes = array("i")
        self.ends = array("q")
        self.add(observed)

    def add(self, observed: Iterable[tuple[int, tuple[str, ...]]]) -> None:
        """Take in what `observe` said of some rows."""
        names = self.names
        for position, features in observed:
            self.positions.append(position)
            self.codes.extend([names.setdefault(feature, len(names)) for feature in features])
            self.ends.append(len(self.codes))


@dataclass
class Rows:
    """The completed rollouts that were read, in the order of `Rollouts`."""

    at: Ints  # into the arrays of `Judged`
    position: Ints
    task: Ints
    repeat: Ints
    passed: Bools
    starts: Ints  # first row of each task
    columns: dict[str, NDArray[np.uint8]] = field(default_factory=dict)  # feature -> 0 and 1
    numbers: dict[str, Floats] = field(default_factory=dict)  # name -> value, nan where it is not told

    @property
    def n(self) -> int:
        return int(self.at.size)


def least_support(n: int, asked: bool = False) -> int:
    """Rollouts that a predicate and its absence must each have; `asked`: an act that tasks expect or not."""
    return max(min(FEW if asked and n < SMALL else 8, -(-n // 5)), -(-n // 100))


def rows(judged: Judged, observed: Iterable[tuple[int, tuple[str, ...]]] | Gathered) -> Rows:
    """The rows that count and are not broken, with every feature that enough of them have."""
    gathered = observed if isinstance(observed, Gathered) else Gathered(observed)
    seen = np.asarray(gathered.positions, np.int64)
    place = np.searchsorted(judged.rows, seen)
    known = place < judged.rows.size
    known[known] = judged.rows[place[known]] == seen[known]
    usable = known.copy()
    usable[known] = ~judged.broken[place[known]]
    at, first = np.unique(place[usable], return_index=True)
    task = judged.task[at]
    found = Rows(
        at, judged.rows[at], task, judged.repeat[at], judged.passed[at],
        np.flatnonzero(np.r_[True, task[1:] != task[:-1]]) if at.size else np.empty(0, np.int64),
    )  # fmt: skip
    order = np.flatnonzero(usable)[first]  # where in `gathered` each row stands
    if found.n:
        _fill(found, gathered, order)
    return found


def _fill(found: Rows, gathered: Gathered, order: Ints) -> None:
    ends = np.asarray(gathered.ends, np.int64)
    begins = np.r_[0, ends[:-1]]
    codes = np.asarray(gathered.codes, np.int32)
    row = np.full(ends.size, -1, np.int64)
    row[order] = np.arange(order.size)
    owner = np.repeat(row, ends - begins)
    kept = owner >= 0
    codes, owner = codes[kept], owner[kept]
    counts = np.bincount(codes, minlength=len(gathered.names))
    by_code = np.argsort(codes, kind="stable")
    stops = np.cumsum(counts)
    for name, code in _kept(gathered.names, counts, found.n):
        mine = owner[by_code[stops[code] - counts[code] : stops[code]]]
        if _is_number(name):
            _take_number(found, name, mine)
        else:
            column = np.zeros(found.n, np.uint8)
            column[mine] = 1
            found.columns[name] = column


def _is_number(name: str) -> bool:
    return name.removeprefix(TASK).startswith("#")


def _kept(names: dict[str, int], counts: Ints, n: int) -> list[tuple[str, int]]:
    """The features that can part the rows; of too many the plainer and the more even ones."""
    free, rivals = [], []
    for name, code in names.items():
        count, least = int(counts[code]), least_support(n, grammar.kind(name) in grammar.ASKED)
        if count and (_is_number(name) or name.startswith(TASK)):
            free.append((name, code))
        elif least <= count <= n - least:
            rivals.append((not grammar.is_word(name), min(count, n - count), name, code))
    rivals.sort(key=lambda rival: (not rival[0], -rival[1], rival[2]))
    budget = max(200, min(MAX_COLUMNS, CELLS // n))
    return sorted(free + [(name, code) for *_, name, code in rivals[:budget]])


def _take_number(found: Rows, name: str, mine: Any) -> None:
    key, _, value = name.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        return
    values = found.numbers.get(key)
    if values is None:
        values = found.numbers[key] = np.full(found.n, np.nan)
    values[mine] = number


def of_tasks(found: Rows) -> Iterator[tuple[str, Bools]]:
    """The conditions that belong to the task: true for all its rows if for one of them."""
    for name, column in found.columns.items():
        if name.startswith(TASK):
            by_task = np.maximum.reduceat(column, found.starts)
            yield name.removeprefix(TASK), np.repeat(by_task, sizes(found)).astype(bool)


def of_task(found: Rows, name: str) -> Bools:
    """Whether the task of each row has a property; all its rows say so, but for broken ones."""
    mine = [held for told, held in of_tasks(found) if told.startswith(name)]
    held: Bools = np.any(mine, axis=0) if mine else np.zeros(found.n, bool)
    return held


def sizes(found: Rows) -> Ints:
    """Rows of each task."""
    found_sizes: Ints = np.diff(np.r_[found.starts, found.n])
    return found_sizes

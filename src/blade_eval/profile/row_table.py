"""Read rollouts and inputs line by line into keys, numbers and places; no row is kept in memory."""

from __future__ import annotations

import json
import math
import os
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import orjson
from numpy.typing import NDArray

from blade.errors import NothingToRead, Unreadable
from blade.formats import find, lines, row_decoder

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = dict[str | None, int]  # of texts, in the order they were met; -1 is none

TASK, REPEAT, MASK = "_ng_task_index", "_ng_rollout_index", "mask_sample"
LONG = frozenset({"response", "responses_create_params"})
SHOWN = 10  # of many lines or keys, so many are named
BOM = b"\xef\xbb\xbf"
_LIGHT = 8 << 10  # bytes; of a longer row only what is needed is parsed
_FAR = 1 << 62  # beyond, an index is no index
_MOST_OPEN = 200

_decode = msgspec.json.Decoder().decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_NOT_JSON = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


# -- lines ----------------------------------------------------------------------------------------


class Line(NamedTuple):
    number: int  # from 1
    offset: int  # of its first byte in the (inflated) file
    data: bytes  # without the newline
    is_ended: bool  # by a newline


@dataclass
class Seen:
    """What a file held besides rows; nothing of it is dropped in silence."""

    path: Path
    blank: list[int] = field(default_factory=list)
    not_finite: list[int] = field(default_factory=list)  # with NaN, infinities, 1e999: read as null
    bad: list[tuple[int, str]] = field(default_factory=list)  # and why

    def notices(self) -> list[str]:
        notices, beyond = [], "NaN, Infinity or a number beyond any float; read as null"
        for numbers, what in ((self.blank, "blank; skipped"), (self.not_finite, beyond)):
            shown = ", ".join(map(str, numbers[:SHOWN]))
            more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
            if numbers:
                subject = f"line {shown} holds" if len(numbers) == 1 else f"lines {shown}{more} hold"
                notices.append(f"{self.path}: {subject} {what}")
        notices += [f"{self.path}, line {number}: {reason}; skipped" for number, reason in self.bad[:SHOWN]]
        if len(self.bad) > SHOWN:
            notices.append(f"{self.path}: {len(self.bad) - SHOWN} more lines could not be read")
        return notices


def read(path: Path, seen: Seen) -> Iterator[Line]:
    """The lines of a file, compressed or not, that hold anything."""
    if not path.is_file():
        what = f"{path} {'is a folder' if path.is_dir() else 'does not exist'}"
        raise NothingToRead(what, "check the path; a rollouts file ends in .jsonl, .gz or .zst", "no-rollouts")
    is_packed, number = lines.is_compressed(path), 0
    for block in lines.stream_blocks(path) if is_packed else lines.plain_blocks(path, 0, path.stat().st_size):
        if block.broken:
            seen.bad.append((number + 1, block.broken))
        if block.too_long:
            number += 1
            seen.bad.append((number, f"a line of {block.too_long:,} bytes is longer than we read"))
        offset = block.offset
        *ended, last = block.data[: block.size].split(b"\n")
        for number, data in enumerate(ended, number + 1):  # noqa: B020
            yield Line(number, offset, data, True)
            offset += len(data) + 1
        if last:
            number += 1
            yield Line(number, offset, last, False)


def plain(line: Line, seen: Seen) -> Row | None:
    """The object in a line, null for numbers that are none; None, and noted, where there is no object."""
    with suppress(*_NOT_JSON):
        row = _decode(line.data)
        if type(row) is dict:
            return row
    data = line.data.removeprefix(BOM).strip()
    if not data:
        seen.blank.append(line.number)
        return None
    has_literals = False  # NaN and infinities, which a strict reader takes in texts alone
    reason: str | None = None
    try:
        members: Mapping[str, msgspec.Raw] | None = _members(data)
    except _NOT_JSON:
        members, reason = row_decoder.members(data)
        has_literals = b"NaN" in data or b"Infinity" in data
    if members is None:
        torn = "" if line.is_ended else "the file ends inside this line, as a killed run leaves it: "
        seen.bad.append((line.number, f"{torn}{reason}"))
        return None
    pairs = {name: _value(raw) for name, raw in members.items()}
    if has_literals or any(is_beyond for _, is_beyond in pairs.values()):
        seen.not_finite.append(line.number)
    return {name: value for name, (value, _) in pairs.items()}


def _value(raw: msgspec.Raw) -> tuple[Any, bool]:
    """A value, and whether it holds a number beyond any float; as it stands if it is odd in another way."""
    with suppress(*_NOT_JSON):
        return _decode(raw), False
    with suppress(*_NOT_JSON, ValueError, OverflowError):
        return _decode(_encode(json.loads(bytes(raw)))), True
    return raw, False


def encoded(value: Any) -> bytes:
    """JSON in the incumbent's spelling, whose writer this is."""
    with suppress(TypeError):
        return orjson.dumps(value, _raw)
    value = _tamed(value)
    with suppress(TypeError):
        return orjson.dumps(value, _raw)
    return _encode(value)  # nested too deep for that writer


def _raw(value: msgspec.Raw) -> orjson.Fragment:
    return orjson.Fragment(bytes(value))


def _tamed(value: Any) -> Any:
    """The same without whole numbers of more than 64 bits and without halves of surrogate pairs."""
    if isinstance(value, dict):
        return {_tamed(name): _tamed(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_tamed(inner) for inner in value]
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return float(value) if abs(value) < 1 << 1023 else None
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


# -- keys and numbers of a row --------------------------------------------------------------------


class Keyed(NamedTuple):
    """What is kept of a row; of an input the key alone."""

    task: int
    repeat: int
    agent: str | None
    server: str | None = None  # `_ng_environment_server`
    masked: bool = False
    numbers: Mapping[str, int | float] = {}  # top-level numbers, then those of `response.usage`
    info: bytes = b""  # the row's entry of `rollout_infos`


class _Named(msgspec.Struct, gc=False):
    name: str | None = None


class _Key(msgspec.Struct, gc=False):
    """A row that is as it should be, read without anything else."""

    task: int = msgspec.field(name=TASK)
    repeat: int = msgspec.field(name=REPEAT)
    agent_ref: _Named | None = None


class _Response(msgspec.Struct, gc=False):
    usage: Any = None


_quick_key = msgspec.json.Decoder(_Key).decode
_response = msgspec.json.Decoder(_Response).decode


def key_of(line: Line, seen: Seen) -> Keyed | None:
    """The key of a line; None, and noted in `seen`, where it holds no row."""
    with suppress(*_NOT_JSON):
        key = _quick_key(line.data)
        if abs(key.task) < _FAR and abs(key.repeat) < _FAR:
            return Keyed(key.task, key.repeat, key.agent_ref.name if key.agent_ref else None)
    row = plain(line, seen)
    return None if row is None else of_row(row, line.number, seen.path)


def result_of(line: Line, seen: Seen) -> Keyed | None:
    """What profiling keeps of a line; None, and noted in `seen`, where it holds no row."""
    row = _needed(line.data) if len(line.data) >= _LIGHT else None
    row = plain(line, seen) if row is None else row
    return None if row is None else of_row(row, line.number, seen.path)


def _needed(data: bytes) -> Row | None:
    """A long row without its prompt, and of its response the usage; None where it needs more care."""
    try:
        members = _members(data)
        row = {name: _decode(raw) for name, raw in members.items() if name not in LONG}
    except _NOT_JSON:
        return None
    with suppress(msgspec.DecodeError, RecursionError):
        row["response"] = {"usage": _response(members["response"]).usage} if "response" in members else None
    return row


def of_row(row: Mapping[str, Any], number: int, path: Path | None = None) -> Keyed:
    """What profiling keeps of a row that was parsed: the one of this number, of a file or in memory."""
    task, repeat = row.get(TASK), row.get(REPEAT)
    for name, index in ((TASK, task), (REPEAT, repeat)):
        if type(index) is not int or abs(index) >= _FAR:
            why = f"{name} is {str(index)[:40]!r}, not a whole number" if name in row else f"it has no {name}"
            place = f"{path}, line {number}" if path else f"row {number}"
            hint = "rows are told apart by _ng_task_index and _ng_rollout_index, which `eval run` writes; "
            hint += "`blade diagnose` reads files without them"
            raise Unreadable(f"{place}: {why}", hint, "rows-without-indices")
    assert isinstance(task, int)
    assert isinstance(repeat, int)
    response, reference, server = row.get("response"), row.get("agent_ref"), row.get("_ng_environment_server")
    usage = response.get("usage") if type(response) is dict else None
    agent = reference.get("name") if type(reference) is dict else None
    numbers = own = _finite(row)
    info: Row = {"rollout_id": f"{task}:{repeat}", TASK: task, REPEAT: repeat}
    if "reward" in row:
        info["reward"] = row["reward"]
    # Of a name that both have, the usage's value counts in the statistics, and the row's own stands in the info.
    if type(usage) is dict:
        used = _finite(usage)
        info |= used
        numbers = own | used if row.keys().isdisjoint(usage) else _finite({**row, **usage})
    info |= {name: value for name, value in own.items() if name != "reward"}
    agent, server = (name if type(name) is str else None for name in (agent, server))
    return Keyed(task, repeat, agent, server, row.get(MASK) is True, numbers, encoded(info))


def _finite(values: Mapping[str, Any]) -> dict[str, int | float]:
    """The numbers among them whose names do not start with `_`; a bool is 0 or 1."""
    numbers: dict[str, int | float] = {}
    for name, value in values.items():
        kind = type(value)
        if kind is str or kind is dict or name[:1] == "_" or name == MASK:
            continue
        if (kind is float and math.isfinite(value)) or (kind is int and abs(value) < 1 << 1023):
            numbers[name] = value
        elif kind is bool:
            numbers[name] = int(value)
    return numbers


# -- tables ---------------------------------------------------------------------------------------

_COLUMNS = "task repeat agent server masked source line offset size content cells".split()


class Cells(NamedTuple):
    """The numbers of some rows, row by row: whose each is, the code of its column, and itself."""

    row: Ints
    column: Ints
    value: Floats


class Table:
    """Rows of files: keys and places as a frame, numbers of results by column; agents and servers are numbered as met, -1 is none."""

    def __init__(self, agents: Codes | None = None) -> None:
        self.agents: Codes = {None: -1} if agents is None else agents
        self.servers: Codes = {None: -1}
        self.columns: dict[str, int] = {}
        self.seen: list[Seen] = []
        self._keys, self._codes, self._values = array("q"), array("q"), array("d")
        self._infos, self._ends = bytearray(), array("q", [0])
        self._shapes: dict[tuple[str, ...], array[int]] = {}
        self._unpacked: dict[int, IO[bytes]] = {}
        self._open: dict[int, IO[bytes]] = {}

    def __len__(self) -> int:
        return len(self._keys) // len(_COLUMNS)

    @property
    def paths(self) -> list[Path]:
        return [seen.path for seen in self.seen]

    def notices(self) -> list[str]:
        return [notice for seen in self.seen for notice in seen.notices()]

    def add(
        self, row: Keyed, line: int, content: int, source: int = 0, offset: int = 0, size: int = 0
    ) -> None:
        task, repeat, agent, server, masked, numbers, info = row
        names = tuple(numbers)
        if (codes := self._shapes.get(names)) is None:
            ranks = (self.columns.setdefault(name, len(self.columns)) for name in names)
            codes = self._shapes[names] = array("q", ranks)
        self._codes.extend(codes)
        self._values.extend(numbers.values())
        self._infos += info
        self._ends.append(len(self._infos))
        whose = self.agents.setdefault(agent, len(self.agents) - 1)
        where = self.servers.setdefault(server, len(self.servers) - 1)
        self._keys.extend((task, repeat, whose, where, masked, source, line, offset, size, content, len(names)))

    def read(self, path: Path, of: Callable[[Line, Seen], Keyed | None], keeps_lines: bool = True) -> Seen:
        """Add the rows of a file; lines that are no rows are noted."""
        source, seen = len(self.seen), Seen(path)
        self.seen.append(seen)
        unpacked: IO[bytes] | None = None
        if keeps_lines and path.is_file() and lines.is_compressed(path):
            unpacked = self._unpacked[source] = tempfile.TemporaryFile(prefix="blade-")  # noqa: SIM115
        for line in read(path, seen):
            row = of(line, seen)
            if row is not None:
                offset = line.offset if unpacked is None else unpacked.tell()
                if unpacked is not None:
                    unpacked.write(line.data)
                self.add(row, line.number, hash(line.data), source, offset, len(line.data))
        if unpacked is not None:
            unpacked.flush()
        return seen

    def frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(np.array(self._keys).reshape(-1, len(_COLUMNS)), columns=_COLUMNS)

    def cells(self, rows: Ints) -> Cells:
        """The numbers of rows in this order; `row` says which of them each number is of."""
        counts = np.array(self._keys)[_COLUMNS.index("cells") :: len(_COLUMNS)]
        before, wanted = np.cumsum(counts) - counts, counts[rows]
        place = np.arange(int(wanted.sum())) + np.repeat(before[rows] - (np.cumsum(wanted) - wanted), wanted)
        codes, values = np.array(self._codes, np.int64), np.array(self._values)
        return Cells(np.repeat(np.arange(rows.size), wanted), codes[place], values[place])

    def info(self, row: int) -> bytes:
        return bytes(self._infos[self._ends[row] : self._ends[row + 1]])

    def line(self, row: int) -> bytes:
        """A row as it stands in its file, without what surrounds it."""
        start = row * len(_COLUMNS) + _COLUMNS.index("source")
        source, _, offset, size = self._keys[start : start + 4]
        file = self._unpacked.get(source) or self._open.get(source)
        if file is None:
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            file = self._open[source] = self.seen[source].path.open("rb")
        return os.pread(file.fileno(), size, offset).strip().removeprefix(BOM).strip()

    def row(self, row: int) -> Row:
        """A row again, parsed, from the file in which it stands."""
        return plain(Line(0, 0, self.line(row), True), Seen(Path())) or {}

    def close(self) -> None:
        for file in (*self._open.values(), *self._unpacked.values()):
            file.close()
        self._open.clear()

    def __del__(self) -> None:
        self.close()


def names_of(codes: Codes) -> list[Any]:
    """Texts by their codes; the last, which -1 finds, is none."""
    return [*list(codes)[1:], None]


# -- files beside rollouts ------------------------------------------------------------------------


def beside(rollouts: Path, ending: str) -> Path:
    """The path of a sidecar: the name of the rollouts file without its endings, and this one."""
    packed = rollouts.name.removesuffix(".gz").removesuffix(".zst")
    stem = find.stem(rollouts) if packed != rollouts.name else rollouts.stem
    return rollouts.parent / f"{stem}{ending}"


def sidecar(rollouts: Path, ending: str) -> Path | None:
    """A sidecar of a file, packed or not, if there is one."""
    paths = (beside(rollouts, f"{ending}{pack}") for pack in ("", ".gz", ".zst"))
    return next((path for path in paths if path.is_file()), None)

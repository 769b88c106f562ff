"""Find the rows of one task in a finished index with the standard library alone, in milliseconds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from blade.tables import cache

_NO_INDEX = -(1 << 63)


class Place(NamedTuple):
    """Where one row lies."""

    repeat: int
    attempt: int
    offset: int
    length: int
    line: int  # 1-based


def places(path: Path, task: int) -> list[Place] | None:
    """The rows of a task by repeat; None where only the whole index can tell.

    That is: no index of the file as it is now, a compressed source, rows without indices, several
    agents, or two rows that claim the same key.
    """
    folder = cache.folder_for(path)
    try:
        known = json.loads(cache.unsealed((folder / "manifest.json").read_bytes()))
        stamp = cache.stamp_of(path)
        if tuple(known["stamp"]) != stamp or known["blocks"] or known["made_by"] != cache.made_by():
            return None
        best = _best(folder, [part for part in known["parts"] if part["rows"]], task)
        if not all(_is_line(path, place, stamp[0]) for place in best.values()):
            return None
    except (OSError, LookupError, TypeError, ValueError, RecursionError):
        return None
    return [best[repeat] for repeat in sorted(best)]


def row_bytes(path: Path, place: Place) -> bytes:
    """The line at a place."""
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), place.length, place.offset)


def _best(folder: Path, parts: list[dict[str, Any]], task: int) -> dict[int, Place]:
    """The row of each repeat with the highest attempt; LookupError where the parts cannot tell."""
    agents: set[str] = set()
    best: dict[int, Place] = {}
    for part in parts:
        for place in _in_part(folder, part, task, agents):
            known = best.get(place.repeat)
            if known is not None and known.attempt == place.attempt:
                raise LookupError("two rows of one key")
            if known is None or place.attempt > known.attempt:
                best[place.repeat] = place
    if len(agents) > 1:
        raise LookupError("several agents")
    return best


def _in_part(folder: Path, part: dict[str, Any], task: int, agents: set[str]) -> list[Place]:
    with (folder / part["file"]).open("rb") as file:
        header = json.loads(file.readline())
        first = file.tell()

        def column(name: str) -> bytes:
            kind, start, length = header[name]
            file.seek(first + start)
            data: bytes = file.read(length)
            if kind not in ("<i8", "json") or len(data) != length:
                raise LookupError(f"{name} is not as it was written")
            return data

        if "t.agent:texts" in header:
            agents.update(json.loads(column("t.agent:texts")))
        tasks = column("task_index")
        if _where(tasks, _NO_INDEX):
            raise LookupError("rows without a task index")
        rows = _where(tasks, task)
        columns = [column(name) for name in Place._fields] if rows else []
    places = [Place(*(memoryview(column).cast("q")[row] for column in columns)) for row in rows]
    if any(place.repeat < 0 for place in places):
        raise LookupError("rows without a repeat index")
    return [place._replace(line=place.line + int(part["first_line"]) + 1) for place in places]


def _where(column: bytes, wanted: int) -> list[int]:
    """The rows in which a column of 8-byte numbers holds `wanted`."""
    rows: list[int] = []
    if not _NO_INDEX <= wanted < -_NO_INDEX:
        return rows
    pattern = wanted.to_bytes(8, "little", signed=True)
    place = column.find(pattern)
    while place >= 0:
        if place % 8 == 0:
            rows.append(place // 8)
        place = column.find(pattern, place - place % 8 + 8)
    return rows


def _is_line(path: Path, place: Place, size: int) -> bool:
    """Does a line start and end where the index says."""
    end = place.offset + place.length
    with path.open("rb", buffering=0) as file:
        before = os.pread(file.fileno(), 1, place.offset - 1) if place.offset else b"\n"
        return before == b"\n" and (end == size or os.pread(file.fileno(), 1, end) == b"\n")

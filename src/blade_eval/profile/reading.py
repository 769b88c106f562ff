"""Turn a file of JSON lines into numbered lines and members, and keep what could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from blade.errors import NothingToRead
from blade.formats import careful, lines

SHOWN = 10  # of many lines or keys, so many are named
BOM = b"\xef\xbb\xbf"

Members = Mapping[str, msgspec.Raw]
members_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Line(NamedTuple):
    number: int  # from 1
    offset: int  # of its first byte in the (inflated) file
    data: bytes  # without the newline
    is_ended: bool  # by a newline


@dataclass
class Seen:
    """What a file held besides rows; nothing of it is dropped in silence."""

    path: Path
    n_lines: int = 0
    blank: list[int] = field(default_factory=list)
    not_finite: list[int] = field(default_factory=list)  # with NaN, infinities, 1e999: read as null
    bad: list[tuple[int, str]] = field(default_factory=list)  # and why

    def notices(self) -> list[str]:
        """What a reader must know, one sentence each."""
        told = []
        if self.blank:
            told.append(f"{self.path}: {_lines(self.blank)} blank; skipped")
        if self.not_finite:
            what = "NaN, Infinity or a number beyond any float"
            told.append(f"{self.path}: {_lines(self.not_finite)} {what}; read as null")
        told += [f"{self.path}, line {number}: {reason}; skipped" for number, reason in self.bad[:SHOWN]]
        if len(self.bad) > SHOWN:
            told.append(f"{self.path}: {len(self.bad) - SHOWN} more lines could not be read")
        return told


def _lines(numbers: list[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:SHOWN])
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return f"line {shown} holds" if len(numbers) == 1 else f"lines {shown}{more} hold"


def read(path: Path, seen: Seen) -> Iterator[Line]:
    """The lines of a file, compressed or not, that hold anything."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise NothingToRead(
            f"{path} {what}", "check the path; a rollouts file ends in .jsonl, .gz or .zst", "no-rollouts"
        )
    packed = lines.is_compressed(path)
    blocks = lines.stream_blocks(path) if packed else lines.plain_blocks(path, 0, path.stat().st_size)
    number = 0
    for block in blocks:
        if block.broken:
            seen.bad.append((number + 1, block.broken))
        if block.too_long:
            number += 1
            seen.bad.append((number, f"a line of {block.too_long:,} bytes is longer than we read"))
        offset = block.offset
        *ended, last = block.data[: block.size].split(b"\n")
        for data in ended:
            number += 1
            yield Line(number, offset, data, True)
            offset += len(data) + 1
        if last:
            number += 1
            yield Line(number, offset, last, False)


def rows(path: Path, seen: Seen) -> Iterator[tuple[Line, Members]]:
    """Each line with the members of its object; other lines are noted in `seen`."""
    for line in read(path, seen):
        seen.n_lines = line.number
        found = members(line, seen)
        if found is not None:
            yield line, found


def members(line: Line, seen: Seen) -> Members | None:
    """The members of the object in a line; None, and noted in `seen`, where there is none."""
    try:
        return members_of(line.data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    data = line.data.removeprefix(BOM).strip()
    if not data:
        seen.blank.append(line.number)
        return None
    found, reason = careful.members(data)
    if found is None:
        torn = "" if line.is_ended else "the file ends inside this line, as a killed run leaves it: "
        seen.bad.append((line.number, f"{torn}{reason}"))
    elif b"NaN" in data or b"Infinity" in data:
        seen.not_finite.append(line.number)
    return found

"""What was taken out, and where: counts by file, line, field and kind, never a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

_MAX_PLACES = 20_000  # listed one by one; the counts by kind and file are whole beyond it

_SHOWN = 10  # leaks told one by one


class Place(msgspec.Struct, frozen=True):
    """Where something was taken out, of which kind, and how often."""

    file: str
    line: int  # from 1
    field: str  # of the row, dotted; empty in a text
    kind: str
    count: int


class Removed(msgspec.Struct, frozen=True):
    """What a file or a folder lost on its way out."""

    places: tuple[Place, ...] = ()
    kinds: dict[str, int] = {}
    files: dict[str, int] = {}  # every file that was given -> how many values it lost
    left_out: dict[str, str] = {}  # files that were not written, and why
    unread: tuple[str, ...] = ()  # those of them whose names say that they are texts
    leaks: int = 0  # found in what was written; anything but 0 is a fault
    unlisted: int = 0  # values beyond those that `places` lists
    leaked: tuple[Place, ...] = ()  # where the leaks are, in what was about to be written

    @property
    def total(self) -> int:
        return sum(self.kinds.values())

    @property
    def read(self) -> int:
        """Files that were looked into."""
        return len(self.files) - len(self.left_out)


class Tally:
    """Counts while files are cleaned."""

    def __init__(self) -> None:
        self.file, self.line = "", 0
        self.places: Counter[tuple[str, int, str, str]] = Counter()
        self.kinds: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.left_out: dict[str, str] = {}
        self.unread: list[str] = []
        self.leaks = self.unlisted = 0
        self.leaked: tuple[Place, ...] = ()
        self._gone: dict[str, list[tuple[int, int]]] = {}  # by file: lines, and how many breaks went there
        self._before: list[tuple[int, int]] = []  # of those, what had gone when the text was read

    def seen(self, field: str, kind: str, value: str) -> None:
        place = (self.file, self.line, field, kind)
        if len(self.places) < _MAX_PLACES or place in self.places:
            self.places[place] += 1
        else:
            self.unlisted += 1
        self.kinds[kind] += 1
        self.files[self.file] += 1

    def at(self, before: int, line: int, gone: int) -> None:
        """What is seen next stands in this line of a text that is read again after lines of it went."""
        lost = self._gone.setdefault(self.file, [])
        if not line:
            self._before = sorted(lost)
            return
        line += before
        for place, breaks in self._before:
            line += breaks if place < line else 0
        self.line = line
        if gone:
            lost.append((line, gone))

    def left(self, why: str, is_told: bool) -> None:
        """The file cannot be looked into; `is_told`: its name says that it could be."""
        self.left_out[self.file] = why
        if is_told:
            self.unread.append(self.file)

    def renamed(self, change: Callable[[str], str]) -> None:
        """Tell fields otherwise: what is known by now to be private may stand in a key."""
        old, self.places = self.places, Counter()
        for (file, line, field, kind), count in old.items():
            self.places[file, line, change(field), kind] += count

    def told(self) -> Removed:
        places = tuple(Place(*place, count) for place, count in sorted(self.places.items()))
        return Removed(
            places, dict(sorted(self.kinds.items())), dict(sorted(self.files.items())), self.left_out,
            tuple(self.unread), self.leaks, self.unlisted, self.leaked,
        )  # fmt: skip


def renamed(removed: Removed, name: str) -> Removed:
    """What one file lost, told under another name."""
    return msgspec.structs.replace(
        removed,
        places=tuple(msgspec.structs.replace(place, file=name) for place in removed.places),
        leaked=tuple(msgspec.structs.replace(place, file=name) for place in removed.leaked),
        files={name: sum(removed.files.values())},
        left_out=dict.fromkeys([name] * bool(removed.left_out), "; ".join(removed.left_out.values())),
        unread=(name,) * bool(removed.unread),
    )


def leak_lines(removed: Removed) -> list[str]:
    """What is to be said of leaks: how many, and where, without the values."""
    if not removed.leaks:
        return []
    lines = [f"LEAK: {removed.leaks:,} values that look private are left; nothing was written"]
    for place in removed.leaked[:_SHOWN]:
        field = f", field {place.field}" if place.field else ""
        lines.append(f"  {place.file}, line {place.line}{field}: {place.count:,} {place.kind}")
    if len(removed.leaked) > _SHOWN:
        lines.append(f"  and {len(removed.leaked) - _SHOWN:,} further places")
    return lines


def as_json(removed: Removed) -> str:
    """The report for a program."""
    told = {"schema": "blade.removed/1", "total": removed.total, **msgspec.to_builtins(removed)}
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode() + "\n"

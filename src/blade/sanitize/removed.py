"""What was taken out, and where: counts by file, line, field and kind, never a value."""

from __future__ import annotations

from collections import Counter

import msgspec

_MAX_PLACES = 20_000  # listed one by one; the counts by kind and file are whole beyond it


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
    files: dict[str, int] = {}  # every file that was read -> how many values it lost
    left_out: dict[str, str] = {}  # files that were not written, and why
    leaks: int = 0  # found in what was written; anything but 0 is a fault
    unlisted: int = 0  # values beyond those that `places` lists

    @property
    def total(self) -> int:
        return sum(self.kinds.values())


class Tally:
    """Counts while files are cleaned."""

    def __init__(self) -> None:
        self.file, self.line = "", 0
        self.places: Counter[tuple[str, int, str, str]] = Counter()
        self.kinds: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.left_out: dict[str, str] = {}
        self.leaks = self.unlisted = 0

    def seen(self, field: str, kind: str, value: str) -> None:
        place = (self.file, self.line, field, kind)
        if len(self.places) < _MAX_PLACES or place in self.places:
            self.places[place] += 1
        else:
            self.unlisted += 1
        self.kinds[kind] += 1
        self.files[self.file] += 1

    def told(self) -> Removed:
        places = tuple(Place(*place, count) for place, count in sorted(self.places.items()))
        return Removed(
            places, dict(sorted(self.kinds.items())), dict(sorted(self.files.items())), self.left_out,
            self.leaks, self.unlisted,
        )  # fmt: skip


def as_json(removed: Removed) -> str:
    """The report for a program."""
    told = {"schema": "blade.removed/1", "total": removed.total, **msgspec.to_builtins(removed)}
    return msgspec.json.format(msgspec.json.encode(told), indent=2).decode() + "\n"

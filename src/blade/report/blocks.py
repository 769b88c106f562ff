"""Lay a report out as blocks, so that each sentence and each number is written once, for every page."""

from __future__ import annotations

import re
from typing import ClassVar

import msgspec

# Every text below is plain text and may hold anything a rollout held: the page that lays a block out
# neutralises it. `str` is prose of ours, without a number that the rows could change; `Code` is a name or a
# value taken from elsewhere; `Num` and `Said` are what the rows say, and carry the query that gives it again.


class Code(msgspec.Struct, frozen=True):
    text: str
    kind: ClassVar[str] = "code"


class Strong(msgspec.Struct, frozen=True):
    text: str
    kind: ClassVar[str] = "strong"


class Badge(msgspec.Struct, frozen=True):
    text: str
    tone: str  # good, warning, bad, quiet
    kind: ClassVar[str] = "badge"


class Num(msgspec.Struct, frozen=True):
    """A number as printed with its unit, its unrounded value, and the query that gives the value again."""

    text: str
    value: float
    query: str
    is_strong: bool = False
    kind: ClassVar[str] = "num"


class Said(msgspec.Struct, frozen=True):
    """A sentence that a stage wrote, as printed, and the query that gives it again.

    `written` is the sentence as the stage wrote it, where printing cut or reworded it.
    """

    text: str
    query: str
    written: str | None = None
    kind: ClassVar[str] = "said"

    @property
    def value(self) -> str:
        return self.text if self.written is None else self.written

    @property
    def line(self) -> Line:
        return prose(self.text)


Span = str | Code | Strong | Badge | Num | Said
Line = tuple[Span, ...]


class Heading(msgspec.Struct, frozen=True):
    line: Line
    kind: ClassVar[str] = "heading"


class Para(msgspec.Struct, frozen=True):
    line: Line
    kind: ClassVar[str] = "para"


class Bullets(msgspec.Struct, frozen=True):
    items: tuple[Line, ...]
    kind: ClassVar[str] = "bullets"


class Tile(msgspec.Struct, frozen=True):
    """A headline number: what it is, its value, and what it rests on."""

    label: str
    value: Line
    detail: Line


class Tiles(msgspec.Struct, frozen=True):
    tiles: tuple[Tile, ...]
    kind: ClassVar[str] = "tiles"


class Table(msgspec.Struct, frozen=True):
    header: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    align: str  # one letter per column: l or r
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows) or len(self.align) != len(self.header):
            raise ValueError(f"a row or the alignment does not fit the header {self.header}")


class Quote(msgspec.Struct, frozen=True):
    """Foreign text, quoted, and where it stands."""

    label: Line
    text: str
    kind: ClassVar[str] = "quote"


class Commands(msgspec.Struct, frozen=True):
    """Lines to type, each with what it shows."""

    lines: tuple[tuple[str, str], ...]
    kind: ClassVar[str] = "commands"


class Figure(msgspec.Struct, frozen=True):
    name: str  # buckets, tasks, funnel, tokens
    run: str | None  # None: all runs
    file: str  # in the folder `figures`
    caption: Line
    svg: str
    kind: ClassVar[str] = "figure"


Block = Heading | Para | Bullets | Tiles | Table | Quote | Commands | Figure


class Section(msgspec.Struct, frozen=True):
    title: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        # Titles may hold the name of a run: only what a link can hold without escapes stays.
        return re.sub("[^a-z0-9-]", "", self.title.lower().replace(" ", "-")) or "section"


def para(*spans: Span) -> Para:
    return Para(spans)


def prose(text: str) -> Line:
    """A sentence of a stage as a line: what it puts between backticks is a name taken from elsewhere."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # the last one opens a name that was cut off
        parts[-2:] = ["`".join(parts[-2:])]
    spans = (
        Code(part) if place % 2 else part
        for place, part in enumerate(parts)
        if place % 2 == 0 or part.strip()
    )
    return tuple(span for span in spans if span != "")


def plain(line: Line, tick: str = "") -> str:
    """A line as a reader sees it without styles; `tick` stands around names taken from elsewhere."""
    return "".join(_plain(span, tick) for span in line)


_INTERVAL = re.compile(r"\[([^\[\],]+) points, ([^\[\],]+ points)\]")


def short(line: Line, tick: str = "") -> str:
    """The same for a terminal: an interval says its unit once."""
    return _INTERVAL.sub(r"[\1, \2]", plain(line, tick))


def _plain(span: Span, tick: str) -> str:
    match span:
        case str():
            return span
        case Code():
            return f"{tick}{span.text.replace('`', '') if tick else span.text}{tick}"
        case Said():
            return plain(span.line, tick)
        case _:
            return span.text


def cells(*values: Span | Line) -> tuple[Line, ...]:
    """A table row; a lone span stands for a line of one."""
    return tuple(value if isinstance(value, tuple) else (value,) for value in values)


def named(figures: tuple[Figure, ...], name: str, run: str | None) -> list[Block]:
    """The figure of this name and run, if it was drawn."""
    return [figure for figure in figures if figure.name == name and figure.run == run]

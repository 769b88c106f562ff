"""The blocks a report is laid out from: each sentence is written once, for every page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

# Every text below is plain text and may hold anything a rollout held: the page that lays a block out
# neutralises it. `str` is prose, `Code` is a name or value taken from elsewhere.


@dataclass(frozen=True, slots=True)
class Code:
    text: str
    kind: ClassVar[str] = "code"


@dataclass(frozen=True, slots=True)
class Strong:
    text: str
    kind: ClassVar[str] = "strong"


@dataclass(frozen=True, slots=True)
class Badge:
    text: str
    tone: str  # good, warning, bad, quiet
    kind: ClassVar[str] = "badge"


Span = str | Code | Strong | Badge
Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    line: Line
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True, slots=True)
class Para:
    line: Line
    kind: ClassVar[str] = "para"


@dataclass(frozen=True, slots=True)
class Bullets:
    items: tuple[Line, ...]
    kind: ClassVar[str] = "bullets"


@dataclass(frozen=True, slots=True)
class Tile:
    """A headline number: what it is, its value, and what it rests on."""

    label: str
    value: str
    detail: str


@dataclass(frozen=True, slots=True)
class Tiles:
    tiles: tuple[Tile, ...]
    kind: ClassVar[str] = "tiles"


@dataclass(frozen=True, slots=True)
class Table:
    header: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    align: str  # one letter per column: l or r
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows) or len(self.align) != len(self.header):
            raise ValueError(f"a row or the alignment does not fit the header {self.header}")


@dataclass(frozen=True, slots=True)
class Quote:
    """Foreign text, quoted, and where it stands."""

    label: Line
    text: str
    kind: ClassVar[str] = "quote"


@dataclass(frozen=True, slots=True)
class Commands:
    """Lines to type, each with what it shows."""

    lines: tuple[tuple[str, str], ...]
    kind: ClassVar[str] = "commands"


@dataclass(frozen=True, slots=True)
class Figure:
    name: str  # buckets, tasks, funnel, tokens
    run: str | None  # None: all runs
    file: str  # in the folder `figures`
    caption: str
    svg: str
    kind: ClassVar[str] = "figure"


Block = Heading | Para | Bullets | Tiles | Table | Quote | Commands | Figure


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        return self.title.lower().replace(" ", "-")


def para(*spans: Span) -> Para:
    return Para(spans)


def cells(*values: Span | Line) -> tuple[Line, ...]:
    """A table row; a lone span stands for a line of one."""
    return tuple(value if isinstance(value, tuple) else (value,) for value in values)


def named(figures: tuple[Figure, ...], name: str, run: str | None) -> list[Block]:
    """The figure of this name and run, if it was drawn."""
    return [figure for figure in figures if figure.name == name and figure.run == run]

"""Lay a report out as blocks, so that each sentence and each number is written once, for every page.

Every text below is plain text and may hold anything a rollout held: the page that lays a block out neutralises
it. `str` is prose of ours, without a number that the rows could change; `Code` is a name or a value taken from
elsewhere; `Num` and `Said` are what the rows say, and carry the query that gives it again: the claims of a page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

import msgspec

from blade.query.comments import escape_comment, unescape_comment


class Part(msgspec.Struct, frozen=True):
    """A span or a block: what the templates ask its kind."""

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()


class Code(Part, frozen=True):
    text: str


class Strong(Part, frozen=True):
    text: str


class Badge(Part, frozen=True):
    text: str
    tone: str  # good, warning, bad, quiet


class Num(Part, frozen=True):
    """A number as printed with its unit, its unrounded value, and the query that gives the value again."""

    text: str
    value: float
    query: str
    is_strong: bool = False


class Said(Part, frozen=True):
    """A sentence that a stage wrote, as printed, and its query; `written` is the stage's own wording where printing cut or reworded it."""

    text: str
    query: str
    written: str | None = None

    @property
    def value(self) -> str:
        return self.text if self.written is None else self.written

    @property
    def line(self) -> Line:
        return prose(self.text)


Span = str | Code | Strong | Badge | Num | Said
Line = tuple[Span, ...]


class Heading(Part, frozen=True):
    line: Line


class Para(Part, frozen=True):
    line: Line


class Bullets(Part, frozen=True):
    items: tuple[Line, ...]


class Table(Part, frozen=True):
    header: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    align: str  # one letter per column: l or r

    def __post_init__(self) -> None:
        if any(len(row) != len(self.header) for row in self.rows) or len(self.align) != len(self.header):
            raise ValueError(f"a row or the alignment does not fit the header {self.header}")


class Quote(Part, frozen=True):
    """Foreign text, quoted, and where it stands."""

    label: Line
    text: str


class Commands(Part, frozen=True):
    """Lines to type, each with what it shows."""

    lines: tuple[tuple[str, str], ...]


class Figure(Part, frozen=True):
    name: str  # buckets, tasks, funnel, tokens
    run: str | None  # None: all runs
    file: str  # in the folder `figures`
    caption: Line
    svg: str


Block = Heading | Para | Bullets | Table | Quote | Commands | Figure


class Section(msgspec.Struct, frozen=True):
    title: str
    blocks: tuple[Block, ...]

    @property
    def anchor(self) -> str:
        # Titles may hold the name of a run: only what a link can hold without escapes stays.
        return re.sub("[^a-z0-9-]", "", self.title.lower().replace(" ", "-")) or "section"


# ---- Building blocks -----------------------------------------------------------------------------


def para(*spans: Span) -> Para:
    return Para(spans)


def prose(text: str) -> Line:
    """A sentence of a stage as a line: what it puts between backticks is a name taken from elsewhere."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # the last one opens a name that was cut off
        parts[-2:] = ["`".join(parts[-2:])]
    pieces = (Code(part) if place % 2 else part for place, part in enumerate(parts) if place % 2 == 0 or part.strip())
    return tuple(piece for piece in pieces if piece != "")


def cells(*values: Span | Line) -> tuple[Line, ...]:
    """A table row; a lone span stands for a line of one."""
    return tuple(value if isinstance(value, tuple) else (value,) for value in values)


# ---- Claims: the numbers and sentences of a page that carry their query --------------------------

# How Markdown carries claims: `<!--c12-->` behind a number, all queries in one comment at the end.
OPENING, CLOSING = "<!--blade claims", "-->"
_LISTED = re.compile(rf"^{OPENING}\n(.*?)^{CLOSING}", re.MULTILINE | re.DOTALL)
_MINUS = str.maketrans("−", "-")
_NUMBER = re.compile(r"(?P<sign>[+-]?)(?P<bound>[<>]?)(?P<digits>\d[\d,]*(?:\.\d+)?)(?P<power>e[+-]?\d+)?")
_SCALES = {"%": 100.0, "points": 100.0}


class Claim(msgspec.Struct, frozen=True):
    """One number or sentence of a page, and the query that gives its value again."""

    id: str  # c1, c2, … in the order of print, as the pages name it
    value: float | str  # the unrounded number, or a sentence as the engine wrote it
    text: str  # as printed
    query: str  # what gives the value again: a measure, a SELECT over the tables, or engine.LIST(…).FIELD


class Claims:
    """The claims of a page in the order of print, one for each query and text."""

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self._ids: dict[tuple[str, str], str] = {}
        self.listed: list[Claim] = []
        for span in (span for block in blocks for line in lines(block) for span in line if isinstance(span, Num | Said)):
            if (key := (span.query, span.text)) not in self._ids:
                self._ids[key] = f"c{len(self._ids) + 1}"
                self.listed.append(Claim(self._ids[key], span.value, span.text, span.query))

    def id_of(self, span: Num | Said) -> str:
        return self._ids[span.query, span.text]

    def comment(self) -> str:
        """The comment at the end of a Markdown file: a line for each claim, its id and its query."""
        entries = [f"{claim.id} {escape_comment(claim.query)}" for claim in self.listed]
        return "\n".join([OPENING, *entries, CLOSING])


def claims_of(sections: Iterable[Section]) -> Claims:
    """The claims of a page that is laid out in sections."""
    return Claims(block for section in sections for block in section.blocks)


def lines(block: Block) -> Iterator[Line]:
    """The lines of a block in the order of print; foreign text and commands are none."""
    match block:
        case Heading() | Para():
            yield block.line
        case Bullets():
            yield from block.items
        case Table():
            for row in block.rows:
                yield from row
        case Quote():
            yield block.label
        case Figure():
            yield block.caption
        case Commands():
            return


def queries(page: str) -> dict[str, str]:
    """The queries that a Markdown page lists at its end, by the ids of their claims."""
    comments = _LISTED.findall(page)
    entries = (line.partition(" ") for line in comments[-1].splitlines()) if comments else ()
    return {name: unescape_comment(query) for name, _, query in entries}


def agrees(text: str, value: float | str) -> bool:
    """Whether a printed text states this value: a number to its last digit; a sentence, be it cut or its names reworded, by its numbers."""
    if isinstance(value, str):
        stated, written = _numbers(text), _numbers(value)
        stated = stated[:-1] if text.rstrip(".").endswith("…") else stated  # the last may be cut in two
        places = range(len(written) - len(stated) + 1)
        return any(written[place : place + len(stated)] == stated for place in places)
    hit = _NUMBER.search(text.translate(_MINUS))
    if hit is None or not math.isfinite(value):
        return False
    scaled = value * next((scale for unit, scale in _SCALES.items() if unit in text), 1.0)
    number = float(f"{hit['digits'].replace(',', '')}{hit['power'] or ''}") * (-1 if hit["sign"] == "-" else 1)
    if hit["bound"]:
        scaled, number = abs(scaled), abs(number)
        return 0 <= scaled < number if hit["bound"] == "<" else scaled > number
    digits = len(hit["digits"].partition(".")[2])
    return abs(scaled - number) <= 0.5000001 * 10.0**-digits * float(f"1{hit['power'] or ''}") + 1e-9


def _numbers(sentence: str) -> list[str]:
    return [hit["digits"] for hit in _NUMBER.finditer(sentence)]

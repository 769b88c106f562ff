"""Number the claims of a page: walk its blocks for numbers and sentences that carry their query."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

import msgspec

from blade.query.comments import escape_comment, unescape_comment
from blade.report.blocks import (
    Block,
    Bullets,
    Commands,
    Figure,
    Heading,
    Line,
    Num,
    Para,
    Quote,
    Said,
    Section,
    Table,
    Tiles,
)

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
        for span in spans(blocks):
            self._add(span)

    def id_of(self, span: Num | Said) -> str:
        return self._ids[span.query, span.text]

    def comment(self) -> str:
        """The comment at the end of a Markdown file: a line for each claim, its id and its query."""
        lines = [f"{claim.id} {escape_comment(claim.query)}" for claim in self.listed]
        return "\n".join([OPENING, *lines, CLOSING])

    def _add(self, span: Num | Said) -> None:
        key = (span.query, span.text)
        if key not in self._ids:
            self._ids[key] = f"c{len(self._ids) + 1}"
            self.listed.append(Claim(self._ids[key], span.value, span.text, span.query))


def claims_of(sections: Iterable[Section]) -> Claims:
    """The claims of a page that is laid out in sections."""
    return Claims(block for section in sections for block in section.blocks)


def spans(blocks: Iterable[Block]) -> Iterator[Num | Said]:
    """What carries a query, in the order of print."""
    for block in blocks:
        for line in lines(block):
            for span in line:
                if isinstance(span, Num | Said):
                    yield span


def lines(block: Block) -> Iterator[Line]:
    """The lines of a block in the order of print; foreign text and commands are none."""
    match block:
        case Heading() | Para():
            yield block.line
        case Bullets():
            yield from block.items
        case Tiles():
            for tile in block.tiles:
                yield tile.value
                yield tile.detail
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
    """Whether a printed text states this value: a number to its last digit, a sentence by its numbers.

    A sentence may be a part of what was written, cut at its end, and names in it may be reworded.
    """
    if isinstance(value, str):
        stated, written = _numbers(text), _numbers(value)
        stated = stated[:-1] if text.rstrip(".").endswith("…") else stated  # the last may be cut in two
        places = range(len(written) - len(stated) + 1)
        return any(written[place : place + len(stated)] == stated for place in places)
    hit = _NUMBER.search(text.translate(_MINUS))
    if hit is None or not math.isfinite(value):
        return False
    scaled = value * next((scale for unit, scale in _SCALES.items() if unit in text), 1.0)
    number = float(f"{hit['digits'].replace(',', '')}{hit['power'] or ''}") * (
        -1 if hit["sign"] == "-" else 1
    )
    if hit["bound"]:
        scaled, number = abs(scaled), abs(number)
        return 0 <= scaled < number if hit["bound"] == "<" else scaled > number
    digits = len(hit["digits"].partition(".")[2])
    return abs(scaled - number) <= 0.5000001 * 10.0**-digits * float(f"1{hit['power'] or ''}") + 1e-9


def _numbers(sentence: str) -> list[str]:
    return [hit["digits"] for hit in _NUMBER.finditer(sentence)]

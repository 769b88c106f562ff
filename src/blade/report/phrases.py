"""Compose lines of a page: sentences with their numbers in place, names as code, lists, table rows; print them as plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Formatter

from blade import hostile
from blade.report.blocks import Block, Code, Figure, Heading, Line, Para, Said, Span, Strong, Table, prose


def line(template: str, *parts: Span | Line, **named: Span | Line) -> Line:
    """A sentence with numbers and names in place of {}, strong between **; the template is ours alone, anything from elsewhere a part."""
    spans: list[Span] = []
    following = iter(parts)
    for text, name, _, _ in Formatter().parse(template):
        pieces: list[Span] = [Strong(piece) if place % 2 else piece for place, piece in enumerate(text.split("**"))]
        spans += [piece for piece in pieces if piece != ""]
        if name is not None:
            part = named[name] if name else next(following)
            spans += part if isinstance(part, tuple) else (part,)
    return tuple(spans)


def paragraph(template: str, *parts: Span | Line, **named: Span | Line) -> Para:
    """A paragraph of such a sentence."""
    return Para(line(template, *parts, **named))


# What a page explains beside its tables: sentences by name. What things are called, and their colours in charts.
NOTES, LABELS = (
    json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8")) for file in ("notes.json", "labels.json")
)


def explained(name: str, *parts: Span | Line) -> Line:
    """The explanation of this name, with its numbers and names in their places."""
    return line(NOTES[name], *parts)


def heading(*spans: Span) -> Heading:
    return Heading(spans)


def code(name: str, limit: int = 80) -> Code:
    """A name taken from elsewhere, cleaned and cut."""
    return Code(hostile.line(name, limit))


def name(text: str) -> Line:
    """A name with its parts between backticks as code; all of it, where digits might be taken for a number."""
    line = prose(text)
    if any(letter.isdigit() for span in line if isinstance(span, str) for letter in span):
        return (Code(text.replace("`", "")),)
    return line


def joined(parts: Sequence[Line], between: str = ", ", last: str = " and ") -> Line:
    """`a, b and c` of lines."""
    spans: list[Span] = []
    for place, part in enumerate(parts):
        spans += [last if place == len(parts) - 1 else between] if place else []
        spans += part
    return tuple(spans)


def table(header: str, align: str, rows: Iterable[Sequence[Span | Line]]) -> Table:
    """A table: its header with | between the names, its rows cell by cell, a lone span for a line of one."""
    lines = tuple(tuple(cell if isinstance(cell, tuple) else (cell,) for cell in row) for row in rows)
    return Table(tuple(header.split("|")), lines, align)


def named(figures: tuple[Figure, ...], name: str, run: str | None) -> list[Block]:
    """The figure of this name and run, if it was drawn."""
    return [figure for figure in figures if figure.name == name and figure.run == run]


def plain(line: Line, tick: str = "") -> str:
    """A line as a reader sees it without styles; `tick` stands around names taken from elsewhere."""
    return "".join(_plain(span, tick) for span in line)


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


_INTERVAL = re.compile(r"\[([^\[\],]+) points, ([^\[\],]+ points)\]")


def short(line: Line, tick: str = "") -> str:
    """The same for a terminal: an interval says its unit once."""
    return _INTERVAL.sub(r"[\1, \2]", plain(line, tick))

"""Turn a Markdown report of ours into lines that know what they are: prose, table, quotation, command."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

HEADING, PROSE, CAPTION, HEADER, ROW, QUOTE, COMMAND, OTHER = (
    "heading", "prose", "caption", "header", "row", "quote", "command", "other",
)  # fmt: skip


class Line(msgspec.Struct, frozen=True):
    number: int  # from 1
    text: str
    role: str
    section: str  # the headings above it
    label: str = ""  # of a quotation: the paragraph above it
    header: tuple[str, ...] = ()  # of a table row: the cells of its header
    table: int = 0  # the line of the table's header


_FENCE = re.compile(r"^(`{3,})(\w*)\s*$")
_BORDER = re.compile(r"(?<!\\)\|")
# A comment may span lines; its line breaks stay, so that lines keep their numbers.
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.+?)(?<!`)\1(?!`)")
_QUOTED = re.compile(r"“[^“”]*”|(?<!\w)\"[^\"]{3,}\"(?!\w)")
_STOP = re.compile(r"[.!?][”)*_]*\s+(?=[“(*_`]*[A-Z0-9])")


def stripped(text: str) -> str:
    """A Markdown report without its anchors."""
    return _COMMENT.sub(lambda hit: "\n" * hit[0].count("\n"), text)


def lines(text: str) -> list[Line]:
    """The lines of a report, in order."""
    found: list[Line] = []
    section, label, fence, role, table = "", "", "", "", 0
    header: tuple[str, ...] = ()
    for number, raw in enumerate(text.split("\n"), 1):
        opened = _FENCE.match(raw)
        if fence:
            closes = opened is not None and len(opened[1]) >= len(fence) and not opened[2]
            found.append(Line(number, raw, OTHER if closes else role, section, label))
            fence = "" if closes else fence
            continue
        if opened:
            fence, role = opened[1], COMMAND if opened[2] == "sh" else QUOTE
            found.append(Line(number, raw, OTHER, section))
        elif raw.startswith("#"):
            section = headed(section, raw)
            found.append(Line(number, raw, HEADING, section))
        elif raw.startswith("|"):
            previous = found[-1].role if found else ""
            if previous not in (HEADER, ROW) and not (table and found[-1].table == table):
                header, table = tuple(cells(raw)), number
                found.append(Line(number, raw, HEADER, section, "", header, table))
            else:
                is_rule = set(raw) <= set("|-: ")
                found.append(Line(number, raw, OTHER if is_rule else ROW, section, "", header, table))
        elif raw.strip():
            label = raw
            found.append(Line(number, raw, CAPTION if raw.startswith("![") else PROSE, section))
        else:
            found.append(Line(number, raw, OTHER, section))
    return found


def headed(section: str, raw: str) -> str:
    """The headings above a line, once a further one has come."""
    depth = len(raw) - len(raw.lstrip("#"))
    return " > ".join([*section.split(" > ")[: max(0, depth - 1)], raw.lstrip("# ")])


def cells(raw: str) -> list[str]:
    return [part.strip() for part in _BORDER.split(raw.strip())[1:-1]]


def with_cell(raw: str, column: int, text: str) -> str:
    """A table row with another cell."""
    kept = cells(raw)
    kept[column] = text
    return f"| {' | '.join(kept)} |"


def code_spans(raw: str) -> Iterator[tuple[int, int]]:
    """Where the code of a line stands, without its backticks."""
    for hit in _CODE.finditer(raw):
        yield hit.span(2)


def quoted_spans(raw: str) -> Iterator[tuple[int, int]]:
    """Where a line quotes, without the marks."""
    for hit in _QUOTED.finditer(masked(raw, quotes=False)):
        yield hit.start() + 1, hit.end() - 1


def masked(raw: str, *, quotes: bool = True) -> str:
    """A line of the same length in which code, and quotations, are blank."""
    patterns = (_CODE, _QUOTED) if quotes else (_CODE,)
    for pattern in patterns:
        raw = pattern.sub(lambda hit: "\x00" * len(hit[0]), raw)
    return raw


def sentences(raw: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a paragraph begin and end."""
    start, text = 0, masked(raw)
    for hit in _STOP.finditer(text):
        if text[: hit.start()].endswith(("e.g", "i.e", "vs")):
            continue
        yield start, hit.end()
        start = hit.end()
    if raw[start:].strip():
        yield start, len(raw)


def replaced(raw: str, start: int, end: int, text: str) -> str:
    return raw[:start] + text + raw[end:]

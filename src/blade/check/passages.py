"""List the passages of a report: its sentences and table cells, each with what names its subject."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from blade.check.document import Comment, Document, Row, Table

_QUOTED = re.compile(
    r"“(?P<a>[^“”]{3,2000})”|(?<![\w\"])\"(?P<b>[^\"]{3,2000})\"(?![\w\"])|«(?P<c>[^«»]{3,2000})»"
    r"|„(?P<d>[^„“”]{3,2000})[“”]|「(?P<e>[^「」]{3,2000})」"
)
_CODE = re.compile(r"`[^`]{1,2000}`")


class Passage(msgspec.Struct, frozen=True):
    """A sentence, or one cell of a table."""

    own: str  # what is visible: the offsets of the comments are in it
    text: str  # the sentence, or the whole row of the table with its header
    line: int
    last_line: int
    kind: str  # sentence, heading, item, quote, cell
    headings: tuple[str, ...]
    comments: tuple[Comment, ...] = ()
    before: str = ""  # the sentences before it in its paragraph
    label: str = ""  # of a cell: the first cell of its row and the header of its column
    around: str = ""  # of a cell: the paragraph above the table
    header: str = ""
    column: int = 0

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(range(self.line, self.last_line + 1))


def passages(document: Document) -> Iterator[Passage]:
    for item in document.sentences:
        place = (item.line, item.last_line, item.kind, item.headings)
        yield Passage(item.text, item.text, *place, item.comments, item.before)
    for table in document.tables:
        for row in table.rows:
            yield from cells(table, row)


def cells(table: Table, row: Row) -> Iterator[Passage]:
    """The cells of a row; its text is one line: `Category: crm | Tasks: 4`."""
    heads = [cell.text for cell in table.header] + [""] * len(row.cells)
    pairs = list(zip(heads, row.cells, strict=False))
    text = " | ".join(f"{head}: {cell.text}" if head else cell.text for head, cell in pairs)
    lead = " ".join(sentence.text for sentence in table.lead)
    for column, (head, cell) in enumerate(pairs):
        label = f"{row.cells[0].text} {head}" if column else head
        place = (row.line, row.line, "cell", table.headings)
        yield Passage(cell.text, text, *place, cell.comments, "", label, lead, head, column)


def blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """A text with blanks in place of some parts of it."""
    letters = list(text)
    for start, end in spans:
        letters[start:end] = " " * (end - start)
    return "".join(letters)


def quotes_in(text: str) -> Iterator[tuple[str, int, int]]:
    """What stands in quotation marks, outside code."""
    codes = [hit.span() for hit in _CODE.finditer(text)] if "`" in text else []
    for hit in _QUOTED.finditer(text):
        if not any(start < hit.start() and hit.end() <= end for start, end in codes):
            yield hit[hit.lastgroup or 0], *hit.span()

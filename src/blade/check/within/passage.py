"""Turn statements and table cells into passages that rules can read, and findings into assertions."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import Document, Row, Table
from blade.prose.slots import CODE, QUOTED, slots


class Passage(msgspec.Struct, frozen=True):
    """Text that can be held against itself: a sentence, or a cell that says something."""

    text: str  # code and quotations blanked: they are names and evidence, no claims of the report
    line: int
    last_line: int
    whole: str  # the sentence, or the table row
    shift: int  # where the text begins in the whole
    headings: tuple[str, ...] = ()


class Finding(msgspec.Struct, frozen=True):
    """What a rule made of a part of a text."""

    holds: bool
    kind: str
    found: str
    start: int
    expected: str | None
    why: str
    value: float | str | None = None


_TELLING = re.compile(r"\d")
_LONG = 2_000


def passages(document: Document) -> Iterator[Passage]:
    """Every text with a number in it, in order: sentences, then cells."""
    for said in document.statements:
        if _TELLING.search(said.text):
            text = blanked(said.text[:_LONG])
            yield Passage(text, said.line, said.last_line, said.text, 0, said.headings)
    for table in document.tables:
        for row in table.rows:
            yield from _cells(table, row)


def _cells(table: Table, row: Row) -> Iterator[Passage]:
    whole = ""
    at = 0
    for cell in row.cells:
        # A bare number claims nothing of itself; most cells of a large table are such.
        if len(cell) > 6 and (" of " in cell or "/" in cell or "[" in cell or len(cell) > 20):
            whole = whole or shown(row)
            if _TELLING.search(cell):
                yield Passage(blanked(cell[:_LONG]), row.line, row.line, whole, at, table.headings)
        at += len(cell) + 3


def blanked(text: str) -> str:
    """A text of the same length without what stands in code or in quotation marks."""
    if "`" not in text and "“" not in text and '"' not in text:
        return text
    kept = list(text)
    for slot in slots(text):
        if slot.kind in (CODE, QUOTED):
            kept[slot.start : slot.end] = "¤" * (slot.end - slot.start)
    return "".join(kept)


def shown(row: Row) -> str:
    """A table row as one line."""
    return " | ".join(row.cells)


def asserted(finding: Finding, passage: Passage) -> Assertion:
    """A finding at its place in the report."""
    start = passage.shift + finding.start
    return Assertion(
        SUPPORTED if finding.holds else CONTRADICTED,
        finding.kind, passage.line, passage.last_line, passage.whole, finding.found, finding.expected,
        finding.why, value=finding.value,
        start=start if passage.whole.startswith(finding.found, start) else passage.whole.find(finding.found),
    )  # fmt: skip


def of_row(table: Table, row: Row, column: int, finding: Finding) -> Assertion:
    """A finding about one cell of a table."""
    shift = sum(len(cell) + 3 for cell in row.cells[:column])
    return asserted(finding, Passage("", row.line, row.line, shown(row), shift, table.headings))

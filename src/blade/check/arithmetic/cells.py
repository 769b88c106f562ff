"""Check the cells of a table by themselves, and values against the intervals beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.arithmetic.figures import phrase
from blade.check.arithmetic.labels import pattern
from blade.check.arithmetic.sentences import faults
from blade.check.arithmetic.tables import Grid, Violation

_PROBABILITY = re.compile(r"(?:adj\w*\.? |raw )?p(?:[- ]?val(?:ue)?s?)?(?:,? ?\(?adj[\w.]*\)?)?", re.I)
_INTERVAL, _LOW, _HIGH = pattern("CI interval confidence"), pattern("low lower lo"), pattern("high upper hi")
_WHOLE = re.compile(r"\((?:out )?of (?:the |all )?⟨(\d+)n⟩")  # 12 failures (of 800): none is more than 800


def wrong_cells(source: Grid) -> Iterator[Violation]:
    """Cells that are wrong whatever the rest of the table says: 78/240 (33%), [0.5, 0.4], a p of 1.3."""
    header, rows = [cell.text for cell in source.table.header], source.table.rows
    for column, name in enumerate(header):
        before = "p = " if _PROBABILITY.fullmatch(name.strip()) else ""
        for row in rows:
            yield from _faulty(row.line, column, f"{before}{row.cells[column].text}")
        # A value and its interval in the next column, or the next two.
        are_ends = _LOW.search(name) and _HIGH.search(" ".join(header[column + 1 : column + 2]))
        outside = []
        for row in rows if column and (are_ends or _INTERVAL.search(name)) else ():
            value, low, high = (*(cell.text for cell in row.cells[column - 1 : column + 2]), "")[:3]
            text = f"{value} [{low}, {high}]" if are_ends else f"{value} {low}"
            outside += [fault for fault in _faulty(row.line, column, text) if fault.kind == "interval"]
        yield from outside if 2 * len(outside) <= len(rows) else ()
    for series in source.series:
        words, hit = phrase(series.name), _WHOLE.search(phrase(series.name).text)
        whole = words.figures[int(hit[1])] if hit else None
        for figure, place in zip(series.figures, series.places, strict=True):
            if whole and figure and figure.is_count and figure.value > whole.value and series.role == "value":
                why = f"the header says that it is of {whole.text}"
                yield Violation("announced", place, frozenset((place,)), figure.text, f"<= {whole.text}", why)


def _faulty(line: int, column: int, text: str) -> Iterator[Violation]:
    for kind, stated, expected, why in faults(text):
        yield Violation(kind, (line, column), frozenset(((line, column),)), stated, expected, why)

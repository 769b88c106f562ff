"""Hold the tables of a report beside those that its rows give again, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from blade.check.likeness import same_slot, same_text
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import Document, Row, Table
from blade.prose.slots import skeleton, slots


class Tables:
    """The tables of the recomputed pages, by the words of their headers."""

    def __init__(self, pages: Iterable[Document]) -> None:
        self.tables = [table for page in pages for table in page.tables]
        self._rows: dict[tuple[int, int], dict[str, list[Row]]] = {}

    def like(self, table: Table) -> list[Table]:
        """The tables with the same columns, those under the same headings first."""
        names = set(_names(table))
        same = [one for one in self.tables if len(names) > 1 and names <= set(_names(one))]
        here = [one for one in same if one.headings == table.headings]
        return here or same

    def rows_with(self, table: Table, column: int, text: str) -> list[Row]:
        """The rows of a table that have this text in a column."""
        by_text = self._rows.get((id(table), column))
        if by_text is None:
            by_text = {}
            for row in table.rows:
                if column < len(row.cells):
                    by_text.setdefault(row.cells[column], []).append(row)
            self._rows[id(table), column] = by_text
        return by_text.get(text, [])

    def home_of(self, row: Row, reference: Table) -> Table | None:
        """The table of the same first column, under another heading, that has a row of this label."""
        label = row.cells[0]
        if self.rows_with(reference, 0, label) or not slots(label):
            return None
        others = (one for one in self.tables if one.header[:2] == reference.header[:2])
        elsewhere = (one for one in others if one.headings != reference.headings)
        return next((one for one in elsewhere if self.rows_with(one, 0, label)), None)


def _names(table: Table) -> tuple[str, ...]:
    """The columns by their words, whatever the numbers in them."""
    return _skeletons(table.header)


@lru_cache(maxsize=2_000)
def _skeletons(header: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(skeleton(name) for name in header)


def tabled(document: Document, tables: Tables) -> list[Assertion]:
    """What the recomputed tables say of each cell; nothing of tables they have no like of."""
    found: list[Assertion] = []
    for table in document.tables:
        likely = tables.like(table)
        if not likely:
            continue
        # A person may have two tables with one header: the one whose rows are known again is meant.
        read = [_table(table, one, tables) for one in likely[:20]]
        best: list[Assertion] = min(read, key=_wrong)
        found += best
    return found


def _wrong(found: list[Assertion]) -> int:
    """How badly a table fits: cells that differ less those that agree."""
    return sum(1 if one.verdict == CONTRADICTED else -1 for one in found)


def _table(table: Table, reference: Table, tables: Tables) -> list[Assertion]:
    places = _places(table, reference)
    found = _cells(table, Row(table.line, table.header), Row(0, reference.header), places)
    taken: set[int] = set()
    for row in table.rows:
        if len(row.cells) != len(places):
            continue
        best = _row_like(row, reference, places, tables, taken)
        if best is not None:
            taken.add(best.line)
            found += _cells(table, row, best, places)
        elif reference.headings == table.headings and (home := tables.home_of(row, reference)):
            found.append(_misplaced(table, row, home))
    return found


def _misplaced(table: Table, row: Row, home: Table) -> Assertion:
    """A row that the rows give under another heading, such as a task in another bucket."""
    where = home.headings[-1] if home.headings else "another heading"
    why = f"the rows give this row under: {where}"
    text = " | ".join(row.cells)
    return Assertion(CONTRADICTED, "bucket", row.line, row.line, text, row.cells[0], where, why, start=0)


def _places(table: Table, reference: Table) -> list[int]:
    """The column of the reference that each column is: by its very name, else by its words."""
    exact = {name: at for at, name in enumerate(reference.header)}
    by_words = {
        name: at for at, name in enumerate(_names(reference)) if reference.header[at] not in table.header
    }
    alike = {name: at for at, name in enumerate(_names(reference))} | by_words
    pairs = zip(table.header, _names(table), strict=True)
    return [exact[name] if name in exact else alike[words] for name, words in pairs]


def _row_like(row: Row, reference: Table, places: list[int], tables: Tables, taken: set[int]) -> Row | None:
    """The row that a row is about: it shares most cells with it, the label or half of them at least."""
    candidates: dict[int, Row] = {}
    for at, place in enumerate(places):
        near = tables.rows_with(reference, place, row.cells[at])
        if len(near) <= 60:
            candidates |= {one.line: one for one in near}
    ranked = []
    for one in candidates.values():
        equal = [_same_cell(cell, one.cells[places[at]]) for at, cell in enumerate(row.cells)]
        # a row may stand twice: one that is the same all over is meant, whatever was read before
        ranked.append((all(equal), one.line not in taken, sum(equal) + equal[0], -one.line, one, equal))
    if not ranked:
        return None
    *_, best, equal = max(ranked, key=lambda rank: rank[:4])
    enough = equal[0] or sum(equal) * 2 >= len(equal)
    return best if enough else None


@lru_cache(maxsize=50_000)
def _same_cell(one: str, other: str) -> bool:
    if one == other:
        return True
    ours, theirs = slots(one), slots(other)
    if len(ours) == 1 and one == one[ours[0].start : ours[0].end] and theirs:
        return same_slot(ours[0], theirs[0])  # a value without the interval that ours stands with
    if not ours or len(ours) != len(theirs):
        return same_text(one.strip("`").lower(), other.strip("`").lower())
    if not all(same_slot(a, b) for a, b in zip(ours, theirs, strict=True)):
        return False
    return _words(one) == _words(other)


def _words(cell: str) -> str:
    found, at = [], 0
    for slot in slots(cell):
        found.append(cell[at : slot.start])
        at = slot.end
    return " ".join("".join([*found, cell[at:]]).lower().split())


def _cells(table: Table, row: Row, reference: Row, places: list[int]) -> list[Assertion]:
    text = " | ".join(row.cells)
    found, start = [], 0
    for at, cell in enumerate(row.cells):
        expected = reference.cells[places[at]] if places[at] < len(reference.cells) else ""
        is_same = _same_cell(cell, expected)
        if cell or expected:
            why = f"the rows give {expected or 'nothing'} in column {table.header[at] or at + 1}"
            told = (
                (SUPPORTED, None, "the rows give the same cell") if is_same else (CONTRADICTED, expected, why)
            )
            verdict, meant, why = told
            found.append(Assertion(verdict, "cell", row.line, row.line, text, cell, meant, why, start=start))
        start += len(cell) + 3
    return found

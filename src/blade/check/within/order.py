"""Find rows out of the order that a report says they are in, and ranks that do not follow it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from blade.check.within.numbers import Printed, lead
from blade.check.within.passage import Finding, of_row
from blade.check.within.totals import is_total
from blade.model import Assertion
from blade.prose.document import Row, Table

_BY = re.compile(
    r"\b(?:ranked|sorted|ordered|ranking|in (?:descending |ascending )?order)(?: \w+){0,2}? (?:by"
    r"|of) (?:the )?(?P<what>[^.;:,()]{2,60})",
    re.I,
)
_STOPS = (
    "descending",
    "ascending",
    "first",
    "alone",
    "in",
    "from",
    "largest",
    "highest",
    "lowest",
    "smallest",
)
_RANK = re.compile(r"(?:rank|ranking|place|#|№|no\.?)", re.I)


def ordered(table: Table) -> Iterator[Assertion]:
    """A table that says what it is ordered by, against that column."""
    rows = [row for row in table.rows if not is_total(row)]
    if len(rows) < 4 or table.ragged:
        return
    hit = _BY.search(table.before) or _BY.search(table.headings[-1] if table.headings else "")
    ranks = [at for at, name in enumerate(table.header) if _RANK.fullmatch(name.strip())]
    by = _named(table, hit["what"]) if hit else None
    if by is None:
        return
    if ranks:
        numbered = [(lead(row.cells[ranks[0]]), row) for row in rows]
        if not all(rank is not None and rank.is_whole for rank, _ in numbered):
            return
        rows = [row for _, row in sorted(numbered, key=lambda pair: pair[0].value if pair[0] else 0)]
    yield from _monotone(table, rows, by)


def _named(table: Table, what: str) -> int | None:
    """The one column that the words begin with."""
    words = what.lower().split()
    found = [
        at
        for at, name in enumerate(table.header)
        if (label := re.split(r"[,(]", name.lower())[0].split())
        and words[: len(label)] == label
        and (len(words) == len(label) or words[len(label)] in _STOPS)
    ]
    return found[0] if len(found) == 1 else None


def _monotone(table: Table, rows: list[Row], by: int) -> Iterator[Assertion]:
    values = [lead(row.cells[by]) for row in rows]
    known = [one for one in values if one is not None and not one.bound]
    if len(known) != len(values):
        return
    steps = [_step(first, second) for first, second in pairwise(known)]
    down, up = steps.count(-1), steps.count(1)
    if min(down, up) * 4 > max(down, up) or not max(down, up):
        return  # both ways about as often: another order is meant
    way = 1 if up > down else -1
    # Of two neighbours in the wrong order, the one that does not fit its other neighbour is out of place.
    wrong = {at for at, step in enumerate(steps) if step == -way}
    if len(wrong) > 2:
        return
    for at, row in enumerate(rows):
        holds = at - 1 not in wrong
        neighbour = rows[at - 1].cells[by] if at else ""
        why = f"ordered by {table.header[by]}"
        expected = None if holds else f"{'at least' if way > 0 else 'at most'} {neighbour}, the row before"
        found = row.cells[by]
        yield of_row(table, row, by, Finding(holds, "ordering", found, 0, expected, why, known[at].value))


def _step(first: Printed, second: Printed) -> int:
    return (second.value > first.value) - (second.value < first.value)

"""Find what a report says against itself: arithmetic that its own text proves wrong, without any data."""

from __future__ import annotations

from collections.abc import Iterator

from blade.check.arithmetic.repeated_quantities import mismatches
from blade.check.arithmetic.sentence_sums import faults
from blade.check.arithmetic.table_sums import Grid, as_tables, contradiction, grid, unmet, violations
from blade.check.markdown_document import Document
from blade.model.conclusions import Finding


def contradictions(document: Document) -> list[Finding]:
    """Statements that cannot both be true, in the order of their lines; one for each cause."""
    tables = (*document.tables, *as_tables(document))
    grids = [source for table in tables if (source := grid(table)) is not None]
    inner = [contradiction(sentence.line, sentence.lines, sentence.own, *fault)
             for sentence in document.sentences for fault in faults(sentence.own, sentence.before)]  # fmt: skip
    inner += [fault for source in grids for fault in _table(source)]
    distinct = list({(fault.line, fault.printed): fault for fault in reversed(inner)}.values())
    for fault in (*unmet(grids), *mismatches(grids)):
        # A number that is wrong in its own sentence or table is wrong elsewhere too: one cause, told once.
        lines = {line for old in distinct for line in (old.lines if old.reading == "total" else (old.line,))}
        distinct += [fault] if lines.isdisjoint(fault.lines) else []
    return sorted(distinct, key=lambda fault: (fault.line, fault.reading))


def _table(source: Grid) -> Iterator[Finding]:
    """The violations of one table; several that one wrong cell explains are told once."""
    left = violations(source)
    while left:
        explained = {place: [each for each in left if place in each.places] for violation in left for place in violation.places}
        stated = [violation.place for violation in left]
        place = max(explained, key=lambda place: (len(explained[place]), stated.count(place), place))
        first = min(explained[place], key=lambda violation: (violation.place != place, len(violation.places)))
        line = place[0] if len(explained[place]) > 1 else first.place[0]
        yield contradiction(line, (row for row, _ in first.places), source.text(line), *first.fault)
        mine = explained[place]
        left = [each for each in left if each not in mine and each.place not in (place, first.place)]

"""Find what a report says against itself: arithmetic that its own text proves wrong, without any data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from blade.check.arithmetic import table_sums
from blade.check.arithmetic.printed_numbers import Figure, Label, agree, label, summary
from blade.check.arithmetic.sentence_sums import faults
from blade.check.arithmetic.table_sums import Grid, Series, contradiction, turned
from blade.check.markdown_document import Document
from blade.model.conclusions import Finding


def contradictions(document: Document) -> list[Finding]:
    """Statements that cannot both be true, in the order of their lines; one for each cause."""
    tables = (*document.tables, *table_sums.as_tables(document))
    grids = [source for table in tables if (source := table_sums.grid(table)) is not None]
    inner = [contradiction(sentence.line, sentence.lines, sentence.own, *fault)
             for sentence in document.sentences for fault in faults(sentence.own, sentence.before)]  # fmt: skip
    inner += [fault for source in grids for fault in _table(source)]
    distinct = list({(fault.line, fault.printed): fault for fault in reversed(inner)}.values())
    for fault in (*table_sums.unmet(grids), *mismatches(grids)):
        # A number that is wrong in its own sentence or table is wrong elsewhere too: one cause, told once.
        lines = {line for old in distinct for line in (old.lines if old.reading == "total" else (old.line,))}
        distinct += [fault] if lines.isdisjoint(fault.lines) else []
    return sorted(distinct, key=lambda fault: (fault.line, fault.reading))


def _table(source: Grid) -> Iterator[Finding]:
    """The violations of one table; several that one wrong cell explains are told once."""
    left = table_sums.violations(source)
    while left:
        explained = {place: [each for each in left if place in each.places] for violation in left for place in violation.places}
        stated = [violation.place for violation in left]
        place = max(explained, key=lambda place: (len(explained[place]), stated.count(place), place))
        first = min(explained[place], key=lambda violation: (violation.place != place, len(violation.places)))
        line = place[0] if len(explained[place]) > 1 else first.place[0]
        yield contradiction(line, (row for row, _ in first.places), source.text(line), *first.fault)
        mine = explained[place]
        left = [each for each in left if each not in mine and each.place not in (place, first.place)]


# -- figures of two lists that are one: a table against a cross-tabulation --------------------------

# Figures by the label of their row or column, with their lines: a column, a row of totals, sums of a grid.
Listing = tuple[Label, dict[Label, tuple[Figure, int]], Grid]


def mismatches(grids: Sequence[Grid]) -> Iterator[Finding]:
    """Figures that most of a list agrees on with another list, and one does not."""
    lists = [listing for source in grids for listing in _listings(source)][:600]
    for listing, other in combinations(lists, 2):
        first, second = listing[2].table, other[2].table
        # The same table in another section is of another run.
        if first is not second and (first.header != second.header or first.headings == second.headings):
            yield from _unlike(listing, other)


def _listings(source: Grid) -> Iterator[Listing]:
    other = turned(source)
    for series in source.series:
        if series.role in ("value", "top", "below", "share"):
            yield from _listing(source, series, source.names)
    for series in other.series:
        if summary(series.name) in ("sum", "all"):
            yield from _listing(source, series, other.names)
    is_crosstab = len(source.series) > 2 and all(series.role == "value" for series in source.series)
    for table in (source, other) if is_crosstab and not any(map(summary, source.names + other.names)) else ():
        rows = list(zip(*(series.figures for series in table.series), strict=True))
        if all(figure and figure.is_count for row in rows for figure in row):
            sums = [sum(figure.value for figure in row if figure) for row in rows]
            places = source.series[0].places if table is source else source.series[0].places[:1] * len(sums)
            figures = tuple(Figure(f"{value:,.0f}", value) for value in sums)
            yield from _listing(source, Series("", "value", figures, places, 0), table.names)


def _listing(source: Grid, series: Series, names: Sequence[str]) -> Iterator[Listing]:
    rows = [(label(re.sub(r" ?\([^()]*\)", "", name)), figure, line)
            for name, figure, (line, _) in zip(names, series.figures, series.places, strict=True)
            if figure and not figure.hedged and not summary(name)]  # fmt: skip
    figures = {key: (figure, line) for key, figure, line in rows if key}
    if 1 < len(figures) == len(rows):  # each name once
        yield label(series.name), figures, source


def _unlike(listing: Listing, other: Listing) -> Iterator[Finding]:
    (name, figures, _), (other_name, others, source) = listing, other
    pairs = [(*figures[key], *others[key]) for key in others if key in figures]
    same = [pair for pair in pairs if agree(pair[0], pair[2]) and pair[0].unit == pair[2].unit]
    odd = [pair for pair in pairs if not agree(pair[0], pair[2])]
    telling = {pair[0].value for pair in same if pair[0].digits > 1}
    needed = 2 if name & other_name or not (name and other_name) else 3
    if len(telling) >= needed and len(odd) <= len(same) / 2:
        for first, line, second, again in odd:
            why = f"this says {second.text}, line {line} says {first.text}; the other rows agree"
            yield contradiction(again, (line, again), source.text(again), "crosstab", second.text, first.text, why)

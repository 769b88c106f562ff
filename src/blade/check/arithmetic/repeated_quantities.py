"""Find figures that most of a list agrees on with another list, and one does not: a table against a cross-tabulation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from blade.check.arithmetic.printed_numbers import Figure, Label, agree, label, summary
from blade.check.arithmetic.table_sums import Grid, Series, contradiction, turned
from blade.model.conclusions import Finding

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
    for grid in (source, other) if is_crosstab and not any(map(summary, source.names + other.names)) else ():
        rows = list(zip(*(series.figures for series in grid.series), strict=True))
        if all(figure and figure.is_count for row in rows for figure in row):
            sums = [sum(figure.value for figure in row if figure) for row in rows]
            places = source.series[0].places if grid is source else source.series[0].places[:1] * len(sums)
            figures = tuple(Figure(f"{value:,.0f}", value) for value in sums)
            yield from _listing(source, Series("", "value", figures, places, 0), grid.names)


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

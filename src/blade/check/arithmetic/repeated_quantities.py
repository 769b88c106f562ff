"""Find the same labelled quantity with two values: in two tables, in a list and its cross-tabulation.

Two places speak of one quantity if all the words that name it are the same, row, column and heading included,
or if two lists share their labels and most of their figures. If two readings are possible, nothing is said.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from blade.check.arithmetic.printed_numbers import Figure, Label, agree, label, phrase, summary
from blade.check.arithmetic.table_sums import Contradiction, Grid, Series, turned
from blade.check.markdown_document import Document


class Mention(msgspec.Struct, frozen=True):
    """A figure of a table and the words that name it: its row, its column, the runs that headings name."""

    key: Label
    figure: Figure
    line: int
    text: str
    table: int  # the line of its table
    is_key: bool  # of a table of key figures


def conflicts(document: Document, grids: Sequence[Grid]) -> Iterator[Contradiction]:
    """Quantities that two tables state with two values."""
    tables = [source for source in grids if source.table.header[0].text and not source.is_mixed]
    names = frozenset(word for source in tables for name in source.names for word in label(name) if not word.isdigit())
    mentions = [mention for source in grids for mention in _mentions(source, names)]
    printed = {(figure.value, figure.unit, sentence.line) for sentence in document.sentences
               for figure in phrase(sentence.text).figures}  # fmt: skip
    printed |= {(mention.figure.value, mention.figure.unit, mention.line) for mention in mentions}
    lines: dict[tuple[float, str], int] = defaultdict(int)
    groups: dict[tuple[Label, str], list[Mention]] = defaultdict(list)
    for value, unit, _ in printed:
        lines[value, unit] += 1
    for mention in mentions:
        groups[mention.key, mention.figure.unit].append(mention)
    for group in groups.values():
        clusters = _clusters(group, lines)
        if len(clusters) == 2 and len(clusters[1]) == 1:
            right, odd = clusters[0], clusters[1][0]
            is_orphan = lines[odd.figure.value, odd.figure.unit] == 1
            if is_orphan and any(_is_conflict(odd, example, len(right)) for example in right):
                stated, expected, line = odd.figure.text, right[0].figure.text, right[0].line
                why, both = f"this is {stated}, line {line} says {expected}", tuple(sorted((odd.line, line)))
                yield Contradiction(odd.line, both, "repeated", odd.text, stated, expected, why)


def _is_conflict(odd: Mention, example: Mention, n_right: int) -> bool:
    """Whether two mentions must be of one quantity: the fewer words name it, the more must speak for it."""
    ratio = odd.figure.value / example.figure.value if example.figure.value else 0.0
    if odd.table == example.table or not 0.5 <= ratio <= 2:
        return False
    return odd.is_key != example.is_key if len(odd.key) > 1 else n_right > 2 and 0.67 <= ratio <= 1.5


def _clusters(group: Sequence[Mention], lines: dict[tuple[float, str], int]) -> list[list[Mention]]:
    """Mentions by value, the largest cluster first; of two alike the one that is printed elsewhere too."""
    clusters: list[dict[int, Mention]] = []  # by line
    for mention in sorted(group, key=lambda mention: (-mention.figure.digits, not mention.is_key))[:500]:
        fits = (each for each in clusters[:3] if agree(mention.figure, next(iter(each.values())).figure))
        if (home := next(fits, None)) is None:
            clusters.append(home := {})
        home.setdefault(mention.line, mention)
    listed = [list(each.values()) for each in clusters]
    return sorted(listed, key=lambda each: (-len(each), -lines[each[0].figure.value, each[0].figure.unit], each[0].line))


def _mentions(source: Grid, words: Label) -> Iterator[Mention]:
    above = (label(" ".join(source.table.headings)) & words) - label(" ".join(source.names))
    main = [series for series in source.series if series.role in ("value", "share", "top")]
    units = [next((figure.unit for figure in series.figures if figure), "") for series in main]
    for series, unit in zip(main, units, strict=True):
        header = label(series.name)
        for name, figure, (line, _) in zip(source.names, series.figures, series.places, strict=True):
            kind, row = summary(name), label(re.sub(r" ?\([^()]*\)", "", name))
            keys = {header, row | header} if kind else {row | header, label(name) | header}
            keys |= {row, label(name)} if units.count(unit) == 1 else set()
            for key in keys - {frozenset()}:
                if figure and not figure.hedged and kind != "other":
                    yield Mention(key | above, figure, line, source.text(line), source.table.line, source.is_mixed)


# Figures by the label of their row or column, with their lines: a column, a row of totals, sums of a grid.
Listing = tuple[Label, dict[Label, tuple[Figure, int]], Grid]


def mismatches(grids: Sequence[Grid]) -> Iterator[Contradiction]:
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


def _unlike(listing: Listing, other: Listing) -> Iterator[Contradiction]:
    (name, figures, _), (other_name, others, source) = listing, other
    pairs = [(*figures[key], *others[key]) for key in others if key in figures]
    same = [pair for pair in pairs if agree(pair[0], pair[2]) and pair[0].unit == pair[2].unit]
    odd = [pair for pair in pairs if not agree(pair[0], pair[2])]
    telling = {pair[0].value for pair in same if pair[0].digits > 1}
    needed = 2 if name & other_name or not (name and other_name) else 3
    if len(telling) >= needed and len(odd) <= len(same) / 2:
        for first, line, second, again in odd:
            why = f"this says {second.text}, line {line} says {first.text}; the other rows agree"
            lines = tuple(sorted({line, again}))
            yield Contradiction(again, lines, "crosstab", source.text(again), second.text, first.text, why)

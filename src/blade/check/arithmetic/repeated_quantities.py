"""Find the same labelled quantity with two values, in tables, cross-tabulations, headings and sentences.

Two places speak of one quantity if all the words that name it are the same, rows, runs and headings included,
or if two lists share their labels and most of their figures. If two readings are possible, nothing is said.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from blade.check.arithmetic.printed_numbers import EMPTY, UNSURE, Figure, Label, agree, label, phrase, summary
from blade.check.arithmetic.table_sums import Contradiction, Grid, Series, turned
from blade.check.markdown_document import Document, Sentence


class Mention(msgspec.Struct, frozen=True):
    """A figure and the words that name it: its label, and the rows and runs that narrow it down."""

    key: Label
    figure: Figure
    line: int
    text: str
    strength: int  # 0 may be part of it, 1 is all of it, 2 says so: a heading, `all`, a table; 3 key figures
    section: str
    table: int = 0  # the line of its table


def conflicts(document: Document, grids: Sequence[Grid]) -> Iterator[Contradiction]:
    """Quantities that are stated with two values."""
    tables = [source for source in grids if source.table.header[0].text and not source.is_mixed]
    names = [name for source in tables for name in source.names]
    words = frozenset(word for name in names for word in label(name) if not word.isdigit())
    titles = label(f"{document.title} suite benchmark run dataset evaluation set model report")
    mentions = [mention for source in grids for mention in _tabled(source, words)]
    printed = {(mention.figure.value, mention.figure.unit, mention.line) for mention in mentions}
    for sentence in document.sentences:
        mentions += _stated(sentence, words, titles)
        printed |= {(figure.value, figure.unit, sentence.line) for figure in phrase(sentence.text).figures}
    lines: dict[tuple[float, str], int] = defaultdict(int)
    groups: dict[tuple[Label, str], list[Mention]] = defaultdict(list)
    for value, unit, _ in printed:
        lines[value, unit] += 1
    for mention in mentions:
        groups[mention.key, mention.figure.unit].append(mention)
    for (key, unit), group in groups.items():
        clusters = _clusters([mention for mention in group if mention.strength or len(key) > 2], lines)
        if len(clusters) == 2 and len(clusters[1]) == 1:
            right, odd = clusters[0], clusters[1][0]
            is_orphan = lines[odd.figure.value, unit] == 1
            if is_orphan and any(_is_conflict(odd, example, right) for example in right):
                stated, expected, line = odd.figure.text, right[0].figure.text, right[0].line
                why, both = f"this is {stated}, line {line} says {expected}", tuple(sorted((odd.line, line)))
                yield Contradiction(odd.line, both, "repeated", odd.text, stated, expected, why)


def _is_conflict(odd: Mention, example: Mention, right: Sequence[Mention]) -> bool:
    """Whether two mentions must be of one quantity: the fewer words name it, the more must speak for it."""
    ratio = odd.figure.value / example.figure.value if example.figure.value else 0.0
    if odd.line == example.line or not 0.5 <= ratio <= 2 or 0 < odd.table == example.table:
        return False
    size, weakest, is_close = len(odd.key), min(odd.strength, example.strength), 0.67 <= ratio <= 1.5
    if odd.table and example.table:
        return odd.strength + example.strength == 5 if size > 1 else len(right) > 2 and is_close
    if not (odd.table or example.table) and weakest < 2 and odd.section != example.section:
        return False  # in another section it may be another
    if size > 2:
        return bool(odd.table or example.table) or weakest > 0
    is_told = size > 1 or odd.table or example.table  # two sentences may count the tasks of two models
    return weakest > 2 - size or bool(is_told and weakest > 0 and len(right) > 1 and is_close)


def _clusters(group: Sequence[Mention], lines: dict[tuple[float, str], int]) -> list[list[Mention]]:
    """Mentions by value, the largest cluster first; of two alike the one that is printed elsewhere too."""
    clusters: list[dict[int, Mention]] = []  # by line
    for mention in sorted(group, key=lambda mention: (-mention.figure.digits, -mention.strength))[:500]:
        fits = (each for each in clusters[:3] if agree(mention.figure, next(iter(each.values())).figure))
        if (home := next(fits, None)) is None:
            clusters.append(home := {})
        home.setdefault(mention.line, mention)
    ranks = [(-len(each), -lines[first.figure.value, first.figure.unit], first.line, list(each.values()))
             for each in clusters for first in list(each.values())[:1]]  # fmt: skip
    return [rank[3] for rank in sorted(ranks, key=lambda rank: rank[:3])]


def _tabled(source: Grid, words: Label) -> Iterator[Mention]:
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
                    text, strength = source.text(line), 2 + source.is_mixed
                    yield Mention(key | above, figure, line, text, strength, "", source.table.line)


_STOP = EMPTY | frozenset(
    """but so never always because since account accounts remain remains occur occurs hit hits took take show
    shows come comes need needs make makes use uses call calls before after reaches reached scored scores
    across among within between under over without during gives pass passed fail failed end run ran""".split()
)
_NARROWS = re.compile(
    r"(?:in|on|for|of|with|from|that|which|who|where|when|whose|among|within|under|at|during|between|as|to)\b"
)
_JOINS = re.compile(
    r"(?P<name>[\w@^'’ &/-]{2,70}?)(?: \([^()⟨⟩]*\))?"
    r"(?P<join> (?:is|was|are|were|of|at|=|reached|stands at|came to|total(?:s|led)) (?:only )?|: ?| ?\()$"
)
_ALL = re.compile(r"\b(?:all|total of)(?: the)? $", re.I)
_DEFINITE = re.compile(r"(?:\b(?:the|its|our|across|over)|(?:^|[.,;] )of(?: the)?) $", re.I)
_PART = re.compile(r" ?(?:of|out of|/|to|–|-|vs|or|±|x|×|\+|=|times)(?:\s|$)")
_CLAUSE = re.compile(r"[,;:—–()]| and | while | but | whereas ")


def _stated(sentence: Sentence, words: Label, titles: Label) -> Iterator[Mention]:
    """Figures of a sentence with their names: 31 timeouts · timeouts (31) · median latency was 9 s."""
    spoken, section = phrase(sentence.text), " ".join(sentence.headings[:1])
    earlier = "" if re.search(r"\b(?:both|all|overall|total|across)\b", sentence.text) else sentence.before
    above = label(" ".join((*sentence.headings, earlier))) & words
    above |= label(lead[1]) if (lead := re.match(r"`([^`]+)`", sentence.text)) else frozenset()  # its subject
    for index, figure in enumerate(spoken.figures):
        before, after = re.sub(r"\bn = $", "", spoken.gaps[index]), spoken.gaps[index + 1]
        clause = _CLAUSE.split(before)[-1] + " " + _CLAUSE.split(after)[0]
        is_part = _PART.match(after) or re.search(r"[/–=+×-] ?$|(?: to| or)$", before)
        if figure.hedged or is_part or UNSURE.search(clause):
            continue
        tail = re.split(r"[.,;:()\[\]—]", after, maxsplit=1)[0].split()
        ends = (end for end, word in enumerate(tail) if word.lower() in _STOP or (end and word[-2:] == "ed"))
        size = min(next(ends, 5), 5)
        noun, rest = " ".join(tail[:size]), " ".join(tail[size:])
        here = (label(clause) & words) or (label(" ".join(spoken.gaps)) & words)
        here |= label(rest) - titles if _NARROWS.match(rest) else frozenset()
        is_all = sentence.kind == "heading" or _ALL.search(before) or "in total" in rest
        is_share = after.endswith("(") and any(other.unit == "%" for other in spoken.figures[index + 1 :][:1])
        is_whole = _DEFINITE.search(before) or not rest or rest.startswith(("and ", "or "))
        strength = 2 if is_all else int(bool(is_whole) and not is_share)
        keys = {label(noun)} if noun and figure.unit not in ("%", "points", "x") else set()
        if hit := _JOINS.search(before):
            spoken_name = hit["name"].split()
            last = max((place for place, word in enumerate(spoken_name) if word.lower() in EMPTY), default=-1)
            name = label(" ".join(spoken_name[last + 1 :][-5:]))
            keys = {name} | (keys if before != spoken.gaps[index] else set())  # n = 40 failures
            keys |= {name | label(noun)} if hit["join"].endswith("(") else set()
            strength = max(strength, 1)
        for key in keys - {frozenset()}:
            yield Mention(key | here | above, figure, sentence.line, sentence.text, strength, section)


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

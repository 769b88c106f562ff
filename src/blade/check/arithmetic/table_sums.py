"""Read a table as a grid of figures, and check its totals by row and by column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations

import msgspec

from blade.check.arithmetic.printed_numbers import Figure, meets, minus, phrase, quotient, shown, summary
from blade.check.arithmetic.sentence_sums import Fault, faults
from blade.check.markdown_document import Cell, Document, List, Passage, Row, Table
from blade.check.vocabulary import any_of
from blade.model.conclusions import CONTRADICTED, Finding

# Quantities of which a total is no sum.
_RATE, _DELTA, _SHARE = any_of("rate"), any_of("delta"), any_of("share")
Place = tuple[int, int]  # line and column
_MOST_ROWS = 2_000  # a longer table is data, nobody adds it up
_ROLES = ("value", "top", "below", "share", "low", "high", "half")  # `12/40 (30%)` is top/below (share)


def contradiction(
    line: int, lines: Iterable[int], text: str, kind: str, stated: str, expected: str, why: str
) -> Finding:
    """Statements that cannot all be true: where the number is that most likely is wrong, and all that shows it."""
    return Finding(CONTRADICTED, "arithmetic", line, tuple(sorted(set(lines))), text, stated, expected, kind, why)


class Series(msgspec.Struct, frozen=True):
    """One column of figures, or one row of them in a grid that is turned."""

    name: str
    role: str
    figures: tuple[Figure | None, ...]
    places: tuple[Place, ...]
    column: int
    is_read: bool = True  # every cell is a figure, a dash or empty


class Grid(msgspec.Struct, frozen=True):
    names: tuple[str, ...]  # of the rows
    series: tuple[Series, ...]
    table: Table
    is_mixed: bool  # the rows are different quantities, not parts of one
    is_turned: bool = False

    def text(self, line: int) -> str:
        rows = (row.cells for row in self.table.rows if row.line == line)
        return " | ".join(cell.text for cell in next(rows, self.table.header))

    def parts(self, series: Series) -> list[Figure]:
        pairs = zip(self.names, series.figures, strict=True)
        return [figure for name, figure in pairs if figure and not summary(name)]

    def sums(self, series: Series) -> list[Figure]:
        """What a series of counts adds up to: what its totals say, then what it does."""
        parts, pairs = self.parts(series), zip(self.names, series.figures, strict=True)
        if len(parts) < 2 or not series.is_read or not all(part.is_count for part in parts):
            return []
        stated = [figure for name, figure in pairs if figure and summary(name) in ("sum", "all")]
        value = sum(part.value for part in parts)
        return [figure for figure in (*stated, Figure(f"{value:,.0f}", value)) if figure.is_count]


class Violation(msgspec.Struct, frozen=True):
    """A place of a table that breaks what the rest of it follows."""

    place: Place
    places: frozenset[Place]
    fault: Fault


_N, _P, _F = r"⟨(\d+)n⟩", r"⟨(\d+)%⟩", r"⟨(\d+)[n%pxu]⟩"
_OF, _TO = r" ?(?:/|of|out of) ?", r" ?(?:,|–|—|-|to|\.\.|;) ?"
_FORMS = (
    (rf"{_N}{_OF}{_N}(?: ?[(,=–-]+ ?{_P}\)?)?", "top below share"),
    (rf"{_N} ?[(,/] ?{_P}\)?", "value share"),
    (rf"{_F} ?[(\[][^⟨⟩]{{0,12}}{_F}{_TO}{_F}[)\]]", "value low high"),
    (rf"{_F} ?± ?{_F}(?: ?[(\[]{_F}{_TO}{_F}[)\]])?", "value half low high"),
    (rf"{_F}(?: [a-z][a-z. -]{{0,30}})?(?: \([^()⟨⟩]*\)| ?[*†‡§]+| \(⟨\d+[nxpu]⟩\))?", "value"),
)
_NOTHING = frozenset(("", "–", "—", "-", "−", "n/a", "na", "none", "."))


def _cell(text: str) -> dict[str, Figure] | None:
    cell = phrase(text)
    for form, roles in _FORMS:
        if hit := re.fullmatch(form, cell.text.strip()):
            pairs = zip(roles.split(), hit.groups(), strict=False)
            return {role: cell.figures[int(index)] for role, index in pairs if index}
    return {} if text.strip().lower() in _NOTHING else None


def grid(table: Table) -> Grid | None:
    """The table by columns; the first columns of text name its rows."""
    if table.ragged or len(table.header) < 2 or not 0 < len(table.rows) <= _MOST_ROWS:
        return None
    columns = [[_cell(row.cells[index].text) for row in table.rows] for index in range(len(table.header))]
    first = next((index for index, column in enumerate(columns) if index and any(column)), len(columns))
    series = []
    for index, column in enumerate(columns[first:], first):
        places = tuple((row.line, index) for row in table.rows)
        for role in _ROLES:
            figures = tuple(cell.get(role) if cell else None for cell in column)
            if any(figures):
                is_read = all(cell is not None for cell in column)
                series.append(Series(table.header[index].text, role, figures, places, index, is_read))
    named = ([cell.text.strip() for cell in row.cells[:first]] for row in table.rows)
    names = (" ".join(text for text in row if text not in _NOTHING) for row in named)
    return Grid(tuple(names), tuple(series), table, any_of("mixed").search(table.header[0].text) is not None)


def turned(source: Grid) -> Grid:
    main = [series for series in source.series if series.role in ("value", "top")]
    figures = zip(*(column.figures for column in main), strict=True)
    places = zip(*(column.places for column in main), strict=True)
    rows = enumerate(zip(source.names, figures, places, strict=False))
    series = tuple(Series(name, "value", row, spots, index) for index, (name, row, spots) in rows)
    return Grid(tuple(column.name for column in main), series, source.table, source.is_mixed, True)


def violations(source: Grid) -> list[Violation]:
    """What one table says against itself, by column and by row."""
    return [*_totals(source), *_totals(turned(source)), *_wrong_cells(source), *_exceptions(source)]


def _totals(source: Grid) -> Iterator[Violation]:
    """Totals that their parts do not add up to: all before one, its block, or what follows it."""
    kinds = [summary(name) if source.is_turned or not source.is_mixed else "" for name in source.names]
    for index, kind in enumerate(kinds):
        is_unnamed = source.is_turned and index == len(kinds) - 1 > 2 and not any(kinds)
        if kind in ("sum", "all") or is_unnamed:
            above = [place for place in range(index) if not kinds[place]]
            block = [place for place in above if not any(kinds[place:index])]
            below = [place for place in range(index + 1, len(kinds)) if not kinds[place]]
            sums = [_summed(source, index, addends) for addends in (above, block, [] if above else below)]
            evidence, broken = max(sums, key=lambda entry: entry[0])
            if evidence > (6 if is_unnamed else 0):
                yield from broken


def _summed(source: Grid, index: int, addends: Sequence[int]) -> tuple[int, list[Violation]]:
    """How many digits say that these are the parts of the total, and what breaks it."""
    evidence, satisfied, broken = 0, 0, []
    for series in source.series:
        whole = series.figures[index]
        figures = {series.places[place]: part for place in addends if (part := series.figures[place])}
        parts = list(figures.values())
        if whole is None or len(parts) < 2 or not series.is_read:
            continue
        if any(part.hedged or part.unit != whole.unit for part in (*parts, whole)):
            continue
        if meets(whole, (sum(part.span[0] for part in parts), sum(part.span[1] for part in parts))):
            is_telling = sum(part.value != 0 for part in parts) > 1
            satisfied += is_telling
            evidence += whole.digits * is_telling
        elif _may_be_sum(source, series, index, parts, whole):
            value = sum(part.value for part in parts)
            expected = shown(value, min((*parts, whole), key=lambda figure: figure.step))
            what = "columns" if source.is_turned else f"rows of {series.name}" if series.name else "items"
            why = f"the {what} add up to {expected}, the total says {whole.text}"
            spot, fault = series.places[index], ("total", whole.text, expected, why)
            broken.append(Violation(spot, frozenset((*figures, spot)), fault))
    is_sure = satisfied >= 2 * len(broken) if source.is_turned else len(broken) <= max(satisfied, 1)
    return (evidence, broken) if is_sure else (0, [])


def _may_be_sum(source: Grid, series: Series, index: int, parts: Sequence[Figure], whole: Figure) -> bool:
    gap = abs(sum(part.value for part in parts) - whole.value)
    if whole.unit == "%":  # shares that make up everything; a total of rates is no sum
        return whole.value == 100 and gap <= 15 and not source.is_turned
    name = source.names[index] if source.is_turned else series.name
    if series.role == "value" and (_RATE.search(name) or _DELTA.search(name)):
        return False
    is_near = gap <= (0.35 if whole.step == 1 else 0.1) * abs(whole.value)
    is_alike = {part.step for part in parts} == {whole.step} and series.role in ("value", "top", "below")
    return is_near and is_alike and whole.value > max(part.value for part in parts)


_INTERVAL = re.compile(r"\b(?:CI|interval|confidence)\b", re.I)
_LOW, _HIGH = re.compile(r"\b(?:low|lower|lo)\b", re.I), re.compile(r"\b(?:high|upper|hi)\b", re.I)


def _wrong_cells(source: Grid) -> Iterator[Violation]:
    """Cells that are wrong whatever the rest of the table says: 78/240 (33%), [0.5, 0.4]."""
    header, rows = [cell.text for cell in source.table.header], source.table.rows
    for column, name in enumerate(header):
        for row in rows:
            yield from _faulty((row.line, column), row.cells[column].text)
        # A value and its interval in the next column, or the next two.
        are_ends = _LOW.search(name) and _HIGH.search(" ".join(header[column + 1 : column + 2]))
        outside = []
        for row in rows if column and (are_ends or _INTERVAL.search(name)) else ():
            value, low, high = (*(cell.text for cell in row.cells[column - 1 : column + 2]), "")[:3]
            text = f"{value} [{low}, {high}]" if are_ends else f"{value} {low}"
            outside += [fault for fault in _faulty((row.line, column), text) if fault.fault[0] == "interval"]
        yield from outside if 2 * len(outside) <= len(rows) else ()


def _faulty(place: Place, text: str) -> list[Violation]:
    return [Violation(place, frozenset((place,)), fault) for fault in faults(text)]


_WIDE = 24  # series beyond which nobody reads one column against another
_NO_COUNT = re.compile(r"%|\b(?:rate|share|percent\w*|sd|std|stdev|cv|range|variance)\b|^σ", re.I)  # rows


class _Fit(msgspec.Struct):
    """A column as the difference or the share of two others, and the rows that follow it or break it."""

    kind: str
    a: Series
    b: Series
    is_named: bool  # the header of the column says so
    evidence: int = 0
    n_rows: int = 0
    broken: list[int] = []

    @property
    def is_meant(self) -> bool:
        """Whether enough of a column follows the relation, so that the rest must."""
        if self.b.role == "whole":
            return self.n_rows > 1 and self.evidence > 3 and 2 * len(self.broken) <= self.n_rows
        if self.is_named:
            most = self.n_rows / 2 if self.n_rows + len(self.broken) > 3 else self.n_rows
            return self.evidence > 2 - (self.n_rows > 1) and len(self.broken) <= most
        return self.n_rows > 2 and self.evidence > 6 and 3 * len(self.broken) <= self.n_rows

    def span(self, a: Figure, b: Figure, result: Figure) -> tuple[float, float] | None:
        """What the result should be; None if the relation says nothing of such figures."""
        if self.kind == "share":
            is_rate = (result.unit == "%" or result.step < 1) and a.is_count and b.is_count
            return quotient(a, b, 100 if result.unit else 1) if is_rate and a.value <= b.value else None
        is_alike = a.unit == b.unit and (a.step == 1) == (b.step == 1)
        if not is_alike or (a.unit != result.unit and not {a.unit, result.unit} <= {"%", "points", ""}):
            return None
        low, high = minus(b, a)
        is_fraction = result.unit in ("%", "points") and not a.unit and a.step < 1
        return (100 * low, 100 * high) if is_fraction else (low, high)

    def weigh(self, result: Series, index: int) -> None:
        a, b, figure = self.a.figures[index], self.b.figures[index], result.figures[index]
        if a is None or b is None or figure is None or a.hedged or b.hedged or figure.hedged:
            return
        span = self.span(a, b, figure)
        if span and self.kind == "difference" and figure.step == 1 and _RATE.search(self.a.name + self.b.name):
            span = span[0] - 1, span[1] + 1  # means that are rounded to whole numbers
        if span and not meets(figure, span):
            self.broken.append(index)
        elif span and figure.value not in (a.value, b.value, 0, 100) and b.value > 9:
            self.n_rows += 1
            self.evidence += figure.digits


def _exceptions(source: Grid) -> Iterator[Violation]:
    """Every cell that breaks the difference or share which the rest of its column follows."""
    usable = [series for series in source.series if series.role not in ("low", "high")]
    wholes = _wholes(source, usable)
    for result in usable if len(usable) <= _WIDE else ():
        fits = [fit for fit in _fits(source, usable, wholes, result) if fit.is_meant]
        best = max((fit.evidence for fit in fits), default=0)
        fits = [fit for fit in fits if fit.evidence > 0.7 * best]
        if fits:
            top = max(fits, key=lambda fit: (fit.evidence, -abs(fit.a.column - result.column)))
            # A cell that some other reading explains is no contradiction.
            for index in sorted(set.intersection(*(set(fit.broken) for fit in fits))):
                yield from _violation(source, top, result, index)


def _wholes(source: Grid, usable: Sequence[Series]) -> list[Series]:
    """Columns of one number that shares may be of: a total, the sum of a column, a count in the text."""
    texts = [*(cell.text for cell in source.table.header), *source.table.headings[-1:]]
    texts += [sentence.text for sentence in source.table.lead]
    announced = [figure for text in texts for figure in phrase(text).figures if figure.is_count][:12]
    figures = [*announced, *(figure for series in usable for figure in source.sums(series))]
    wholes, size = {figure.value: figure for figure in figures if figure.value > 1}, len(source.names)
    places = ((0, 0),) * size
    return [Series("", "whole", (figure,) * size, places, 0) for figure in list(wholes.values())[:16]]


def _fits(source: Grid, usable: Sequence[Series], wholes: Sequence[Series], result: Series) -> Iterator[_Fit]:
    others = [series for series in usable if series is not result]
    kinds = [summary(name) for name in source.names]
    named = {"difference": bool(_DELTA.search(result.name)),
             "share": bool(_SHARE.search(result.name)) or result.role == "share"}  # fmt: skip
    pairs = [("share", a, whole) for a in others for whole in wholes]
    for name, a, b in [*((name, *pair) for pair in permutations(others, 2) for name in named), *pairs]:
        fit = _Fit(name, a, b, named[name], 0, 0, [])
        for index, kind in enumerate(kinds):
            is_skipped = (kind == "other" and name == "share") or (bool(kind) and b.role == "whole")
            is_skipped = is_skipped or (not fit.is_named and bool(_NO_COUNT.search(source.names[index])))
            if not is_skipped and len(fit.broken) <= 2 + fit.n_rows:
                fit.weigh(result, index)
        if fit.n_rows:
            yield fit


def _violation(source: Grid, fit: _Fit, result: Series, index: int) -> Iterator[Violation]:
    a, b, figure = fit.a.figures[index], fit.b.figures[index], result.figures[index]
    if not a or not b or not figure or not (span := fit.span(a, b, figure)):
        return
    rates = [rate.value for rate in source.parts(result)] if summary(source.names[index]) else []
    if rates and fit.kind == "share" and abs(sum(rates) / len(rates) - figure.value) <= figure.step:
        return  # a mean of rates
    expected = shown(sum(span) / 2, figure)
    words = f"{b.text} minus {a.text}" if fit.kind == "difference" else f"{a.text} of {b.text}"
    here = fit.a.places[index], fit.b.places[index], result.places[index]
    places = frozenset(place for place in here if place[0])
    yield Violation(here[2], places, (fit.kind, figure.text, expected, f"{words} is {expected}, not {figure.text}"))


_ADDS = re.compile(r"\b(?:sums?|adds? up|add|total|amounts?) to (?:the )?⟨(\d+)n⟩")


def unmet(grids: Sequence[Grid]) -> Iterator[Finding]:
    """Numbers that a text announces and the table or list beside it does not have."""
    for source in grids:
        columns = [source.sums(series) for series in source.series if series.role in ("value", "top")]
        sums, is_stated = {sums[0].value for sums in columns if sums}, any(sums[1:] for sums in columns)
        above, below = source.table.lead[-2:], source.table.note[:1]
        lead = [(figure, sentence) for sentence in above for figure in phrase(sentence.text).figures]
        text = " ".join(sentence.text for sentence in above)
        is_sure = is_stated or any(figure.value in sums for figure, _ in lead)
        if any_of("announces").search(text) and (is_sure or not any_of("partial").search(text)):
            yield from _missed(source, lead, sums)
        for sentence in below:
            words = phrase(sentence.text)
            announced = [(words.figures[int(hit[1])], sentence) for hit in _ADDS.finditer(words.text)]
            yield from _missed(source, announced, sums)


def _missed(source: Grid, announced: list[tuple[Figure, Passage]], sums: set[float]) -> Iterator[Finding]:
    """One announced number that no column adds up to, and one sum close by that nothing announces."""
    met = (0, *sums, sum(not summary(name) for name in source.names))
    left = sums - {figure.value for figure, _ in announced}
    rest = [(figure, sentence) for figure, sentence in announced if figure.is_count and figure.value not in met]
    near = [(pair, value) for pair in rest for value in left if abs(value / pair[0].value - 1) <= 0.2]
    if len(near) == 1:
        (figure, sentence), value = near[0]
        why = f"the table or list adds up to {value:,.0f}, this announces {figure.text}"
        lines = (*sentence.lines, *(row.line for row in source.table.rows))
        yield contradiction(sentence.line, lines, sentence.text, "announced", figure.text, f"{value:,.0f}", why)


_COUNT, _SHARED = r"(?P<count>⟨\d+n⟩)", r"(?: ?[(,] ?(?P<share>⟨\d+%⟩)\)?)?"
_HEADED = rf"(?P<name>[^⟨⟩()]{{2,80}}?) \({_COUNT} [a-z-]+{_SHARED}\)?"
_LABELLED = (
    rf"(?P<name>[^:]{{2,80}}?)(?::| [—–-]) ?{_COUNT}(?: of (?P<whole>⟨\d+n⟩))?"
    rf"(?P<noun>(?: [a-z-]+){{0,2}}){_SHARED}(?:[ ,.;(].*)?"
)
_COUNTED = rf"{_COUNT}{_SHARED} (?P<name>[^⟨⟩.;:(]{{2,80}}?)(?: ?\((?P<later>⟨\d+%⟩)\))?(?:[.;:(,].*)?"


def as_tables(document: Document) -> Iterator[Table]:
    """Lists of counts as tables: `- Timeouts: 31 (7.5%)`, `- 31 timeouts`, `## Timeouts (31 rollouts)`."""
    headings = (sentence for sentence in document.sentences if sentence.kind == "heading")
    headed = tuple((title,) for title in headings if re.fullmatch(_HEADED, phrase(title.own).text))
    tables = map(_as_table, (*document.lists, List(headed, 0, ())))
    yield from (table for table in tables if table is not None)


def _as_table(listed: List) -> Table | None:
    rows, nouns = [], set()
    for item in listed.items:
        words = phrase(item[0].own if item else "")
        hits = (re.fullmatch(form, words.text) for form in (_LABELLED, _COUNTED, _HEADED))
        groups = next((hit.groupdict("") for hit in hits if hit), None)
        if groups is None:
            return None
        tokens = groups["count"], groups.get("whole"), groups["share"] or groups.get("later")
        count, whole, share = (words.figures[int(token[1:-2])].text if token else "" for token in tokens)
        text = f"{count}{' of ' * bool(whole)}{whole}{f' ({share})' if share else ''}"
        nouns.add(groups.get("noun", "").strip())
        rows.append(Row((Cell(groups["name"].strip(" *")), Cell(text)), item[0].line))
    header = Cell(""), Cell(nouns.pop() if len(nouns) == 1 else "")
    return Table(header, tuple(rows), listed.line, listed.headings, listed.lead) if len(rows) > 1 else None

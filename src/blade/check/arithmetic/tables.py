"""Read a table as a grid of figures, and check its totals by row and by column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from blade.check.arithmetic.figures import Figure, meets, phrase, shown
from blade.check.arithmetic.labels import DELTA, MIXED, PARTIAL, RATE, summary
from blade.check.document import Table

Place = tuple[int, int]  # line and column
_MOST_ROWS = 2_000  # a longer table is data, nobody adds it up
_ROLES = ("value", "top", "below", "share", "low", "high", "half")  # `12/40 (30%)` is top/below (share)


class Contradiction(msgspec.Struct, frozen=True):
    """Statements of a report that cannot all be true."""

    line: int  # where the number is that most likely is wrong
    lines: tuple[int, ...]  # all that it takes to see it
    kind: str  # total, share, difference, ratio, interval, range, equation, partition, announced, …
    text: str  # the sentence, or the row of a table
    stated: str
    expected: str
    why: str


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

    kind: str
    place: Place
    places: frozenset[Place]
    stated: str
    expected: str
    why: str
    gap: float = 0.0  # of a total: by how much its parts exceed it


_N, _P, _F = r"⟨(\d+)n⟩", r"⟨(\d+)%⟩", r"⟨(\d+)[n%pxu]⟩"
_OF, _TO = r" ?(?:/|of|out of) ?", r" ?(?:,|–|—|-|to|\.\.|;) ?"
_FORMS = (
    (rf"{_N}{_OF}{_N}(?: ?[(,=–-]+ ?{_P}\)?)?", "top below share"),
    (rf"{_P} ?\(?{_N}{_OF}{_N}\)?", "share top below"),
    (rf"{_P} of {_N}", "share below"),
    (rf"{_N} ?[(,/] ?{_P}\)?", "value share"),
    (rf"{_P} ?[(,/] ?{_N}\)?", "share value"),
    (rf"{_F} ?[(\[][^⟨⟩]{{0,12}}{_F}{_TO}{_F}[)\]]", "value low high"),
    (rf"{_F} ?± ?{_F}(?: ?[(\[]{_F}{_TO}{_F}[)\]])?", "value half low high"),
    (rf"[(\[]{_F}{_TO}{_F}[)\]]|{_F} ?(?:–|—|to) ?{_F}", "low high low high"),
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
    return Grid(tuple(names), tuple(series), table, MIXED.search(table.header[0].text) is not None)


def turned(source: Grid) -> Grid:
    main = [series for series in source.series if series.role in ("value", "top")]
    figures = zip(*(column.figures for column in main), strict=True)
    places = zip(*(column.places for column in main), strict=True)
    rows = enumerate(zip(source.names, figures, places, strict=False))
    series = tuple(Series(name, "value", row, spots, index) for index, (name, row, spots) in rows)
    return Grid(tuple(column.name for column in main), series, source.table, source.is_mixed, True)


def broken_totals(source: Grid) -> Iterator[Violation]:
    """Totals that their parts do not add up to, wherever a row or a column is named as one."""
    kinds = [summary(name) if source.is_turned or not source.is_mixed else "" for name in source.names]
    for index, kind in enumerate(kinds):
        is_unnamed = source.is_turned and index == len(kinds) - 1 > 2 and not any(kinds)
        if kind in ("sum", "all") or is_unnamed:
            sums = [_summed(source, index, addends) for addends in _addends(kinds, index, source.is_turned)]
            evidence, violations = max(sums, key=lambda entry: entry[0], default=(0, []))
            if evidence > (6 if is_unnamed else 0) or (kind and _is_plain(source, index, violations)):
                yield from violations


def _addends(kinds: Sequence[str], index: int, is_turned: bool) -> list[tuple[int, ...]]:
    """What a total may be the sum of: all before it, its block, other totals, or what follows it."""
    above = [place for place in range(index) if not kinds[place]]
    block = [place for place in above if not any(kinds[place:index])]
    below = [place for place in range(index + 1, len(kinds)) if not kinds[place]]
    sums = [place for place in range(index) if kinds[place] == "sum"]
    choices = [above, block, sums, [] if above else below]
    if is_turned:
        choices += [block[start:end] for start in range(len(block)) for end in (len(block), len(block) - 1)]
        choices += [below, below[:2], below[:3]]
    return list(dict.fromkeys(tuple(choice) for choice in choices if len(choice) > 1))


def _summed(source: Grid, index: int, addends: Sequence[int]) -> tuple[int, list[Violation]]:
    """How many digits say that these are the parts of the total, and what breaks it."""
    evidence, held, violations = 0, 0, []
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
            held += is_telling
            evidence += whole.digits * is_telling
        elif _may_be_sum(source, series, index, parts, whole):
            value = sum(part.value for part in parts)
            expected = shown(value, min((*parts, whole), key=lambda figure: figure.step))
            what = "columns" if source.is_turned else f"rows of {series.name}" if series.name else "items"
            why = f"the {what} add up to {expected}, the total says {whole.text}"
            spot = series.places[index]
            places, gap = frozenset((*figures, spot)), value - whole.value
            violations.append(Violation("total", spot, places, whole.text, expected, why, gap))
    is_sure = held >= 2 * len(violations) if source.is_turned else len(violations) <= max(held, 1)
    return (evidence, violations) if is_sure else (0, [])


def _may_be_sum(source: Grid, series: Series, index: int, parts: Sequence[Figure], whole: Figure) -> bool:
    gap = abs(sum(part.value for part in parts) - whole.value)
    if whole.unit == "%":  # shares that make up everything; a total of rates is no sum
        return whole.value == 100 and gap <= 15 and not source.is_turned
    name = source.names[index] if source.is_turned else series.name
    if series.role == "value" and (RATE.search(name) or DELTA.search(name)):
        return False
    is_near = gap <= (0.35 if whole.step == 1 else 0.1) * abs(whole.value)
    is_alike = {part.step for part in parts} == {whole.step} and series.role in ("value", "top", "below")
    return is_near and is_alike and whole.value > max(part.value for part in parts)


def _is_plain(source: Grid, index: int, violations: Sequence[Violation]) -> bool:
    """Whether a lone total that no other column bears out must be a sum all the same."""
    around = [sentence.text for sentence in (*source.table.lead, *source.table.note)]
    context = " ".join((*around, *source.table.headings[-1:], *(cell.text for cell in source.table.header)))
    is_alone = index in (0, len(source.names) - 1) and len(violations) == 1 and not source.is_turned
    return is_alone and not PARTIAL.search(context)

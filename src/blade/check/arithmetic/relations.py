"""Find how the columns of a table follow from each other, as most rows show, and the rows that break it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

import msgspec

from blade.check.arithmetic.figures import Figure, Span, meets, minus, phrase, quotient, shown
from blade.check.arithmetic.labels import DELTA, MULTIPLE, RATE, SHARE, summary
from blade.check.arithmetic.tables import Grid, Series, Violation

_WIDE = 24  # series beyond which nobody reads one column against another


Spanner = Callable[[Figure, Figure, Figure], Span | None]  # what the third should be, given the other two


def _difference(a: Figure, b: Figure, result: Figure) -> Span | None:
    is_alike = a.unit == b.unit and (a.step == 1) == (b.step == 1)
    if not is_alike or (a.unit != result.unit and not {a.unit, result.unit} <= {"%", "points", ""}):
        return None
    low, high = minus(b, a)
    is_fraction = result.unit in ("%", "points") and not a.unit and a.step < 1
    return (100 * low, 100 * high) if is_fraction else (low, high)


_NOT_ADDED = re.compile(r"%|\b(?:rate|share|percent\w*|sd|std|stdev|cv|range|variance)\b|^σ", re.I)


def _sum(a: Figure, b: Figure, result: Figure) -> Span | None:
    is_mean = min(a.value, b.value) <= result.value <= max(a.value, b.value) and a.value and b.value
    is_alike = a.unit == b.unit == result.unit and not is_mean  # 26.2 and 48.9 make a rate of 42.0
    return (a.span[0] + b.span[0], a.span[1] + b.span[1]) if is_alike else None


def _share(a: Figure, b: Figure, result: Figure) -> Span | None:
    is_rate = (result.unit == "%" or result.step < 1) and a.is_count and b.is_count
    return quotient(a, b, 100 if result.unit else 1) if is_rate and a.value <= b.value else None


def _ratio(a: Figure, b: Figure, result: Figure) -> Span | None:
    if a.unit != b.unit or min(a.value, b.value) <= 0 or (result.step == 1 and result.unit != "%"):
        return None
    low, high = quotient(b, a, 100 if result.unit == "%" else 1)
    return (low - 100, high - 100) if result.unit == "%" else (low, high)


_RELATIONS: tuple[tuple[str, str, Spanner, re.Pattern[str]], ...] = (  # with the columns that state it
    ("difference", "{b} minus {a} is", _difference, DELTA),
    ("share", "{a} of {b} is", _share, SHARE),
    ("ratio", "from {a} to {b} is", _ratio, MULTIPLE),
    ("total", "{a} plus {b} is", _sum, re.compile("(?!)")),
)


class _Fit(msgspec.Struct):
    """A relation with its operands, and the rows that follow or break it."""

    kind: str
    words: str
    span: Spanner
    a: Series
    b: Series
    is_named: bool
    evidence: int = 0
    held: int = 0
    broken: list[int] = []

    @property
    def is_meant(self) -> bool:
        """Whether enough of a column follows the relation, so that the rest must."""
        if self.b.role == "whole":
            return self.held > 1 and self.evidence > 3 and 2 * len(self.broken) <= self.held
        if self.is_named:
            most = self.held / 2 if self.held + len(self.broken) > 3 else self.held
            return self.evidence > 2 - (self.held > 1) and len(self.broken) <= most
        is_common = self.span in (_difference, _sum, _share)
        return is_common and self.held > 2 and self.evidence > 6 and 3 * len(self.broken) <= self.held

    def holds(self, a: Figure | None, b: Figure | None, result: Figure | None) -> bool | None:
        """Whether one row follows the relation; None if it says nothing of it."""
        if a is None or b is None or result is None or a.hedged or b.hedged or result.hedged:
            return None
        span = self.span(a, b, result)
        if span and self.kind == "difference" and result.step == 1 and RATE.search(self.a.name + self.b.name):
            span = span[0] - 1, span[1] + 1  # means that are rounded to whole numbers
        return meets(result, span) if span else None

    def weigh(self, result: Series, index: int) -> None:
        a, b, figure = self.a.figures[index], self.b.figures[index], result.figures[index]
        holds = self.holds(a, b, figure)
        if holds is False:
            self.broken.append(index)
        elif holds and a and b and figure and figure.value not in (a.value, b.value, 0, 100) and b.value > 9:
            self.held += 1
            self.evidence += figure.digits


def exceptions(source: Grid) -> Iterator[Violation]:
    """Every cell that breaks the relation which the rest of its column follows."""
    usable = [series for series in source.series if series.role not in ("low", "high")]
    wholes = [] if source.is_turned else _wholes(source, usable)
    meant = {result: [fit for fit in _fits(source, usable, wholes, result) if fit.is_meant]
             for result in (usable if len(usable) <= _WIDE else ())}  # fmt: skip
    owned = {(fit.kind, fit.a, fit.b) for fits in meant.values() for fit in fits if not fit.broken}
    for result, fits in meant.items():
        # Two numbers that give one column in full do not give another one in part.
        fits = [fit for fit in fits if not fit.broken or (fit.kind, fit.a, fit.b) not in owned]
        best = max((fit.evidence for fit in fits), default=0)
        fits = [fit for fit in fits if fit.evidence > 0.7 * best]
        if fits:
            top = max(fits, key=lambda fit: (fit.evidence, -abs(fit.a.column - result.column)))
            # A cell that some other reading explains is no contradiction.
            for index in sorted(set.intersection(*(set(fit.broken) for fit in fits))):
                yield from _violation(source, top, result, index)
            if top.b.role == "whole" and not top.broken:
                yield from _header(source, result, [fit.b for fit in fits])


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
    for a, b in [*permutations(others, 2), *((a, whole) for a in others for whole in wholes)]:
        for name, words, span, names in _RELATIONS:
            is_share, is_sum, is_whole = name == "share", name == "total", b.role == "whole"
            is_named = bool(names.search(result.name)) or (is_share and result.role == "share")
            is_unlikely = source.is_turned and not is_sum and not (is_named and len(result.name.split()) < 4)
            if is_unlikely or (is_whole and not is_share) or (is_sum and a.column > b.column):
                continue
            fit = _Fit(name, words, span, a, b, is_named, 0, 0, [])
            for index, kind in enumerate(kinds):
                is_mean = kind == "other" and name != "difference"
                is_mean = is_mean or (not is_named and bool(_NOT_ADDED.search(source.names[index])))
                if not is_mean and not (kind and is_whole) and len(fit.broken) <= 2 + fit.held:
                    fit.weigh(result, index)
            if fit.held:
                yield fit


def _violation(source: Grid, fit: _Fit, result: Series, index: int) -> Iterator[Violation]:
    a, b, figure = fit.a.figures[index], fit.b.figures[index], result.figures[index]
    span = fit.span(a, b, figure) if a and b and figure else None
    if not a or not b or not figure or not span:
        return
    rates = [rate.value for rate in source.parts(result)] if summary(source.names[index]) else []
    is_mean = rates and abs(sum(rates) / len(rates) - figure.value) <= figure.step
    if is_mean and fit.kind in ("share", "ratio"):
        return
    expected = shown(sum(span) / 2, figure)
    why = f"{fit.words.format(a=a.text, b=b.text)} {expected}, not {figure.text}"
    here = fit.a.places[index], fit.b.places[index], result.places[index]
    places = frozenset(place for place in here if place[0])
    yield Violation(fit.kind, here[2], places, figure.text, expected, why)


def _header(source: Grid, result: Series, wholes: Sequence[Series]) -> Iterator[Violation]:
    """A header that names another whole than its shares are of."""
    hit = re.search(r"\bof (?:the |all )?⟨(\d+)n⟩", phrase(result.name).text)
    stated = phrase(result.name).figures[int(hit[1])] if hit else None
    values = [whole.figures[0].value for whole in wholes if whole.figures[0]]
    if stated and stated.is_count and stated.value not in values:
        here, expected = (source.table.line, result.column), f"{values[0]:,.0f}"
        why = f"the shares below are of {expected}, the header says {stated.text}"
        yield Violation("announced", here, frozenset((here,)), stated.text, expected, why)

"""Print a value with the words of the house and keep its query beside it."""

from __future__ import annotations

import math

from blade import hostile, number_format
from blade.report.blocks import Code, Line, Num, Said, Span, prose


def num(text: str, value: float | None, query: str, strong: bool = False) -> Span:
    """The number, or the plain mark that there is none: what is not finite has no query."""
    if value is None or not math.isfinite(value):
        return text
    exact = float(value)
    return Num(text, int(exact) if exact.is_integer() else exact, query, strong)


def whole(value: int, query: str, strong: bool = False) -> Span:
    return num(number_format.whole(value), value, query, strong)


def number(value: float | None, query: str) -> Span:
    return num(number_format.number(value), value, query)


def percent(value: float | None, query: str) -> Span:
    return num(number_format.percent(value), value, query)


def points(value: float | None, query: str, strong: bool = False) -> Span:
    """A signed difference of two fractions in percentage points."""
    return num(number_format.points(value), value, query, strong)


def size(value: float | None, query: str) -> Span:
    """Points without a plus sign: a loss is called one."""
    return num(number_format.points(value).removeprefix("+"), value, query)


def probability(value: float | None, query: str) -> Span:
    return num(number_format.probability(value), value, query)


def p_number(value: float | None, query: str) -> Span:
    return num(number_format.p_number(value), value, query)


def p_value(value: float | None, query: str) -> Line:
    """`p = 0.25`, `p <0.001`, `p not testable`."""
    text = number_format.p_number(value)
    if text == number_format.NONE:
        return ("p not testable",)
    return ("p " if text[0] in "<>" else "p = ", p_number(value, query))


def count(value: int, noun: str, query: str, plural: str | None = None) -> Line:
    """`1 task`, `1,319 tasks`."""
    return (whole(value, query), " " + (noun if value == 1 else plural or noun + "s"))


def between(low: Span, high: Span) -> Line:
    """` [32.7%, 51.8%]`, or nothing where an end is no number."""
    if not isinstance(low, Num) or not isinstance(high, Num):
        return ()
    return (" [", low, ", ", high, "]")


def said(text: str, query: str, limit: int = 600, written: str | None = None) -> Said:
    """A sentence of a stage, cleaned and cut; `written` is the stage's own where `text` is a part of it."""
    return Said(hostile.line(text, limit), query, text if written is None else written)


def name(text: str) -> Line:
    """A name with its parts between backticks as code; all of it, where digits might be taken for a number."""
    line = prose(text)
    if any(letter.isdigit() for span in line if isinstance(span, str) for letter in span):
        return (Code(text.replace("`", "")),)
    return line


def joined(parts: list[Line], between: str = ", ", last: str = " and ") -> Line:
    """`a, b and c` of lines."""
    spans: list[Span] = []
    for place, part in enumerate(parts):
        spans += [last if place == len(parts) - 1 else between] if place else []
        spans += part
    return tuple(spans)

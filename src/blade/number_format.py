"""Format numbers for people: percent, points, plain numbers, p, counts; one way for every page, screen and sentence."""

from __future__ import annotations

import math

MINUS = "−"
NONE = "–"  # what stands where there is no number
EXACT = 1e-12  # sums of floats miss 0 and 1 by less than this


def percent(value: float | None) -> str:
    """A fraction as percent with one decimal; 0% and 100% only when exact."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) < EXACT:
        return "0%"
    if abs(value - 1) < EXACT:
        return "100%"
    if value < 0:
        return MINUS + percent(-value)
    if value < 0.0005:
        return "<0.1%"
    if 0.9995 <= value < 1:
        return ">99.9%"
    return f"{value * 100:.1f}%"


def points(value: float | None) -> str:
    """A difference of two fractions as signed percentage points."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) < EXACT:
        return "0 points"
    sign = "+" if value > 0 else MINUS
    size = "<0.1" if abs(value) < 0.0005 else f"{abs(value) * 100:.1f}"
    return f"{sign}{size} points"


def number(value: float | None) -> str:
    """A plain number with about four figures."""
    if value is None or not math.isfinite(value):
        return NONE
    size = abs(value)
    sign = MINUS if value < 0 and size >= EXACT else ""
    if size < EXACT:
        return "0"
    if size == int(size) and size < 1e15:
        return f"{sign}{int(size):,}"
    if size >= 1e15:
        return f"{sign}{size:.4g}"
    if size >= 1000:
        return f"{sign}{size:,.0f}"
    if size >= 100:
        return f"{sign}{size:.1f}"
    if size >= 1:
        return sign + f"{size:.{2 if size >= 10 else 3}f}".rstrip("0").removesuffix(".")
    if size >= 0.001:
        return f"{sign}{size:.3f}"
    return f"{sign}{size:.2g}"


def level(value: float | None, is_rate: bool) -> str:
    """A score: a rate as percent, any other as a plain number."""
    return percent(value) if is_rate else number(value)


def change(value: float | None, is_rate: bool) -> str:
    """A change of score with its sign: `+8.4 points` of a rate, `+0.084` of any other."""
    if is_rate or value is None or not math.isfinite(value):
        return points(value)
    return f"+{number(value)}" if value >= EXACT else number(value)


def size(value: float | None, is_rate: bool = True) -> str:
    """A change without a plus sign: `8.4 points`."""
    return change(value, is_rate).removeprefix("+")


def lost(value: float) -> str:
    """Points of score that are lost, without a sign: `11.5`; 0.0 only where nothing is."""
    return "0.0" if abs(value) < 5e-5 else "<0.1" if abs(value) < 5e-4 else f"{100 * value:.1f}"


def hundredths(value: float) -> str:
    """Points of score to two decimals, as they stand in a column."""
    return f"{100 * value:.2f}"


def exact(value: float) -> str:
    """A sum of changes to six decimals, for whoever adds them up again."""
    return f"{MINUS if value < -5e-7 else '+' if value >= 5e-7 else ''}{abs(value):.6f}"


def relative(value: float) -> str:
    """A part by which something grew or shrank: `+12.0%`."""
    return ("+" if value > 0 else MINUS if value < 0 else "") + percent(abs(value))


def probability(value: float | None) -> str:
    """A probability; 0 and 1 only when exact."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) < EXACT or abs(value - 1) < EXACT:
        return str(round(value))
    if value < 0.001:
        return "<0.001"
    if value > 0.999:
        return ">0.999"
    return f"{value:.3f}" if value < 0.01 or value > 0.99 else f"{value:.2f}"


def p_number(value: float | None) -> str:
    """A p as in a table; one that a computer cannot tell from 0 is still none."""
    return "<0.001" if value is not None and 0 <= value < EXACT else probability(value)


def p_value(value: float | None) -> str:
    """`p = 0.25`, `p <0.001`, `p not testable`."""
    printed = p_number(value)
    return "p not testable" if printed == NONE else f"p {printed}" if printed[0] in "<>" else f"p = {printed}"


def whole(value: int) -> str:
    return f"{value:,}"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """`1 task`, `1,319 tasks`."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def listing(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else ""

"""Turn printed numbers into what they may stand for, at the precision they were printed with."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec


class Printed(msgspec.Struct, frozen=True):
    """A number as printed: 12.5% is 12.5 with the unit %."""

    text: str
    value: float
    digits: int = 0
    unit: str = ""  # %, points, or nothing
    bound: str = ""  # < or >

    @property
    def is_whole(self) -> bool:
        """Printed as a count is: no decimals, no unit."""
        return not self.digits and not self.unit and not self.bound

    @property
    def half(self) -> float:
        """Half a unit of the last digit."""
        return 0.5 * 10.0**-self.digits

    @property
    def low(self) -> float:
        if self.bound:
            return self.value if self.bound == ">" else min(0.0, self.value)
        return self.value - self.half

    @property
    def high(self) -> float:
        if self.bound:
            return max(0.0, self.value) if self.bound == "<" else float("inf")
        return self.value + self.half

    @property
    def fraction(self) -> float:
        """What one printed unit is worth."""
        return 0.01 if self.unit else 1.0


DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
# Not inside a word, an address, a version, a date, or a number with a decimal comma.
BEFORE = r"(?<![\w.@^#/$€£])(?<!\d,)(?<!\d[-–−])(?<!\w[-+])"
AFTER = r"(?![\w@^]|[.,/:-]\d)"
UNIT = r"(?:\s?%|\s?(?:percentage\s)?(?:percent|points?|pp|ppt|pts)\b)"
_LEAD = re.compile(
    rf"(?P<sign>[-+−]?)(?P<bound>[<>]?)\s?(?P<digits>{DIGITS})(?P<unit>{UNIT})?(?=$|[\s,;(\[])(?!,\d)"
)
_WHOLE = re.compile(_LEAD.pattern + r"(?P<noun>\s[a-z]{2,20})?")
NONE = frozenset(("", "–", "—", "-", "−"))


@lru_cache(maxsize=50_000)
def printed(cell: str) -> Printed | None:
    """A cell that holds one number, with its unit or what it counts; None for anything else."""
    hit = _WHOLE.fullmatch(cell.strip())
    return of_parts(hit["sign"], hit["digits"], hit["unit"], hit["bound"], hit[0]) if hit else None


@lru_cache(maxsize=50_000)
def lead(cell: str) -> Printed | None:
    """The number that a cell begins with, whatever follows: an interval, a count, a noun."""
    hit = _LEAD.match(cell)
    return of_parts(hit["sign"], hit["digits"], hit["unit"], hit["bound"], hit[0]) if hit else None


def of_parts(
    sign: str | None, digits: str, unit: str | None, bound: str | None = "", text: str = ""
) -> Printed:
    """A number of its parts, as a pattern found them."""
    unit = (unit or "").strip().lower()
    unit = "%" if unit in ("%", "percent") else "points" if unit else ""
    text = text or f"{sign or ''}{bound or ''}{digits}" + {"%": "%", "points": " points"}.get(unit, "")
    value = float(digits.replace(",", "")) * (-1 if sign and sign in "-−" else 1)
    return Printed(text, value, len(digits.partition(".")[2]), unit, bound or "")


def thousands_in_doubt(numbers: list[Printed]) -> bool:
    """Whether 1.234 may be a thousand or a fraction: three decimals behind one to three digits, no other."""
    with_decimals = [one for one in numbers if one.digits]
    return any(abs(one.value) >= 1 for one in with_decimals) and all(
        one.digits == 3 and not one.unit for one in with_decimals
    )


def share(part: Printed, whole: Printed) -> tuple[float, float]:
    """The least and the greatest share that two printed numbers allow."""
    exact = part.is_whole and whole.is_whole
    low, high = (part.value, part.value) if exact else (part.low, part.high)
    least, most = (whole.value, whole.value) if exact else (whole.low, whole.high)
    if least <= 0:
        return 0.0, float("inf")
    return low / (most if low >= 0 else least), high / (least if high >= 0 else most)


EPSILON = 1e-9


def meets(number: Printed, low: float, high: float) -> bool:
    """Whether a printed number can stand for something between two bounds, in its own unit."""
    slack = EPSILON * max(1.0, abs(low), abs(high))
    return number.low - slack <= high and low <= number.high + slack


def written(value: float, like: Printed) -> str:
    """A value printed as another number was."""
    text = f"{value:,.{like.digits}f}".replace("-", "−")
    return text + {"%": "%", "points": " points"}.get(like.unit, "")

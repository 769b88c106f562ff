"""Turn what a sentence says of an amount into a quantity: figures, words, ratios, ranges, hedges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from blade.check.places import is_place
from blade.check.reader.lexicon import lowered

COUNT, RATE, RATIO, POINTS = "count", "rate", "ratio", "points"


class Quantity(msgspec.Struct, frozen=True):
    """An amount as printed, and how closely it is meant."""

    text: str
    start: int
    end: int
    kind: str  # count: a bare number; rate: percent or a fraction in words; ratio: x of y; points
    value: float
    of: float | None = None
    unit: float = 1.0  # of the last printed digit
    hedge: str = ""  # about, over, under, least, most
    high: float | None = None  # the other end of a range

    def fits(self, truth: float) -> bool:
        """Whether the amount can stand for `truth`."""
        slack = self.unit * 0.5 + 1e-9
        if self.high is not None:
            return self.value - slack <= truth <= self.high + slack
        if self.hedge in ("over", "least"):
            return truth >= self.value - (slack if self.hedge == "least" else 1e-9)
        if self.hedge in ("under", "most"):
            return truth <= self.value + (slack if self.hedge == "most" else 1e-9)
        if self.hedge == "about":
            return abs(truth - self.value) <= max(0.1 * abs(self.value), self.unit) + 1e-9
        # rounded, or cut off behind the last digit
        return abs(truth - self.value) <= slack or 0 <= truth - self.value < self.unit - 1e-9 < 1

    def as_rate(self) -> tuple[Quantity, ...]:
        """What it says of a share: a bare number up to 1 is one, a larger one may lack its sign."""
        if self.kind == RATIO and self.of:
            share = self.value / self.of
            return (msgspec.structs.replace(self, kind=RATE, value=share, unit=1e-6, of=None),)
        if self.kind == COUNT:
            if self.value <= 1 and (self.high or 0) <= 1:
                return (self,)
            high = None if self.high is None else self.high / 100
            return (msgspec.structs.replace(self, value=self.value / 100, unit=self.unit / 100, high=high),)
        return (self,)

    def as_proportion(self, sizes: Sequence[float]) -> Quantity | None:
        """`two out of five` as a share, where there are many more than five of what is counted."""
        if not self.of or not sizes or min(sizes) < 2 * self.of or self.value > self.of:
            return None
        if not (2 <= self.of <= 10 or self.of in (20, 100)):
            return None
        unit, hedge = min(0.5 / self.of, 0.08), self.hedge or "about"
        return msgspec.structs.replace(
            self, kind=RATE, value=self.value / self.of, of=None, unit=unit, hedge=hedge
        )


WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15,
    "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40,
    "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}

_FIGURE = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_SPELT = (
    r"(?:(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-(?:one|two|three|four|five|six|seven|"
    r"eight|nine))?|" + ("|".join(sorted(WORDS, key=len, reverse=True)) + ")")
)
_ONE = rf"(?:{_FIGURE}|{_SPELT})"
_UNIT = r"(?:\s?%|\s?(?:percent|per cent)\b|\s?(?:percentage points?|points?|pts?|pp|ppt)\b)"
_HEDGE = (
    r"(?P<hedge>(?:about|around|roughly|approximately|approx\.?|circa|ca\.|some|nearly|almost|close to|"
    r"just under|"
    r"just over|slightly (?:over|under|more than|less than|above|below)|more than|greater than|higher than|"
    r"over|"
    r"above|exceeds|exceeding|at least|no (?:less|fewer) than|less than|lower than|fewer than|under|below|"
    r"at most|"
    r"no more than|up to|a maximum of|a minimum of|exactly|precisely)\s+|[~≈<>≤≥]\s?|[<>]=\s?)?"
)
_PATTERN = re.compile(
    rf"(?<![\w.@^#/`-])(?<!\w[-–])(?<!\[){_HEDGE}(?P<sign>[-+−](?=\d))?(?:"
    rf"(?P<part>(?:(?:one|a|an|two|three|four)[ -])?(?P<piece>half|thirds?|quarters?|fifths?|sixths?|"
    rf"eighths?|tenths?)\b"
    r"(?=\s+(?:of|the)\b|\s+all\b))"
    rf"|(?P<top>{_ONE})(?:\s?/\s?|\s+(?:out\s+)?of\s+(?:(?:the|all|its|our|these|a total "
    rf"of)\s+)*)(?P<below>{_ONE})(?!\s?%)"
    rf"|(?<!from )(?:between\s+)?(?P<low>{_FIGURE})(?P<unit1>{_UNIT})?(?:\s?[–—]\s?|\s+to\s+|\s?-\s?|"
    rf"(?<=\d)\s+and\s+)(?P<high>{_FIGURE})(?P<unit2>{_UNIT})"
    rf"|(?P<number>{_ONE})(?P<unit>{_UNIT})?)(?![\w@^]|[./:]\d|-\d|/\w|[-–](?:turn|step|shot|way|"
    rf"bit)\b|\()",
)
_HEDGES = {
    "over": "over", "above": "over", "more than": "over", "greater than": "over", "higher than": "over",
    "exceeds": "over", "exceeding": "over", ">": "over", "at least": "least", "no less than": "least",
    "no fewer than": "least", "≥": "least", ">=": "least", "a minimum of": "least", "less than": "under",
    "lower than": "under", "fewer than": "under", "under": "under", "below": "under", "<": "under",
    "at most": "most", "no more than": "most", "up to": "most", "a maximum of": "most",
    "≤": "most", "<=": "most",
    "exactly": "", "precisely": "",
}  # fmt: skip


# `200 rollouts over 50 tasks` spreads them, and says nothing of more than 50.
_SPREAD = re.compile(
    r"\b(?:rollouts|rows|attempts|trials|samples|repeats|traces|episodes|averaged|mean|computed|"
    r"measured|spread)\s+$|\d\s?%\s+$"
)


def quantities(text: str, told: str = "") -> list[Quantity]:
    """The amounts in a text, in order; `told` is the text before anything was taken out of it.

    The number of a step, a repeat or a row is none.
    """
    return list(_quantities(text, told or text))


@lru_cache(maxsize=10_000)  # cells say the same few amounts over and over
def _quantities(text: str, told: str) -> tuple[Quantity, ...]:
    found = (_quantity(hit, lowered(told)) for hit in _PATTERN.finditer(lowered(text)))
    return tuple(
        msgspec.structs.replace(one, text=text[one.start : one.end])
        for one in found
        if one is not None and not is_place(told, one.start)
    )


def _quantity(hit: re.Match[str], told: str) -> Quantity | None:
    hedge_text = " ".join((hit["hedge"] or "").lower().split())
    hedge = _HEDGES.get(hedge_text, "about") if hedge_text else ""
    start = hit.start()
    if hedge_text == "over" and _SPREAD.search(told, max(0, start - 20), start):
        hedge, hedge_text, start = "", "", hit.end("hedge")
    sign = -1.0 if (hit["sign"] or "") in ("-", "−") and hit["sign"] else 1.0
    if hit["part"]:
        return _part(hit, hedge_text, start)
    if hit["top"]:
        top, below = _value(hit["top"]), _value(hit["below"])
        if top != int(top) or below != int(below):
            return None
        return Quantity(hit[0], start, hit.end(), RATIO, top, below, 1.0, hedge)
    if hit["low"]:
        kind = _kind(hit["unit2"])
        scale = 100 if kind in (RATE, POINTS) else 1
        low, high = _value(hit["low"]) / scale, _value(hit["high"]) / scale
        if high < low:
            return None
        unit = max(_last_digit(hit["low"]), _last_digit(hit["high"])) / scale
        return Quantity(hit[0], start, hit.end(), kind, low, None, unit, hedge, high)
    kind = _kind(hit["unit"])
    scale = 100 if kind in (RATE, POINTS) else 1
    unit = _last_digit(hit["number"]) / scale
    return Quantity(hit[0], start, hit.end(), kind, sign * _value(hit["number"]) / scale, None, unit, hedge)


def _part(hit: re.Match[str], hedge_text: str, start: int) -> Quantity:
    many = re.match(r"(one|a|an|two|three|four)[ -]", hit["part"].lower())
    count = WORDS.get(many[1], 1) if many else 1
    share = count / _PARTS[hit["piece"].lower().rstrip("s") if hit["piece"].lower() != "half" else "half"]
    hedge = _HEDGES.get(hedge_text, "about")
    unit = 0.002 if hedge_text in ("exactly", "precisely") else 0.05
    return Quantity(hit[0], start, hit.end(), RATE, share, None, unit, hedge)


def _kind(unit: str | None) -> str:
    if not unit:
        return COUNT
    return RATE if unit.strip().lower() in ("%", "percent", "per cent") else POINTS


_MOST = 1e300  # more than anyone counts, and still a number that can be made whole


def _value(digits: str) -> float:
    lowered = digits.lower()
    if lowered[0].isdigit():
        return min(float(digits.replace(",", "")), _MOST)
    return float(sum(WORDS[part] for part in lowered.split("-")))


def _last_digit(digits: str) -> float:
    return 10.0 ** -len(digits.partition(".")[2]) if digits[0].isdigit() else 1.0

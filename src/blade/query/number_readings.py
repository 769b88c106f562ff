"""Read printed numbers with unit and precision, and decide whether a value rounds to what is printed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

# 1,164 · 1 164 · 42.0 · 4.2e3 · .5 · 42,0 as many languages write it
_NUMBER = r"(?:\d{1,3}(?:[,\u202f\u00a0 ]\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|\d+,\d{1,2}(?!\d)|\.\d+"
_UNITS = (
    r"(?P<unit>\s?%|\s?per ?cent(?:age points?)?|\s?points?|\s?pp\b"
    r"|\s?(?:thousand|million|billion|[kKMB])(?![\w%])|\s?[A-Za-z][\w/-]*|\s?×)?"
)
_LAST = re.compile(
    r"(?P<than>(?:(?:less|fewer|more|greater|higher|lower) than|at (?:least|most)|no (?:more|fewer|less) than"
    r"|exceed(?:s|ed|ing)?|(?<!all )(?<!go )over|above|under|below|not even)\s+)?"
    rf"(?P<hedge>(?:about|around|roughly|approximately|nearly|almost|close to|some|circa|~|≈)\s*)?"
    # a dash behind a number is no sign: 32.4%–52.3%
    rf"(?P<bound>[<>≤≥]\s?)?(?P<sign>(?<![\w%)\]])[+\-−–]\s?)?[$€£]?"
    rf"(?<![\d.,])(?P<number>{_NUMBER}){_UNITS}[*_`\s)\],;]*$",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"\b(?:halves|half|thirds?|quarters?|fourths?|fifths?|tenths?)[*_`\s)\]]*$", re.I)
_WORDS = {
    word: float(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty".split()
    )
} | {"none": 0.0, "no": 0.0, "once": 1.0, "twice": 2.0}
_OF = re.compile(
    rf"(?P<part>{_NUMBER}|\b(?:{'|'.join(_WORDS)})\b)\s*(?:of|out of|/|(?P<rate>in|per)(?= 10+\b))\s*"
    rf"(?:the\s+)?(?:all\s+)?(?P<whole>{_NUMBER})(?:\s+[a-z]+)?[*_`\s)\]]*$",
    re.IGNORECASE,
)
_INTERVAL = re.compile(
    rf"(?<=[\d%])\s*[\[(](?:95\s?% (?:CI|interval):?\s*)?(?P<low>[-−]?(?:{_NUMBER})\s?%?)"
    rf"(?:,|–|\s+to)\s*(?P<high>[-−]?(?:{_NUMBER})\s?%?)\s*[\])]\s*$"
)
_BOUNDS = {"at least": "≥", "at most": "≤", "no more": "≤", "no ": "≥"}
_BOUNDS |= dict.fromkeys(("less", "fewer", "lower", "under", "below", "not even"), "<")
_BOUNDS |= dict.fromkeys(("more", "gr", "hi", "ex", "over", "above"), ">")
# Over 40 tasks, and not more than 40.
_TAKEN = re.compile(r"\b(?:mean|averaged?|summed|totals?|taken|computed|rate)\s+$", re.IGNORECASE)
_LAST_WORD = re.compile(r"(?<![\w-])(?P<word>[A-Za-z]+)(?:\s+[a-z]+)?[*_`\s)\]]*$")
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "b": 1e9}
_TINY = 1e-9


class Figure(msgspec.Struct, frozen=True):
    """A number as it is printed."""

    text: str
    number: float
    step: float  # of its last printed digit
    is_percent: bool = False
    is_points: bool = False
    bound: str = ""  # < or >
    whole: float | None = None  # of `6 of 10`
    is_rough: bool = False
    start: int = 0  # in the text before it

    @property
    def is_bare(self) -> bool:
        return not (self.is_percent or self.is_points)


def interval(text: str) -> tuple[Figure, Figure] | None:
    """Both ends of the interval in brackets that a text ends with, behind a number."""
    hit = _INTERVAL.search(text[-200:])
    low, high = (last_figure(hit[end]) for end in ("low", "high")) if hit else (None, None)
    return (low, high) if low is not None and high is not None else None


def last_figure(text: str) -> Figure | None:
    """The number that a text ends with, and its unit; that before an interval in brackets."""
    text = re.sub(r"\s*\(n ?= ?[\d,]+\)\s*$", "", text[-200:])  # 42% (n = 200)
    if hit := _INTERVAL.search(text):
        text = text[: hit.start()]
    if _FRACTION.search(text):
        return None  # two thirds: in words of its own
    pair = _OF.search(text)
    if pair is not None:
        number = _WORDS.get(pair["part"].lower())
        part, step = (number, 1.0) if number is not None else (_plain(pair["part"]), _step(pair["part"]))
        whole = _plain(pair["whole"])
        if pair["rate"]:  # 4 in 100
            return Figure(pair[0], part / whole, step / whole, start=pair.start())
        return Figure(pair[0], part, step, whole=whole, start=pair.start())
    hit = _LAST.search(text)
    if hit is None or (hit["unit"] or "").strip().lower() in _WORDS:  # in task 12 four
        word = _LAST_WORD.search(text)
        number = _WORDS.get(word["word"].lower()) if word else None
        return Figure(word[0], number, 1.0, start=word.start()) if word and number is not None else None
    unit = (hit["unit"] or "").strip().lower()
    scale = _SCALES.get(unit, 1.0)
    than = (hit["than"] or "").lower() if not _TAKEN.search(text[: hit.start()]) else ""
    bound = next((sign for word, sign in _BOUNDS.items() if than.startswith(word)), "")
    sign = -1.0 if (hit["sign"] or "").strip() in ("-", "−", "–") else 1.0
    return Figure(
        hit[0], sign * _plain(hit["number"]) * scale, _step(hit["number"]) * scale,
        is_percent=unit in ("%", "percent", "per cent"),
        is_points=unit.startswith(("point", "pp", "percentage", "per centage")),
        bound=bound or (hit["bound"] or "").strip(), is_rough=bool(hit["hedge"]), start=hit.start(),
    )  # fmt: skip


def readings(text: str) -> Iterator[Figure]:
    """The number that a text ends with; then the last of two that a blank may part: version 2 200."""
    figure = last_figure(text)
    if figure is not None:
        yield figure
        if figure.whole is not None and not figure.text[:1].isdigit():  # none of the 7: 7 may be cited
            yield Figure(figure.text, figure.whole, 1.0, start=figure.start)
        parted = re.search(r"\d (?=\d{3}(?!\d)[^\d]*$)", text[-200:])
        other = last_figure(text[-200:][parted.end() :]) if parted else None
        yield from (other,) if other is not None else ()


def _digits(text: str) -> str:
    is_decimal = re.fullmatch(r"\d+,\d{1,2}", text) is not None
    return text.replace(",", ".") if is_decimal else re.sub(r"[,\u202f\u00a0 ]", "", text)


def _plain(text: str) -> float:
    return float(_digits(text))


def _step(text: str) -> float:
    mantissa, _, exponent = _digits(text).lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (-decimals + int(exponent or 0))


def agrees(figure: Figure, value: Any) -> bool:
    """Whether the printed number is the value, rounded as it is printed."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    if figure.whole is not None:
        share = figure.number / figure.whole if figure.whole else math.nan
        return _near(figure.number, value, figure.step) or abs(share - value) < _TINY
    scaled = value * 100 if figure.is_percent or figure.is_points else float(value)
    slack = figure.step / 2 if figure.bound in ("≤", "≥") else 0.0  # at least 1.60 may be 1.598
    if figure.bound in ("<", "≤"):
        return scaled <= figure.number + slack
    if figure.bound in (">", "≥"):
        return scaled >= figure.number - slack
    # of a number that is said to be rough, the last digit that is not zero
    rough, step = abs(figure.number) if figure.is_rough else 0.0, figure.step
    while step < rough and abs(rough / (10 * step) - round(rough / (10 * step))) < _TINY:
        step *= 10
    return _near(figure.number, scaled, step)


def _near(printed: float, value: float, step: float) -> bool:
    return abs(printed - value) <= step / 2 + _TINY * max(1.0, abs(value))

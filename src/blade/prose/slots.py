"""Turn a statement into its slots: numbers, ratios, code, quotations, and the words around them."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

NUMBER, RATIO, ADDRESS, CODE, QUOTED, WORD = "number", "ratio", "address", "code", "quoted", "word"


class Slot(msgspec.Struct, frozen=True):
    """A part of a statement that could be otherwise."""

    kind: str
    text: str
    start: int
    end: int
    value: float | None = None  # of a number: percent as a fraction, points as a fraction
    unit: str = ""  # %, points, or nothing
    of: float | None = None  # of a ratio or `3 of 4`: its denominator
    digits: int = 0  # decimals as printed, in the unit of print
    bound: str = ""  # < or > before it


_NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?"
_PATTERN = re.compile(
    r"(?P<code>(?<!`)(?P<tick>`{1,9})(?!`)(?P<inside>.{1,2000}?)(?<!`)(?P=tick)(?!`))"
    r"|(?P<quoted>“[^“”]{0,2000}”|(?<!\w)\"[^\"\n]{3,2000}\"(?!\w))"
    r"|(?P<ratio>(?<![\w./-])(?P<top>\d+(?:,\d{3})*)/(?P<below>\d+(?:,\d{3})*)(?![\w/]|\.\d))"
    rf"|(?P<number>(?<![\w.@^#-])(?P<bound>[<>≥≤~≈]?)\s?(?P<sign>[-+−]?)(?P<digits>{_NUMBER})"
    r"(?P<unit>\s?%|\s?(?:percent(?:age points)?|points?|pp|ppt)\b)?(?![\w@^]|[./-]\d))",
)
_MINUS = "-−"


@lru_cache(maxsize=20_000)
def slots(text: str) -> tuple[Slot, ...]:
    """The slots of a statement, in order; nothing overlaps."""
    return tuple(_slot(hit) for hit in _PATTERN.finditer(text))


def _slot(hit: re.Match[str]) -> Slot:
    start, end = hit.span()
    if hit["code"]:
        inside = hit["inside"].strip()
        return Slot(CODE, inside, start, end)
    if hit["quoted"]:
        return Slot(QUOTED, hit["quoted"][1:-1], start, end)
    if hit["ratio"]:
        top, below = (_value(hit[name]) for name in ("top", "below"))
        return Slot(RATIO, hit["ratio"], start, end, top, of=below)
    return _numbered(hit)


def _numbered(hit: re.Match[str]) -> Slot:
    text = hit["number"]
    lead = len(text) - len(text.lstrip())
    unit = (hit["unit"] or "").strip().lower()
    unit = "%" if unit in ("%", "percent") else "points" if unit else ""
    value = _value(hit["digits"]) * (-1 if hit["sign"] and hit["sign"] in _MINUS else 1)
    places = hit["digits"].partition("e")[0].partition(".")[2]
    return Slot(
        NUMBER, text.strip(), hit.start() + lead, hit.end(), value / 100 if unit else value, unit,
        digits=len(places), bound=hit["bound"],
    )  # fmt: skip


def _value(digits: str) -> float:
    return float(digits.replace(",", ""))


def skeleton(text: str) -> str:
    """What a statement says apart from its slots, in lower case: two statements of one kind have the same."""
    found, at = [], 0
    for slot in slots(text):
        found += [text[at : slot.start], f" {_MARKS[slot.kind]} "]
        at = slot.end
    found.append(text[at:])
    return " ".join(re.findall(r"[^\W_]+(?:['’_-][^\W_]+)*|[#$&@]", "".join(found).lower()))


_MARKS = {NUMBER: "#", RATIO: "#", ADDRESS: "@", CODE: "$", QUOTED: "&"}


def rounded(slot: Slot) -> float:
    """Half a unit of the last digit that a number was printed with."""
    return 0.5 * 10.0**-slot.digits / (100 if slot.unit else 1)


def agrees(slot: Slot, value: float) -> bool:
    """Whether a printed number can stand for `value`."""
    if slot.value is None:
        return False
    if slot.bound in ("<", "≤"):
        return value <= slot.value
    if slot.bound in (">", "≥"):
        return value >= slot.value
    return abs(slot.value - value) <= rounded(slot) * (1 + 1e-9) + 1e-12

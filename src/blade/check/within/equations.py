"""Find equations written out in a text whose two sides differ: 96 expected = 92 scored + 4 lost."""

from __future__ import annotations

import re
from functools import lru_cache

from blade.check.within.numbers import AFTER, BEFORE, DIGITS, UNIT, Printed, of_parts, written
from blade.check.within.passage import Finding

_LABEL = r"(?:\s[A-Za-z][\w'’-]{0,30}){0,4}"
_TERM = rf"{BEFORE}[-+−]?{DIGITS}{UNIT}?{AFTER}{_LABEL}"
_SIDE = rf"{_TERM}(?:\s[-+−–]\s{_TERM}){{0,20}}"
_EQUATION = re.compile(rf"(?P<left>{_SIDE})\s=\s(?P<right>{_SIDE})(?=\s?[.,;:()\]]|\s[a-z]|$)")
_PART = re.compile(
    rf"(?:(?P<operator>(?<=\s)[-+−–])\s)?{BEFORE}(?P<sign>[-+−]?)(?P<digits>{DIGITS})(?P<unit>{UNIT})?{AFTER}"
)
# Beside these an equation goes on, or stands inside a larger one.
_GOES_ON = re.compile(r"^\s?(?:[-+−–×*/·^=]|\*\*|x\s\d|times\b|divided\b|of\b|per\b)")
_WENT_BEFORE = re.compile(r"(?:[-+−–×*/·^=(|]|\bx|\btimes|\bover|\bper)\s?$")


@lru_cache(maxsize=20_000)
def equations(text: str) -> tuple[Finding, ...]:
    """Every equation of a text whose terms are all printed numbers."""
    if " = " not in text:
        return ()
    found = []
    for hit in _EQUATION.finditer(text):
        whole = hit[0]
        if not re.search(r"\s[-+−–]\s", whole):
            continue
        before, after = text[: hit.start()], text[hit.end() :]
        rest = re.split(r"[.;,)](?:\s|$)", after, maxsplit=1)[0]
        if re.search(r"\s[-+−–×*/·]\s", rest):
            continue
        if _GOES_ON.match(after) or (_WENT_BEFORE.search(before) and not before.endswith("(")):
            continue
        finding = _judged(whole, hit)
        if finding:
            found.append(finding)
    return tuple(found)


def _terms(side: str) -> list[Printed]:
    terms = []
    for hit in _PART.finditer(side):
        minus = (hit["operator"] or "") in tuple("-−–")
        one = of_parts(hit["sign"], hit["digits"], hit["unit"])
        terms.append(Printed(one.text, -one.value, one.digits, one.unit) if minus else one)
    return terms


def _judged(whole: str, hit: re.Match[str]) -> Finding | None:
    left, right = _terms(hit["left"]), _terms(hit["right"])
    every = left + right
    slack = 1e-9 if all(one.is_whole for one in every) else sum(one.half for one in every) + 1e-9
    one_scale = len({bool(one.unit) for one in every}) == 1
    sums = sum(one.value for one in left), sum(one.value for one in right)
    # Points beside shares between 0 and 1: either side may count in hundredths.
    scales = [(1, 1)] if one_scale else [(1, 1), (100, 1), (1, 100)]
    if any(abs(sums[0] * first - sums[1] * other) <= slack * max(first, other) for first, other in scales):
        return Finding(True, "sum", whole, hit.start(), None, "both sides are equal", sums[0])
    if not one_scale and len({one.unit for one in left} & {one.unit for one in right}) == 0:
        return None
    total, of = (left[0], sums[1]) if len(left) == 1 else (right[0], sums[0])
    if len(left) > 1 and len(right) > 1:
        return None
    other = hit["right"] if len(left) == 1 else hit["left"]
    expected = written(of, max(every, key=lambda one: one.digits))
    return Finding(False, "sum", whole, hit.start(), expected, f"{other} is {expected}", total.value)

"""Find changes that do not follow from where they start and end, and verbs that point the other way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from blade.check.within.numbers import AFTER, BEFORE, DIGITS, UNIT, Printed, of_parts, written
from blade.check.within.passage import Finding

_RISE = (
    r"rose|rises|risen|rising|increased|increases|increasing|grew|grows|climbed|climbs|jumped"
    r"|went up|goes up|up"
)
_FALL = (
    r"fell|falls|fallen|falling|decreased|decreases|decreasing|dropped|drops|dropping|declined|declines"
    r"|shrank|shrinks"
    r"|went down|goes down|sank|down"
)
_DOUBLED = {"doubled": 2.0, "doubles": 2.0, "tripled": 3.0, "triples": 3.0, "halved": 0.5, "halves": 0.5}


def _number(name: str) -> str:
    return (
        rf"{BEFORE}(?P<{name}_sign>[-+−]?)(?P<{name}>{DIGITS})(?P<{name}_unit>{UNIT})?{AFTER}"
        rf"(?:\s\[[^\[\]]{{3,40}}\])?"
    )


_FROM_TO = re.compile(
    rf"(?:\b(?P<verb>{_RISE}|{_FALL}|{'|'.join(_DOUBLED)})\b(?:\s(?:only|slightly|sharply|steadily"
    rf"|markedly|significantly))?"
    rf"(?:\sby\s{_number('by')},?)?\s)?"
    rf"from\s{_number('a')}(?:\s[a-z]+)?\sto\s{_number('b')}"
    rf"(?:\s[a-z]+)?(?:(?:,|:)?\s(?:a|an|which is an?)\s(?:[a-z]+\s)?(?P<noun>change|rise|fall|drop"
    rf"|increase|decrease|gain"
    rf"|loss|improvement|decline|difference|reduction|jump)\sof\s{_number('c')}"
    rf"|\s\((?P<bracket>{_number('d')})\))?",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|never|no longer|without|nor|neither|hardly|would|could|should|if)\b|n['’]t\b", re.I
)
_NEARLY = re.compile(r"\b(?:nearly|almost|about|roughly|more than|less than|over|up to)\s?$", re.I)
_DOWN_NOUNS = ("fall", "drop", "decrease", "decline", "reduction")
_UP_NOUNS = ("rise", "increase", "jump")  # a gain or an improvement may be a lower number


@lru_cache(maxsize=20_000)
def changes(text: str) -> tuple[Finding, ...]:
    """Every `from A to B` of a text, with the change and the verb that go with it."""
    if "from" not in text.lower():
        return ()
    found: list[Finding] = []
    for hit in _FROM_TO.finditer(text):
        clause = re.split(r"[.;:,]\s", text[: hit.start()])[-1]
        if not _NEGATED.search(clause) and not _NEARLY.search(clause):
            found += _judged(hit)
    return tuple(found)


_SIGNED = re.compile(
    rf"\b(?:rose|rises|increased|increases|grew|grows|gained|gains|an? (?:[a-z]+ )?(?:increase|rise|gain"
    rf"|improvement))"
    rf"\s(?:by|of)\s(?P<sign>[-−])(?P<digits>{DIGITS})(?P<unit>{UNIT})",
    re.IGNORECASE,
)


@lru_cache(maxsize=20_000)
def signs(text: str) -> tuple[Finding, ...]:
    """`an increase of −3 points`: a word for more before a number below zero."""
    found = []
    for hit in _SIGNED.finditer(text):
        clause = re.split(r"[.;:,]\s", text[: hit.start()])[-1]
        if not _NEGATED.search(clause) and float(hit["digits"].replace(",", "")):
            why = "a number below zero is no increase"
            found.append(Finding(False, "direction", hit[0], hit.start(), "a decrease", why, -1.0))
    return tuple(found)


def _read(hit: re.Match[str], name: str) -> Printed | None:
    if not hit[name]:
        return None
    return of_parts(hit[f"{name}_sign"], hit[name], hit[f"{name}_unit"])


def _judged(hit: re.Match[str]) -> Iterator[Finding]:
    start, end = _read(hit, "a"), _read(hit, "b")
    if start is None or end is None:
        return
    if end.unit and not start.unit:  # from 41 to 38%
        start = Printed(start.text, start.value, start.digits, end.unit)
    if start.unit != end.unit:
        return
    low, high = end.low - start.high, end.high - start.low
    if start.is_whole and end.is_whole:
        low = high = end.value - start.value
    if hit["verb"] or (hit["noun"] or "").lower() in _DOWN_NOUNS + _UP_NOUNS:
        yield from _direction(hit, start, end, low, high)
    for name in ("by", "c", "d"):
        size = _read(hit, name)
        bare = name == "d" and not hit["d_sign"] and size is not None and size.unit != "points"
        if size is not None and not bare:
            yield from _size(hit, size, start, end, (low, high))


def _direction(
    hit: re.Match[str], start: Printed, end: Printed, low: float, high: float
) -> Iterator[Finding]:
    verb = (hit["verb"] or hit["noun"]).lower()
    if verb in _DOUBLED:
        if start.value > 0 and end.value > 0:
            ratio, factor = end.value / start.value, _DOUBLED[verb]
            holds = 0.8 <= ratio / factor <= 1.25
            loose = 0.75 <= ratio / factor <= 1.33
            if holds or not loose:
                why = f"{end.text} is {ratio:.2g} times {start.text}"
                yield Finding(
                    holds, "direction", hit[0], hit.start(), None if holds else f"{ratio:.2g} times", why
                )
        return
    up = verb in _UP_NOUNS or re.fullmatch(_RISE, verb) is not None
    if low <= 0 <= high:
        return
    holds = (low > 0) == up
    why = f"{end.text} is {'more' if low > 0 else 'less'} than {start.text}"
    yield Finding(
        holds, "direction", hit[0], hit.start(), None if holds else "the other direction", why, verb
    )


def _size(
    hit: re.Match[str], size: Printed, start: Printed, end: Printed, between: tuple[float, float]
) -> Iterator[Finding]:
    if bool(size.unit) != bool(start.unit) and not (size.unit == "%" or not start.unit):
        return
    low, high = between
    readings = [(low, high)]
    if size.unit and not start.unit:  # shares between 0 and 1, told in points
        readings.append((low * 100, high * 100))
    if size.unit == "%" and (relative := _relative(start, end)):
        readings.append(relative)
    signed = size.text[:1] in tuple("+-−") and hit["verb"] is None
    slack = size.half + 1e-9
    sizes = (size.value,) if signed else (size.value, -size.value)
    if any(least - slack <= one <= most + slack for least, most in readings for one in sizes):
        yield Finding(True, "difference", hit[0], hit.start(), None, "the change follows", size.value)
        return
    change = written(end.value - start.value, max(size, start, end, key=lambda one: one.digits))
    why = f"from {start.text} to {end.text} is {change.removesuffix(' points')}"
    yield Finding(False, "difference", hit[0], hit.start(), change, why, size.value)


def _relative(start: Printed, end: Printed) -> tuple[float, float] | None:
    if start.low <= 0 or end.low < 0:
        return None
    return 100 * (end.low / start.high - 1), 100 * (end.high / start.low - 1)


_TWO = re.compile(
    rf"(?P<before>.*?)(?:a difference of (?P<digits>{DIGITS}) points?"
    rf"|:\s(?P<sign>[-+−])(?P<signed>{DIGITS}) points?)(?![\w.]\d)"
)
_PERCENT = re.compile(rf"{BEFORE}(?P<digits>{DIGITS})\s?%")
_UNREAL = re.compile(r"\b(?:not|never|would|could|if)\b|n['’]t\b", re.I)
_BRACKETS = re.compile(r"\[[^\[\]]*\]")


@lru_cache(maxsize=20_000)
def differences(text: str) -> tuple[Finding, ...]:
    """`0% with it, 78.2% without: a difference of 78.2 points`, after just two percentages."""
    hit = _TWO.match(text) if "points" in text else None
    if not hit or len(re.findall(r"points?\b", hit["before"])):
        return ()
    shares = [of_parts("", one["digits"], "%") for one in _PERCENT.finditer(_BRACKETS.sub("", hit["before"]))]
    if len(shares) != 2 or "¤" in hit["before"][-3:] or _UNREAL.search(hit["before"]):
        return ()
    first, second = shares
    size = of_parts("", hit["digits"] or hit["signed"], " points")
    slack = first.half + second.half + size.half + 1e-9
    holds = abs(abs(first.value - second.value) - size.value) <= slack
    # Two coarse percentages may be of other things than the difference; finer ones are to be taken apart.
    if not holds and not (first.digits or second.digits):
        return ()
    change = written(abs(first.value - second.value), size)
    why = f"{first.text} and {second.text} are {change} apart"
    at = hit.end("before")
    found = text[at : hit.end()].lstrip(": ")
    start = hit.end() - len(found)
    return (Finding(holds, "difference", found, start, None if holds else change, why, size.value / 100),)

"""Find parts that do not add up to the whole they are said to be parts of."""

from __future__ import annotations

import re
from functools import lru_cache

from blade.check.within.numbers import BEFORE, DIGITS, Printed, of_parts
from blade.check.within.passage import Finding
from blade.check.within.ratios import COUNT

_WHOLE = re.compile(
    rf"(?:\bof (?:the |all )?(?P<of>{COUNT}) (?:\w+ ){{0,2}}?(?:tasks|problems|questions|samples|cases"
    rf"|examples),?:?\s"
    rf"|{BEFORE}(?P<colon>{COUNT}) (?:tasks|problems|questions|samples|cases|examples)[:,]\s)",
    re.IGNORECASE,
)
_BUCKETS = (
    re.compile(r"\b(?:always|every|all)\b", re.I),
    re.compile(r"\b(?:sometimes|some)\b", re.I),
    re.compile(r"\b(?:never|none|no)\b", re.I),
)
_MORE = re.compile(r"\bmissing\b|\bwithout\b|\bno scored\b|\bunscored\b|\bnot run\b", re.I)
_PIECE = re.compile(r"\s?(?:,|;|\band\b)\s?(?:and\s)?(?=[^,;]{0,12}?\d)")


@lru_cache(maxsize=20_000)
def buckets(text: str) -> tuple[Finding, ...]:
    """Tasks that always, sometimes and never pass, against the number of tasks."""
    hit = _WHOLE.search(text)
    if not hit:
        return ()
    whole = of_parts("", hit["of"] or hit["colon"], "")
    clause = re.split(r"[.(](?:\s|$)|\s\(", text[hit.end() :])[0]
    parts: list[float] = []
    kinds: set[int] = set()
    for piece in _PIECE.split(clause):
        numbers = re.findall(rf"{BEFORE}{COUNT}(?![\w.%]|\s?%)", piece)
        which = [at for at, word in enumerate(_BUCKETS) if word.search(piece)]
        if len(numbers) != 1 or (len(which) != 1 and not _MORE.search(piece)):
            break
        if not _MORE.search(piece):
            if which[0] in kinds:
                return ()
            kinds.add(which[0])
        parts.append(float(numbers[0].replace(",", "")))
    if kinds != {0, 1, 2}:
        return ()
    return (_judged(whole, sum(parts), text[hit.start() : hit.end()] + clause, hit.start(), "partition"),)


def _judged(whole: Printed, total: float, found: str, start: int, kind: str) -> Finding:
    holds = abs(whole.value - total) < 1e-9
    why = f"the parts add up to {total:,.0f}"
    return Finding(holds, kind, found, start, None if holds else f"{total:,.0f}", why, whole.value)


_LOST = re.compile(
    rf"{BEFORE}(?P<digits>{DIGITS})\spoints?\s(?:(?:are|were"
    rf"|is)\s)?lost[,:]\s(?P<list>[^.;]*(?:\.\d[^.;]*)*)",
    re.I,
)
_TO = re.compile(rf"{BEFORE}(?P<digits>{DIGITS})(?:\spoints?)?\s(?:to\s|undetermined|unexplained|other)")


@lru_cache(maxsize=20_000)
def losses(text: str) -> tuple[Finding, ...]:
    """Points lost to this and that, against all points lost."""
    hit = _LOST.search(text)
    if not hit:
        return ()
    whole = of_parts("", hit["digits"], " points")
    parts = [of_parts("", one["digits"], " points") for one in _TO.finditer(hit["list"])]
    numbers = re.findall(rf"{BEFORE}{DIGITS}", hit["list"])
    if len(parts) < 2 or len(numbers) != len(parts):
        return ()
    total = sum(part.value for part in parts)
    # A printed 0 is no rounded number where its neighbours show decimals.
    fine = max(part.digits for part in parts)
    slack = whole.half + sum(0.5 * 10.0**-fine if not part.value else part.half for part in parts) + 1e-9
    holds = abs(total - whole.value) <= slack
    closed = re.search(r"undetermined|unexplained|other|the rest|remaining", hit["list"])
    if not holds and total < whole.value and not closed:
        return ()
    shown = f"{total:,.{max(fine, whole.digits)}f} points"
    why = f"the parts add up to {shown}"
    return (Finding(holds, "sum", hit[0], hit.start(), None if holds else shown, why, whole.value),)


_LIST = rf"(?P<list>{COUNT} [^.:;()\d]+(?:, (?:and )?{COUNT} [^.:;()\d]+)*,? and {COUNT} [^.,:;()\d]+)"
_TOTALS = (
    re.compile(rf"a total of (?P<whole>{COUNT})(?: [a-z]+){{0,3}}?(?:: | \(){_LIST}(?=[.;)]|$)", re.I),
    re.compile(
        rf"{_LIST},? (?:for |making |giving )?(?:a|in) total (?:of )?(?P<whole>{COUNT})(?![\w.,]\d|%)", re.I
    ),
)


@lru_cache(maxsize=20_000)
def totals(text: str) -> tuple[Finding, ...]:
    """`a total of 12: 5 of this, 4 of that and 3 of those`."""
    if "total" not in text.lower():
        return ()
    for pattern in _TOTALS:
        hit = pattern.search(text)
        if hit:
            parts = [
                float(one.replace(",", "")) for one in re.findall(rf"(?<![\w.]){COUNT}(?= )", hit["list"])
            ]
            return (_judged(of_parts("", hit["whole"], ""), sum(parts), hit[0], hit.start(), "sum"),)
    return ()

"""Find values outside the interval beside them, intervals upside down, and p-values beyond 0 and 1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from blade.check.within.numbers import AFTER, BEFORE, DIGITS, UNIT, Printed, lead, of_parts
from blade.check.within.passage import Finding, of_row
from blade.model import Assertion
from blade.prose.document import Table

_SIGN = r"[-+−]?"
_BRACKETS = (
    rf"[\[(](?P<sign1>{_SIGN})(?P<low>{DIGITS})(?P<unit1>{UNIT})?"
    rf"(?:,|;|\s?[–—]|\sto|\s-)\s?(?P<sign2>{_SIGN})(?P<high>{DIGITS})(?P<unit2>{UNIT})?[\])]"
)
_MARK = r"(?:\s?(?:\(?95\s?%\s?(?:CI|interval|confidence interval)[:\s]\s?|CI[:\s]\s?))?"
_SPAN = re.compile(
    rf"{BEFORE}(?P<sign>{_SIGN})(?P<digits>{DIGITS})(?P<unit>{UNIT})?(?:,|;)?\s?{_MARK}{_BRACKETS}"
)
_UNBRACKETED = re.compile(
    rf"{BEFORE}(?P<sign>{_SIGN})(?P<digits>{DIGITS})(?P<unit>{UNIT})?,?\s[(\[]?(?:9[059]\s?%\s)?"
    rf"(?:CI|confidence interval):?\s"
    rf"(?P<sign1>{_SIGN})(?P<low>{DIGITS})(?P<unit1>{UNIT})?(?:\s?[–—-]\s?|\sto\s|,\s)"
    rf"(?P<sign2>{_SIGN})(?P<high>{DIGITS})(?P<unit2>{UNIT})?(?![\w.]\d)"
)
_ALONE = re.compile(_BRACKETS)
_P = re.compile(
    rf"(?<![\w/-])p(?:[ -]values?)?\s?(?P<sign>[=≤<]|\bof|\bis)\s?(?P<digits>-?{DIGITS}){AFTER}", re.I
)


@lru_cache(maxsize=20_000)
def spans(text: str) -> tuple[Finding, ...]:
    """Every `value [low, high]` of a text."""
    if "[" not in text and "(" not in text:
        return ()
    found = []
    told = _UNBRACKETED.finditer(text) if "CI" in text or "confidence" in text else ()
    for hit in (*_SPAN.finditer(text), *told):
        value = of_parts(hit["sign"], hit["digits"], hit["unit"])
        low, high = _bounds(hit)
        if hit[0].endswith(")") and "CI" not in hit[0] and "interval" not in hit[0]:
            continue  # round brackets hold all kinds of pairs
        finding = _inside(value, low, high, hit[0], hit.start())
        if finding:
            found.append(finding)
    return tuple(found)


def _bounds(hit: re.Match[str]) -> tuple[Printed, Printed]:
    low = of_parts(hit["sign1"], hit["low"], hit["unit1"] or hit["unit2"])
    return low, of_parts(hit["sign2"], hit["high"], hit["unit2"] or hit["unit1"])


def _inside(value: Printed, low: Printed, high: Printed, found: str, start: int) -> Finding | None:
    if not (low.unit or low.digits or high.digits):
        return None  # two bare whole numbers in brackets are as often references
    for scale in {1.0} if low.unit or not value.unit else {1.0, 100.0}:
        slack = value.half + max(low.half, high.half) * scale + 1e-9
        ordered = low.value <= high.value
        if ordered and low.value * scale - slack <= value.value <= high.value * scale + slack:
            return Finding(
                True, "interval", found, start, None, "the value lies in its interval", value.value
            )
    if low.unit != value.unit:
        return None  # a share beside points, or the like: two scales
    if not value.value and not value.unit:
        return None  # the interval of a ratio of 0 allows for what was not seen
    if low.value > high.value:
        why = "the lower end of the interval lies above its upper end"
    else:
        why = "the value lies outside the interval beside it"
    return Finding(False, "interval", found, start, f"within [{low.text}, {high.text}]", why, value.value)


@lru_cache(maxsize=20_000)
def chances(text: str) -> tuple[Finding, ...]:
    """Every p-value of a text."""
    found = []
    for hit in _P.finditer(text):
        value = float(hit["digits"].replace(",", ""))
        if hit["digits"].isdigit() and value > 1 and "value" not in hit[0].lower():
            continue  # a parameter that is called p
        holds = 0 <= value <= 1
        why = "a p-value between 0 and 1" if holds else "a p-value lies between 0 and 1"
        found.append(Finding(holds, "p", hit[0], hit.start(), None if holds else "0 to 1", why, value))
    return tuple(found)


_P_HEADER = re.compile(r"(?:adjusted |raw )?p(?:[ -]values?)?(?:,? \(?(?:adjusted|adj\.?|fdr|bh)\)?)?", re.I)
_CHANCE = re.compile(rf"[<≤=]?\s?(-?{DIGITS})")


def chance_columns(table: Table) -> Iterator[Assertion]:
    """The p-values of a table."""
    columns = [at for at, name in enumerate(table.header) if _P_HEADER.fullmatch(name.strip())]
    for row in table.rows if columns else ():
        for at in columns:
            parts = row.cells[at].split(", ") if at < len(row.cells) else []
            values = [_CHANCE.fullmatch(part.strip()) for part in parts]
            numbers = [float(hit[1].replace(",", "")) for hit in values if hit]
            if numbers and len(numbers) == len(values):
                holds = all(0 <= number <= 1 for number in numbers)
                why = "a p-value lies between 0 and 1"
                yield of_row(
                    table, row, at,
                    Finding(holds, "p", row.cells[at], 0, None if holds else "0 to 1", why, numbers[0]),
                )  # fmt: skip


_OWN = re.compile(r"\b(?:difference|change|gain|effect|odds|ratio|delta)\b", re.I)


def interval_columns(table: Table) -> Iterator[Assertion]:
    """Intervals in a column of their own, against the value left of them that the others hold."""
    for at in range(1, len(table.header)):
        seen = [(row, _ALONE.match(row.cells[at])) for row in table.rows if at < len(row.cells)]
        pairs = [(row, hit) for row, hit in seen if hit and hit[0].startswith("[")]
        if len(pairs) < 3 or _OWN.search(table.header[at]):
            continue
        judged = []
        for row, hit in pairs:
            value = lead(row.cells[at - 1])
            text = f"{row.cells[at - 1]} {hit[0]}"
            judged.append((row, _inside(value, *_bounds(hit), text, 0) if value else None))
        held = sum(finding is not None and finding.holds for _, finding in judged)
        # Only a column whose other intervals hold their values is known to be about them.
        if held >= 2 and held * 3 >= len(judged) * 2:
            for row, finding in judged:
                if finding:
                    yield of_row(table, row, at - 1, finding)

"""Find verdicts that the numbers beside them turn round: significance and p, better and two rates."""

from __future__ import annotations

import re
from functools import lru_cache

from blade.check.within.numbers import DIGITS, of_parts
from blade.check.within.passage import Finding

_P = re.compile(rf"\bp(?:[- ]value)?\s?(?:=|of|is|≈|>)\s?(?P<p>{DIGITS})", re.IGNORECASE)
_SIGNIFICANT = re.compile(r"\b(?:statistically |highly |clearly )?significan(?:t|tly|ce)\b", re.IGNORECASE)
# What takes the word back, or makes it another test's.
_TAKEN_BACK = re.compile(
    r"\b(?:not|no|non|never|nor|neither|nothing|none|without|lacks?|fails?|hardly|barely|far from|short of"
    r"|close to|if|whether|would|until|only|before|though|although|but|however|yet|while|adjusted|corrected"
    r"|level|alpha|threshold|bar)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_LEAST = 0.1  # nobody calls a p above it significant


@lru_cache(maxsize=20_000)
def significance(text: str) -> tuple[Finding, ...]:
    """`a significant difference (p = 0.38)`."""
    word, chances = _SIGNIFICANT.search(text), list(_P.finditer(text))
    if not word or len(chances) != 1 or _TAKEN_BACK.search(text):
        return ()
    p = float(chances[0]["p"].replace(",", ""))
    if 0.05 < p <= _LEAST or p > 1:
        return ()
    holds = p <= 0.05
    why = f"p = {chances[0]['p']} is {'' if holds else 'not '}called significant"
    expected = None if holds else "not significant"
    return (Finding(holds, "word", word[0], word.start(), expected, why, p),)


_UP = r"better|more often|higher|more reliabl[ey]|more likely"
_DOWN = r"worse|less often|lower|less reliabl[ey]|less likely|more rarely"
_BESIDE = re.compile(
    rf"\b(?:(?P<up>{_UP})|(?P<down>{_DOWN}))\b[^.;:()\d%]{{0,40}}?[:,(—–]"
    rf"\s?[^.;:\d%]{{0,40}}?(?P<a>{DIGITS})\s?%[^.;%]{{0,60}}?"
    rf"\b(?:against|versus|vs\.?|compared (?:with|to)|as opposed to)\s[^.;%\d]{{0,40}}?(?P<b>{DIGITS})\s?%",
    re.IGNORECASE,
)
_PASSES = re.compile(r"\b(?:pass|solv|succe|correct|right|accura)\w*", re.IGNORECASE)
_FAILS = re.compile(
    r"\b(?:fail|los[es]|wrong|error|miss|incorrect)\w*|\b(?:not|no|never|nor|if|would)\b|n['’]t\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=20_000)
def rates_beside(text: str) -> tuple[Finding, ...]:
    """`Long answers do better: 31% pass against 46% of the others`."""
    found = []
    for hit in _BESIDE.finditer(text):
        if not _PASSES.search(text) or _FAILS.search(text):
            continue
        first, second = (of_parts("", hit[name], "%") for name in "ab")
        if abs(first.value - second.value) <= first.half + second.half:
            continue
        is_more = first.value > second.value
        word = (hit["up"] or hit["down"]).lower()
        holds = is_more == bool(hit["up"])
        why = f"{first.text} is {'more' if is_more else 'less'} than {second.text}"
        expected = None if holds else "the other way round"
        found.append(Finding(holds, "ordering", hit[0], hit.start(), expected, why, word))
    return tuple(found)

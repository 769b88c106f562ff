"""Find percentages that do not follow from the counts beside them, and parts larger than the whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from blade.check.within.numbers import BEFORE, Printed, meets, of_parts, written
from blade.check.within.passage import Finding

COUNT = r"(?:\d{1,3}(?:,\d{3})+|\d+)"
# What is counted in evaluations. Between counts and a percentage any other word may say what else it is of.
_NOUNS = (
    r"(?:tasks?|rows?|rollouts?|repeats?|trials?|runs?|cases?|samples?|problems?|questions?|failures?|passes"
    r"|attempts?|calls?|examples?|items?|instances?|traces?|episodes?|prompts?|tests?|errors?|responses?"
    r"|answers?|conversations?|trajector(?:y|ies)|successes|records?|files?|users?|turns?|steps?|tries)"
)
_WORDS = (
    r"(?:the|these|those|all|them|its|were|was|are|is|have|had|unique|distinct|scored|expected|completed"
    r"|failing"
    r"|passing|failed|passed|pass|fail|fails|solved|correct|incorrect|wrong|right|valid|total|succeed"
    r"|succeeded"
    r"|successful|unsuccessful|errored|missing|remaining|lost)"
)
_BETWEEN = rf"(?:\s(?:{_NOUNS}|{_WORDS})){{0,4}}"
_PERCENT = r"(?P<about>[~≈<>]|about |roughly |approx\.? |ca\. )?(?P<digits>\d+(?:\.\d+)?)\s?(?:%|percent\b)"
_OF = r"(?:\s?/\s?|\s(?:out\s)?of\s(?:the\s|all\s|these\s|its\s)?)"
_COUNTS_FIRST = re.compile(
    rf"{BEFORE}(?P<part>{COUNT}){_OF}(?P<whole>{COUNT}){_BETWEEN}(?:,|:)?\s?[(\[]{_PERCENT}\s?(?=[)\];,])"
)
_PERCENT_FIRST = re.compile(
    rf"{BEFORE}{_PERCENT}(?:\s(?:{_WORDS}|of)){{0,2}}{_BETWEEN}\s?\((?P<part>{COUNT}){_OF}(?P<whole>{COUNT})"
    rf"{_BETWEEN}\s?(?=[);,])"
)
_PERCENT_OF = re.compile(
    rf"(?P<digits>\d+(?:\.\d+)?)\s?% of (?P<whole>{COUNT}) {_NOUNS} \((?P<part>{COUNT})\)"
)
_PLAIN = re.compile(rf"{BEFORE}(?P<part>{COUNT})\s(?:out\s)?of\s(?:the\s)?(?P<whole>{COUNT})\s{_NOUNS}\b")


@lru_cache(maxsize=50_000)
def ratios(text: str) -> tuple[Finding, ...]:
    """Every `x of y (z%)` of a text, in any of its spellings."""
    found = list(_percentages(text))
    for hit in _PLAIN.finditer(text) if " of " in text else ():
        part, whole = _counts(hit)
        if part.value > whole.value:
            why = "a part cannot be larger than its whole"
            found.append(
                Finding(False, "count", hit[0], hit.start(), f"at most {hit['whole']}", why, part.value)
            )
    return tuple(found)


def _percentages(text: str) -> Iterator[Finding]:
    if "%" not in text and "percent" not in text:
        return
    for pattern in (_COUNTS_FIRST, _PERCENT_FIRST, _PERCENT_OF):
        for hit in pattern.finditer(text):
            part, whole = _counts(hit)
            about = hit.groupdict().get("about") or ""
            if not whole.value or about.strip() not in ("", "<", ">"):
                continue
            stated = of_parts("", hit["digits"], "%", about)
            closing = text[hit.end() : hit.end() + 1]
            yield _judged(part, whole, stated, hit, hit[0] + (closing if closing in tuple(")]") else ""))


def _counts(hit: re.Match[str]) -> tuple[Printed, Printed]:
    return of_parts("", hit["part"], ""), of_parts("", hit["whole"], "")


def _judged(part: Printed, whole: Printed, stated: Printed, hit: re.Match[str], found: str) -> Finding:
    exact = 100 * part.value / whole.value
    counts = f"{hit['part']} of {hit['whole']}"
    if meets(stated, exact, exact):
        return Finding(True, "percentage", found, hit.start(), None, f"{counts} is so", stated.value / 100)
    why = f"{counts} is {written(exact, stated)}"
    if part.value > whole.value:
        why += "; a part cannot be larger than its whole"
    return Finding(False, "percentage", found, hit.start(), written(exact, stated), why, stated.value / 100)

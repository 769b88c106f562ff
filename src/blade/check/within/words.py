"""Find words for amounts and comparisons that the numbers beside them contradict."""

from __future__ import annotations

import re
from functools import lru_cache

from blade.check.within.numbers import AFTER, BEFORE, DIGITS, UNIT, of_parts
from blade.check.within.passage import Finding
from blade.check.within.ratios import COUNT

_NOUN = (
    r"(?:tasks|rows|rollouts|repeats|trials|runs|cases|samples|problems|questions|failures|passes"
    r"|attempts|calls"
    r"|examples|items|instances|traces|episodes|prompts|tests|errors|responses|answers|conversations"
    r"|trajectories|steps)"
)
_ONE = (
    _NOUN.replace("passes", "pass")
    .replace("trajectories", "trajectory")
    .replace("s|", "|")
    .replace("s)", ")")
)
_VERB = (
    r"(?:\s(?:pass|passes|passed|fail|fails|failed|succeeds|are|were|is|was|solved|succeed|succeeded"
    r"|correct|wrong|missing"
    r"|failing|passing))"
)
_COUNTS = rf"(?P<part>{COUNT})(?:/| of | out of )(?:the )?(?P<whole>{COUNT})"
_AMOUNT = (
    rf"(?:\((?:only |just )?{_COUNTS}[^()\d]{{0,40}}(?:[,;]\s?[\d.]+\s?%)?\)"
    r"|\((?P<percent>\d+(?:\.\d+)?)\s?%\))"
)
# Behind a comma or a colon only if nothing more follows: in "most tasks, 1 of 4 repeats" it is of others.
_BARE = _COUNTS.replace("part", "part3").replace("whole", "whole3")
_TAIL = rf"(?:, {_BARE},|: {_BARE.replace('3>', '4>')}(?:\s(?:{_NOUN}|them))?[.;]?$)"
_QUANTITY = re.compile(
    rf"\b(?P<word>(?:the |a )?(?:vast |clear |large |slim )?majority of|more than half(?: of)?"
    rf"|over half(?: of)?|most(?: of)?"
    rf"|less than half(?: of)?|fewer than half(?: of)?|under half(?: of)?"
    rf"|(?:only )?a (?:small )?minority of|only a few(?: of)?"
    rf"|very few(?: of)?|few(?: of)?|half(?: of)?|all(?: of)?|none of|two thirds of|two-thirds of"
    rf"|a third of|a quarter of)"
    rf"\s(?:the |these |those |our |its )?(?:[a-z]+ing |scored |expected |completed |hard "
    rf"|easy )?{_NOUN}{_VERB}{{0,2}}(?::?\s{_AMOUNT}|{_TAIL})"
    rf"|\b(?P<single>every|no)\s(?:single )?{_ONE}s?{_VERB}{{0,2}}:?\s"
    rf"\((?P<part2>{COUNT})(?:/| of | out of )(?:the )?(?P<whole2>{COUNT})[^()\d]{{0,40}}\)",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"(?:\b(?:not|nearly|almost|about|roughly|around|at|the|close to|some|virtually|practically|than|if"
    r"|would|never|just"
    r"|approximately|hardly|barely|but|as|second|exactly)|n['’]t)\s$",
    re.I,
)
# "The rate of every task (200 of 800 shown)": what it is of, not how many do something.
_SCOPE = re.compile(r"\b(?:of|for|over|across|from|with|per)\s$", re.I)


@lru_cache(maxsize=20_000)
def quantities(text: str) -> tuple[Finding, ...]:
    """most, half, all, none and the like, directly before counts or a percentage."""
    found = []
    for hit in _QUANTITY.finditer(text):
        word = (hit["word"] or hit["single"]).lower()
        before = text[max(0, hit.start() - 24) : hit.start()]
        if _HEDGE.search(before) or (_SCOPE.search(before) and re.match(r"all|every|no\b|half", word)):
            continue
        part, whole = (
            hit[name] or hit[f"{name}2"] or hit[f"{name}3"] or hit[f"{name}4"] for name in ("part", "whole")
        )
        if part and float(whole.replace(",", "")):
            value = float(part.replace(",", "")) / float(whole.replace(",", ""))
            told, exact = f"{part} of {whole}", True
        elif hit["percent"]:
            value, told, exact = float(hit["percent"]) / 100, f"{hit['percent']}%", False
        else:
            continue
        verdict = _verdict(word, value, exact)
        if verdict is not None:
            why = f"{told} is not “{word}”" if not verdict else f"{told} bears “{word}” out"
            found.append(Finding(verdict, "word", hit[0], hit.start(), None if verdict else told, why, value))
    return tuple(found)


def _verdict(word: str, value: float, exact: bool) -> bool | None:
    """Whether a share can be called so; None where it is near enough to be a matter of taste."""
    if value > 1:
        return None
    edge = 1e-9 if exact else 0.0051
    rules = (
        (r"majority|more than half|over half|\bmost\b", value > 0.5 - edge, value > 0.5),
        (r"less than half|fewer than half|under half|minority", value < 0.5 + edge, value < 0.5),
        (r"\bfew\b", value < 0.5 + edge, value < 0.34),
        (r"\bhalf\b", 0.4 <= value <= 0.6, 0.45 <= value <= 0.55),
        (r"thirds", 0.6 <= value <= 0.74, 0.62 <= value <= 0.71),
        (r"third", 0.26 <= value <= 0.41, 0.29 <= value <= 0.38),
        (r"quarter", 0.18 <= value <= 0.32, 0.21 <= value <= 0.29),
        (r"\b(?:all|every|each)\b", value > 1 - edge, value > 1 - edge),
        (r"\b(?:none|no)\b", value < edge, value < edge),
    )
    for pattern, possible, clear in rules:
        if re.search(pattern, word):
            return False if not possible else True if clear else None
    return None


def _side(name: str) -> str:
    number = rf"(?P<{name}_sign>[-+−]?)(?P<{name}>{DIGITS})(?P<{name}_unit>{UNIT})?"
    return rf"\({BEFORE}{number}{AFTER}[^()]{{0,60}}\)"


_MORE = r"higher|greater|larger|more|above|better"
_LESS = r"lower|less|fewer|smaller|below|worse"
_VERBS_MORE = r"exceeds|outperforms|beats|leads|surpasses|outscores|tops"
_VERBS_LESS = r"trails|lags behind|falls behind|underperforms"
_COMPARED = re.compile(
    rf"{_side('a')}(?P<between>[^().;:,\d]{{1,60}}?)\b(?:(?P<more>{_MORE})\b[^().;,\d]{{0,30}}? than"
    rf"|(?P<less>{_LESS})\b[^().;,\d]{{0,30}}? than"
    rf"|(?P<leads>{_VERBS_MORE})|(?P<trails>{_VERBS_LESS}))\b[^().;:,\d]{{1,60}}?{_side('b')}",
    re.IGNORECASE,
)
_THAN = re.compile(
    rf"\b(?:(?P<more>higher|greater|larger|more)|(?P<less>lower|less|fewer"
    rf"|smaller))\b(?P<between>[^().;:,\d]{{0,60}}?)"
    rf"{_side('a')}[^().;:,\d]{{0,20}}?\bthan\b[^().;:,\d]{{1,60}}?{_side('b')}",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|never|no|nor|neither|hardly|neither|would|should|if|expected)\b|n['’]t\b", re.I)
_GOOD = re.compile(r"pass|score|accura|solve|success|correct|reward|f1|recall|precision|win", re.I)


@lru_cache(maxsize=20_000)
def comparisons(text: str) -> tuple[Finding, ...]:
    """`A (41%) is higher than B (43%)`."""
    if "(" not in text:
        return ()
    found = []
    for hit in (*_COMPARED.finditer(text), *_THAN.finditer(text)):
        parts = hit.groupdict()
        first, second = (of_parts(hit[f"{one}_sign"], hit[one], hit[f"{one}_unit"]) for one in "ab")
        clause = re.split(r"[.;]\s", text[: hit.start()])[-1]
        if first.unit != second.unit or _NOT.search(clause) or _NOT.search(hit["between"]):
            continue
        word = next(parts[name] for name in ("more", "less", "leads", "trails") if parts.get(name)).lower()
        by_merit = parts.get("leads") or parts.get("trails") or word in ("better", "worse")
        if by_merit and not (first.unit == "%" and _GOOD.search(text)):
            continue
        up = bool(parts["more"] or parts.get("leads"))
        if abs(first.value - second.value) <= first.half + second.half and not (
            first.is_whole and second.is_whole
        ):
            continue
        if first.value == second.value:
            continue
        holds = (first.value > second.value) == up
        why = f"{first.text} is {'more' if first.value > second.value else 'less'} than {second.text}"
        expected = None if holds else "the other way round"
        found.append(Finding(holds, "ordering", hit[0], hit.start(), expected, why, word))
    return tuple(found)

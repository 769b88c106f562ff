"""Turn answers into a form in which equal ones are equal: boxed, numeric, or plain text."""

from __future__ import annotations

import re
from functools import lru_cache

_BOXED = re.compile(r"\\boxed\s*\{")
# A box and its brace, a box without one, a sign that LaTeX escapes, or a plain brace.
_BRACES = re.compile(r"\\f?boxed\s*\{|\\f?boxed\s+(?P<bare>[^\s{}$\\]+)|\\.|[{}]", re.DOTALL)
_TOLD = re.compile(r"(?:final answer|answer)\s*(?:is\s*:?|:|=)\s*(.+)", re.IGNORECASE)
_DECORATION = re.compile(r"\\(?:text|mathrm|mathbf|left|right|,|;|!)|[*_`$]|\\[()\[\]]")
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?")
_UNIT = re.compile(
    r"^[\s]*(?:%|percent|dollars?|usd|units?|cm|mm|km|m|kg|g|hours?|minutes?|seconds?|days?)?\s*$"
)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+")
MAX_ANSWER = 400


def boxed(text: str) -> str | None:
    """The content of the last `\\boxed{}` of a text."""
    starts = [hit.end() for hit in _BOXED.finditer(text)]
    if not starts:
        return None
    depth, start = 1, starts[-1]
    for place in range(start, min(len(text), start + MAX_ANSWER)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return text[start:place]
    return None


def last_box(text: str) -> tuple[int, str] | None:
    """Where the last `\\boxed{…}` that closes ends, and all it holds, braces matched.

    Only offsets are kept on the way: boxes within boxes would otherwise cost memory by the square.
    """
    if "boxed" not in text:
        return None
    found: tuple[int, int, int] | None = None  # where its content starts and ends, and where it ends itself
    open_braces: list[int] = []  # where the content of a box starts; -1 for any other brace
    for sign in _BRACES.finditer(text):
        told = sign[0]
        if told == "}":
            start = open_braces.pop() if open_braces else -1
            if start >= 0:
                found = (start, sign.start(), sign.end())
        elif told == "{":
            open_braces.append(-1)
        elif sign["bare"]:
            bare = sign["bare"].rstrip(".,;")
            found = (sign.start("bare"), sign.start("bare") + len(bare), sign.end())
        elif told.endswith("{") and "boxed" in told:
            open_braces.append(sign.end())
    return (found[2], text[found[0] : found[1]].strip()) if found else None


def answer_in(text: str) -> str | None:
    """The answer a final text gives: boxed, announced, or the whole text if it is short."""
    found = boxed(text)
    if found is not None:
        return found
    told = _TOLD.findall(text)
    if told:
        return str(told[-1]).strip()[:MAX_ANSWER]
    stripped = text.strip()
    return stripped if 0 < len(stripped) <= 80 else None


@lru_cache(maxsize=20_000)
def normalised(answer: str) -> str:
    """An answer without decoration, case, articles, thousands separators and units."""
    text = _DECORATION.sub("", answer[:MAX_ANSWER]).strip().strip(".;:!,\"' ").casefold()
    number = as_number(text)
    if number is not None:
        return f"{number:.10g}"
    return _ARTICLE.sub("", re.sub(r"\s+", " ", text)).strip("{} ")


def as_number(text: str) -> float | None:
    """The number a text is, whatever its separators and unit; None if it says more than a number."""
    hit = _NUMBER.search(text)
    if hit is None or text[: hit.start()].strip(" ($£€") or not _UNIT.match(text[hit.end() :].strip(") .")):
        return None
    try:
        return float(hit.group().replace(",", ""))
    except ValueError:
        return None


def same(one: str, other: str) -> bool:
    """Whether two answers are the same once decoration is gone."""
    first, second = normalised(one), normalised(other)
    return bool(first) and first == second


def mentions(text: str, answer: str) -> int:
    """Where a text holds an answer as words of its own; -1 if it does not."""
    wanted = answer.strip()
    if not wanted or len(wanted) > MAX_ANSWER:
        return -1
    hit = re.search(rf"(?<![\w.]){re.escape(wanted)}(?!\w|\.\d)", text, re.IGNORECASE)
    return hit.start() if hit else -1


_ABSTAINS = re.compile(
    r"\b(?:text|texts|documents?|articles?|pages?|sections?|results?|sources?|information|data|context|passages?)\b"
    r"[^.\n]{0,40}\b(?:does not|doesn['’]t|do not|don['’]t|did not|didn['’]t)\s+"
    r"(?:\w+\s+)?(?:mention|specify|contain|provide|include|state|say|list|indicate|reveal)\b"
    r"|\bthere (?:is|was|are) no (?:\w+ ){0,2}(?:information|mention|record|evidence|data|indication)\b"
    r"|\bI (?:do not|don['’]t) have (?:\w+ ){0,2}(?:information|access|data|details)\b"
    r"|\b(?:no (?:\w+ ){0,2}information (?:\w+ ){0,3}(?:available|found|provided))\b"
    r"|\b(?:cannot|can['’]t|could not|couldn['’]t|unable to|not able to)\s+(?:\w+\s+)?"
    r"(?:determine|answer|find|verify|confirm|identify|provide)\b",
    re.IGNORECASE,
)  # fmt: skip
# One of these stands in every such passage; looking for them first is many times faster.
_ABSTAIN_HINTS = ("not ", "n't", "n’t", "no ", "unable", "cannot")


def abstains(text: str) -> int:
    """Where a text says that it has no answer, or that its sources hold none; -1 if it does not."""
    lower = text[:4000].lower()
    if not any(hint in lower for hint in _ABSTAIN_HINTS):
        return -1
    hit = _ABSTAINS.search(text[:4000])
    return hit.start() if hit else -1

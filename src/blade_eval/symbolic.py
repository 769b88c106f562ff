r"""Compare a mathematical answer with the expected one by math-verify; runs inside a limited worker.

The library reads all it can find in a text and is content when anything fits. So it is given only what the
text declares to be its answer: the last box (with those joined to it, `\boxed{3} or \boxed{4}`), else what
follows `answer is`, else its last line; without a box, `5 or 7` is no answer.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from blade_eval import replies
from blade_eval.libraries import loaded

JOINED = re.compile(
    r"[\s$,;.*_]*(?:\\?(?:quad|text\{)?\s*\b(?:or|and)\b\s*\}?)?[\s$,;.*_]*(?:\\quad)?(?:[a-zA-Z]\w?\s*=\s*)?"
)
BOX = re.compile(r"\\f?boxed\b")
DECLARED = re.compile(r"\banswer\b[*_\s]*(?:\bis\b|:|=)[*_\s:]*(?=([^\n]{1,2000}))", re.IGNORECASE)

HEDGED = re.compile(r"\bor\b", re.IGNORECASE)

# Letters side by side are a product to the library, so that it takes a word and its anagram for equal.
WORDS = re.compile(r"(?=.*[^\W\d_]{4})[^\W\d_]+(?:[\s'’.-]+[^\W\d_]+)*\.?")
FUNCTIONS = frozenset("sinh cosh tanh coth sqrt arcsin arccos arctan log10 infinity".split())

LONGEST = 20_000  # characters of a declared answer; a longer one is no answer to a task of this kind


def answer_part(text: str) -> str:
    """What of a text is its answer, in LaTeX that the library reads."""
    ends = replies.boxes_at(text)
    if ends:
        return boxed([inner for _, inner in last_group(text, ends)])
    declared = [match[1] for match in DECLARED.finditer(text)]
    lines = [line for line in text[-LONGEST:].splitlines() if line.strip()]
    part = declared[-1] if declared else lines[-1] if lines else ""
    return "" if HEDGED.search(part) else part


def last_group(text: str, ends: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The last box and those before it that a mere `or`, `and` or comma joins to it."""
    group = [ends[-1]]
    for end, inner in reversed(ends[:-1]):
        start = BOX.search(text, end)
        if start is None or not JOINED.fullmatch(text[end : min(start.start(), end + 40)]):
            break
        between = text[end : start.start()].strip(" $\n\t*_")
        if not between:
            break  # side by side without a word: the second corrects the first
        group.insert(0, (end, inner))
    return group


def boxed(parts: list[str]) -> str:
    """Several answers as one list in a box."""
    return "\\boxed{" + ", ".join(part for part in parts if part) + "}"


def compared(expected: str, text: str) -> dict[str, Any]:
    """Whether they are equal, what was extracted, and whether the expected answer could be read at all."""
    part = answer_part(text)
    extracted = extracted_of(part)
    wanted = replies.unwrapped(expected.strip().strip("$").strip())
    inner = replies.boxes(wanted)
    wanted = replies.unwrapped(inner[-1]) if inner else wanted
    if WORDS.fullmatch(wanted) and not FUNCTIONS & set(wanted.casefold().split()):
        got = replies.unwrapped((replies.boxes(part) or [part])[-1])
        return {"equal": words(got) == words(wanted), "extracted": got or None, "readable": True}
    gold = parsed(boxed([expected.strip().strip("$").strip()]) if not inner else expected)
    if not gold:
        return {"equal": False, "extracted": extracted, "readable": False}
    found = parsed(part)
    equal = bool(found) and bool(_library().verify(gold, found, timeout_seconds=None))
    return {"equal": equal, "extracted": extracted, "readable": True}


def readable(expected: str) -> bool:
    """Whether the expected answer can be computed with, whatever it is held against."""
    return bool(compared(expected, boxed(["0"]))["readable"])


def extracted_of(part: str) -> str | None:
    """The answer as text: what the box holds, else the last expression that the library finds."""
    boxes = replies.boxes(part)
    if boxes:
        return boxes[-1] or None
    found = parsed(part)
    texts = [entry for entry in found if isinstance(entry, str)]
    return (texts[-1] or None) if texts else None


def parsed(text: str) -> list[Any]:
    """What the library reads; its own clocks are off, since the worker has a limit that cannot be missed."""
    library = _library()
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    if len(text) > LONGEST:
        return []
    configs = [library.LatexExtractionConfig(), library.ExprExtractionConfig()]
    return list(library.parse(text, configs, parsing_timeout=None))


def _library() -> Any:
    return loaded("math_verify", "math-verify", "math_with_judge")


def words(text: str) -> str:
    """A text of words for comparison."""
    return " ".join(text.casefold().split()).strip(" .")

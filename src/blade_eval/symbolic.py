r"""Compare a mathematical answer with the expected one by math-verify; runs inside a limited worker.

The library reads all it can find in a text and is content when anything fits. So it is given only what the
text declares to be its answer: the last box (with those joined to it, `\boxed{3} or \boxed{4}`), else what
follows `answer is`, else its last line; without a box, `5 or 7` is no answer.
"""

from __future__ import annotations

import logging
from collections import deque
from importlib import import_module
from typing import Any

from blade_eval import replies
from blade_eval.expressions import Expressions

PATTERNS = Expressions("symbolic")

FUNCTIONS = frozenset("sinh cosh tanh coth sqrt arcsin arccos arctan log10 infinity".split())

MOST = 20  # boxes in one answer

LONGEST = 20_000  # characters of a declared answer; a longer one is no answer to a task of this kind


def answer_part(text: str) -> str:
    """What of a text is its answer, in LaTeX that the library reads."""
    spans = box_spans(text)
    if spans:
        return boxed(*(text[start:end].strip().rstrip(".,;") for start, end, _ in last_group(text, spans)))
    declared = deque(PATTERNS.declared.finditer(text), maxlen=1)
    lines = [line for line in text[-LONGEST:].splitlines() if line.strip()]
    part = declared[0][1] if declared else lines[-1] if lines else ""
    return "" if PATTERNS.hedged.search(part) else part


def box_spans(text: str) -> list[tuple[int, int, int]]:
    r"""Where the content of each `\boxed{…}` begins and ends, and where the box itself ends, in that order.

    Offsets alone: boxes within boxes would otherwise cost memory by the square.
    """
    spans: list[tuple[int, int, int]] = []
    open_braces: list[int] = []  # where the content of a box starts; -1 for any other brace
    for sign in PATTERNS.braces.finditer(text) if "boxed" in text else ():
        if sign[0] == "}":
            start = open_braces.pop() if open_braces else -1
            if start >= 0:
                spans.append((start, sign.start(), sign.end()))
        elif sign[0] == "{" or (sign[0].endswith("{") and "boxed" in sign[0]):
            open_braces.append(-1 if sign[0] == "{" else sign.end())
        elif sign["bare"]:
            spans.append((*sign.span("bare"), sign.end()))
    return spans


def last_group(text: str, spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The last box and those before it that a mere `or`, `and` or comma joins to it."""
    group = [spans[-1]]
    for span in reversed(spans[:-1]):
        start = PATTERNS.box.search(text, span[2])
        if start is None or not PATTERNS.joined.fullmatch(text[span[2] : min(start.start(), span[2] + 40)]):
            break
        between = text[span[2] : start.start()].strip(" $\n\t*_")
        if not between or len(group) == MOST:
            break  # side by side without a word: the second corrects the first
        group.append(span)
    return group[::-1]


def last_box(text: str) -> str | None:
    spans = box_spans(text)
    return text[spans[-1][0] : spans[-1][1]].strip() if spans else None


def claims(part: str, gold: str) -> list[str] | None:
    r"""What an answer says the value is, each of which must be right; None when it is no value at all.

    `\neq 42` and `x \ge 42` are not 42, and who says `41 = 42` or `40, 41, 42` has not said 42. A relation or a
    list that the expected answer has too is the library's to compare.
    """
    is_boxed = last_box(part) is not None
    inner = (last_box(part) or "") if is_boxed else part
    is_denied = PATTERNS.denied.match(inner.strip(" $*_{("))
    inner = PATTERNS.aside.sub("", inner).strip(" $*_").rstrip(".,; $*_")
    if PATTERNS.relation.search(gold) or PATTERNS.listed.search(PATTERNS.grouped.sub("", gold)):
        return []
    if is_denied or (is_boxed and PATTERNS.relation.search(PATTERNS.nested.sub("", inner))):
        return None
    sides: list[str] = []
    for item in PATTERNS.items.split(PATTERNS.nested.sub("x", PATTERNS.grouped.sub("", inner))):
        chain = [side.strip(" $").rstrip(".") for side in item.split("=")]
        if "=" not in gold and len(chain) > 1:
            sides += [side for side in chain if PATTERNS.value.fullmatch(side)]
        elif PATTERNS.value.fullmatch(chain[0]):
            sides.append(chain[0])
        else:
            break  # prose or an expression, in which a comma is no list
    return sides


def boxed(*parts: str) -> str:
    """Answers as one list in a box."""
    return "\\boxed{" + ", ".join(part for part in parts if part) + "}"


def compared(expected: str, text: str) -> dict[str, Any]:
    """Whether they are equal, what was extracted, and whether the expected answer could be read at all."""
    part = answer_part(text)
    extracted = extracted_of(part)
    wanted = replies.unwrapped(expected.strip().strip("$").strip())
    inner = last_box(wanted)
    wanted = wanted if inner is None else replies.unwrapped(inner)
    if PATTERNS.words.fullmatch(wanted) and not FUNCTIONS & set(wanted.casefold().split()):
        got = replies.unwrapped(last_box(part) or part)
        return {"equal": words(got) == words(wanted), "extracted": got or None, "readable": True}
    gold = parsed(boxed(expected.strip().strip("$").strip()) if inner is None else expected)
    if not gold:
        return {"equal": False, "extracted": extracted, "readable": False}
    sides = claims(part, wanted)
    equal = sides is not None and all(equals(gold, text) for text in (part, *map(boxed, sides)))
    return {"equal": equal, "extracted": extracted, "readable": True}


def equals(gold: list[Any], text: str) -> bool:
    """Whether the library reads in a text what is expected."""
    answer = parsed(text)
    return bool(answer) and bool(import_module("math_verify").verify(gold, answer, timeout_seconds=None))


def readable(expected: str) -> bool:
    """Whether the expected answer can be computed with, whatever it is compared with."""
    return bool(compared(expected, boxed("0"))["readable"])


def extracted_of(part: str) -> str | None:
    """The answer as text: what the box holds, else the last expression that the library finds."""
    inner = last_box(part)
    if inner is not None:
        return inner or None
    texts = [entry for entry in parsed(part) if isinstance(entry, str)]
    return (texts[-1] or None) if texts else None


def parsed(text: str) -> list[Any]:
    """What the library reads; its own clocks are off, since the worker has a limit that cannot be missed."""
    library = import_module("math_verify")
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    if len(text) > LONGEST:
        return []
    configs = [library.LatexExtractionConfig(), library.ExprExtractionConfig()]
    return list(library.parse(text, configs, parsing_timeout=None))


def words(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .")

"""Hold an answer against a gold answer: equal, spelled otherwise, near, or another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from blade import answers
from blade.measure.soundness.sounding import (
    BOXED,
    CONTAINS,
    EXACT,
    FIELD,
    NEAR,
    NO_ANSWER,
    NUMERIC,
    OTHER,
    SCALED,
    SHORT,
    SPELLING,
    TOLD,
)
from blade.model import Episode

# Fields in which a verifier keeps the answer it took from a rollout, the commonest first.
FIELDS = (
    "extracted_answer extracted_model_output predicted_answer extracted predicted_output parsed_output "
    "model_answer final_answer predicted_label predicted_value parsed_option extracted_model_code "
    "extracted_sql prediction pred_text"
).split()
_HOLDERS = ("", "verifier", "verifier_metadata", "metadata", "info")
_NOTHING = frozenset(("", "none", "null", "n/a", "nan", "unknown", "no answer", "[]", "{}"))
LONGEST = 2000

_NUMBER = re.compile(
    r"\s*[$£€]?\s*(?P<sign>[-+−]?)\s*[$£€]?\s*(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?P<power>[eE][-+]?\d{1,3})?\s*(?P<unit>%|[a-zA-Z°]{0,12})\s*\.?\s*"
)
_PLAIN = re.compile(r"[\w%$.,+−-]{1,40}")
_TEXT = re.compile(r"[\w\s.,;:!?%&/()'’+-]{1,200}")  # a text in words; a literal of a program is none
_FACTORS = (10.0, 100.0, 1000.0)
_NEAR = 0.01


def answer_of(episode: Episode) -> tuple[str, str, str | None]:
    """How the answer of a rollout was found, the answer as written, and its field if it has one."""
    for holder in _HOLDERS:
        inner = episode.trace.row.get(holder) if holder else episode.trace.row
        if not isinstance(inner, Mapping):
            continue
        for name in FIELDS:
            text = _text(inner[name]) if name in inner else ""
            if text:
                return FIELD, text, f"{holder}.{name}" if holder else name
    final = episode.final[-20_000:]
    box = answers.boxed(final)
    if box is not None and box.strip():
        return BOXED, box.strip(), None
    told = answers.answer_in(final[-4000:])
    if told is None or told.strip().casefold() in _NOTHING:
        return NO_ANSWER, "", None
    return SHORT if told.strip() == episode.final.strip() else TOLD, told.strip(), None


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = str(value).strip()
    return text if text.casefold() not in _NOTHING and len(text) <= LONGEST else ""


def relation(answer: str, gold: str) -> str:
    """What an answer has in common with the gold."""
    answer, gold = answer.strip(), gold.strip()
    if not answer or not gold:
        return ""
    if answer == gold:
        return EXACT
    ours, theirs = number(answer), number(gold)
    if ours is not None and theirs is not None:
        return _numbers(ours, theirs)
    if _same_words(answer, gold):
        return SPELLING
    return CONTAINS if answers.mentions(answer[:LONGEST], gold) >= 0 else OTHER


def number(text: str) -> tuple[float, str] | None:
    """The number a text is, and its unit; None if it says more than that."""
    hit = _NUMBER.fullmatch(_unwrapped(text)) if len(text) <= 60 else None
    if hit is None:
        return None
    value = float(hit["digits"].replace(",", "") + (hit["power"] or ""))
    unit = hit["unit"].casefold()
    if "$" in text.replace("$", "", 1) or (hit["power"] and value in (0.0, float("inf"))):
        return None
    return (-value if hit["sign"] in ("-", "−") else value), unit


def _unwrapped(text: str) -> str:
    r"""Without what LaTeX puts around a number: `$`, `\(`, `\text{...}`."""
    text = re.sub(r"\\(?:text|mathrm|mathbf)\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\[()\[\],;!]|\\ |\*\*", "", text).replace("\\%", "%").replace("\\$", "$").strip()
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == "$" else text


def _numbers(ours: tuple[float, str], theirs: tuple[float, str]) -> str:
    (one, unit), (other, wanted) = ours, theirs
    if unit and wanted and unit != wanted:
        return OTHER
    if abs(one - other) <= 1e-9 * max(1.0, abs(other)):
        return NUMERIC
    if not other or not one:
        return OTHER
    for factor in _FACTORS:
        if any(abs(one * by - other) <= 1e-9 * abs(other) for by in (factor, 1 / factor)):
            return SCALED
    # Two whole numbers that differ are different answers, however close.
    whole = one == int(one) and other == int(other) if max(abs(one), abs(other)) < 1e15 else True
    return NEAR if not whole and abs(one - other) <= _NEAR * abs(other) else OTHER


def _same_words(answer: str, gold: str) -> bool:
    """Whether two texts differ in nothing but case, spaces, an article and the full stop at the end.

    Only of texts in words: in a literal or an expression a quote, a bracket or a capital may matter.
    """
    answer, gold = _unwrapped(answer), _unwrapped(gold)
    if not (_TEXT.fullmatch(answer) and _TEXT.fullmatch(gold)) or any(mark in gold for mark in "'’"):
        return False
    return bool(_words(gold)) and _words(answer) == _words(gold)


def _words(text: str) -> str:
    text = " ".join(text.casefold().split()).strip(".;: ")
    return re.sub(r"^(?:the|a|an)\s+(?=\S)", "", text)


def is_plain(gold: str) -> bool:
    """Whether an answer either equals this gold or is another answer: a number, a letter, a word."""
    return number(gold) is not None or _PLAIN.fullmatch(gold.strip()) is not None

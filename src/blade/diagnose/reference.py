"""Find what rows answer and what they expect: the pair of places that agree in nearly all passes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from blade.answers import is_same, value_of
from blade.diagnose.evidence import FINAL, RowEvidence
from blade.diagnose.groups import short
from blade.diagnose.population import Mask, Population

AGREES = 0.9  # share of passes whose answer equals the gold, from which a pair of places is trusted
COMMON = 0.4  # agreement by chance from which a pair of places tells nothing where failures agree too
SAMPLE = 300  # rows of each outcome that pairs are tried on
MAX_GOLDS, MAX_ANSWERS = 40, 30
ANSWER_ORDER = (
    "box", "tag", "announced", "announced number", "fence", "tag after =", "fence after =", "line after =", "line", "whole", "call",
)  # fmt: skip
_ANSWER_WORDS = frozenset(
    "extracted predicted prediction pred model given parsed found submitted chosen choice guess answer output response".split()
)


@dataclass
class Reference:
    """What each row answers and expects."""

    answer: list[str | None]
    gold: list[str | None]
    gold_name: str
    source: str  # the field or place that holds the answer
    agreement: float  # share of passes whose answer equals the gold
    same: Mask
    held: Mask  # rows that have both

    @property
    def is_telling(self) -> bool:
        """Whether equality is what is graded: nearly all passes have it."""
        return self.agreement >= AGREES


def reference(people: Population) -> Reference | None:
    """The answers and golds of a run; None where a row shows no answer or no gold."""
    golds, answers = _golds(people), _answers(people)
    if not golds or not answers:
        return None
    places = (np.flatnonzero(rows) for rows in (people.passed, people.failed))
    sample = [rows[:: max(1, len(rows) // SAMPLE)] for rows in places]
    pairs = [
        (share, -rank, gold_name, source)
        for gold_name, gold in golds.items() for rank, (source, answer) in enumerate(answers.items())
        if source != gold_name and (share := _agreement(answer, gold, sample)) is not None
    ]  # fmt: skip
    share, _, gold_name, source = max(pairs, key=lambda pair: pair[:2], default=(0.0, 0, "", ""))
    if share < AGREES:
        if "named gold" not in golds:
            return None
        share = share if gold_name == "named gold" else 0.0
        gold_name, source = "named gold", next(iter(answers))
    answer, gold = answers[source], golds[gold_name]
    present = np.array([bool(a and g) for a, g in zip(answer, gold, strict=True)], np.bool_)
    same = np.array([is_same(a or "", g or "") for a, g in zip(answer, gold, strict=True)], np.bool_)
    return Reference(answer, gold, gold_name, source, share, same, present)


def _golds(people: Population) -> dict[str, list[str | None]]:
    """Places that may hold the gold: fields that describe tasks, and the one that is named like a gold."""
    named = [row.gold_text or None for row in people.rows]
    result: dict[str, list[str | None]] = {"named gold": named} if sum(map(bool, named)) >= 0.5 * people.n else {}
    for path in people.task_level:
        if len(result) >= MAX_GOLDS:
            break
        texts = [_text(value) for value in people.columns[path]]
        if sum(text is not None for text in texts) >= 0.5 * people.n:
            result[path] = texts
    return result


def _answers(people: Population) -> dict[str, list[str | None]]:
    """Places that may hold the answer: fields named like one, then the ends of messages and calls."""
    result: dict[str, list[str | None]] = {}
    for path in people.paths:
        words = set(path.rpartition(".")[2].lower().split("_"))
        if words & _ANSWER_WORDS and len(result) < MAX_ANSWERS and not people.is_reward(path):
            texts = [_text(value) for value in people.columns[path]]
            pairs = [(text, row.gold_text) for text, row in zip(texts, people.rows, strict=True) if text and row.gold_text]
            n_gold = sum(text.strip() == gold.strip() for text, gold in pairs)
            if any(texts) and not (pairs and n_gold >= 0.98 * len(pairs)):  # it repeats the gold, in failing rows too
                result[path] = texts
    for source in ANSWER_ORDER:
        texts = [row.answers.get(source) for row in people.rows]
        if sum(map(bool, texts)) >= 0.05 * people.n:
            result[source] = texts
    return result


def _text(value: Any) -> str | None:
    text = "" if value is None else str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return text if text.strip() else None


def _agreement(answer: Any, gold: Any, sample: Any) -> float | None:
    """The share of passes that agree; None where as many failures do, letter by letter too, or too few hold both."""
    shares = []
    for rows in sample:
        pairs = [(answer[i], gold[i]) for i in rows if answer[i] and gold[i]]
        shares.append((len(pairs), sum(is_same(a, g) for a, g in pairs), sum(a.strip() == g.strip() for a, g in pairs)))
    (n, right, exact), (n_wrong, agree, exact_wrong) = shares
    if n < 3 or n < 0.5 * len(sample[0]):
        return None
    # how often an answer would equal the gold of any other row: a count that nearly all rows share agrees in failures as in passes
    rows = [i for part in sample for i in part if answer[i] and gold[i]]
    actual, wanted = (Counter(str(value_of(texts[i])) for i in rows) for texts in (answer, gold))
    chance = sum(n_same * wanted[value] for value, n_same in actual.items()) / max(len(rows), 1) ** 2
    if n_wrong and agree / n_wrong >= 0.5 * chance and chance >= COMMON:
        return None
    is_telling = not n_wrong or right / n > agree / n_wrong + 0.2 or exact / n > exact_wrong / n_wrong + 0.2
    return right / n if is_telling else None


def gives_answer(row: RowEvidence) -> bool:
    """Whether a row ends with an answer that can be read: the one text of a single turn, or a text beside a gold."""
    is_single = row.n_acts <= 1 and row.is_spoken
    is_compared = bool(row.gold_text) and row.expected is None and not row.is_spoken
    return bool(row.final.strip()) and row.end == "message" and (is_single or is_compared)


def answered(people: Population, i: int, known: Reference | None) -> str:
    """What a row answers and what it should, for a sentence."""
    row = people.rows[i]
    pair = (known.answer[i], known.gold[i]) if known is not None and known.is_telling else (None, None)
    text = pair[0] or row.answers.get("box") or row.answers.get("announced") or row.final
    gold = pair[1] or row.gold_text
    if text is row.final and row.final_length > FINAL:
        return f'it ends "…{short(text.strip()[-60:], 60)}"'
    return f'it answers "{short(text, 90)}"' + (f' (expected "{short(gold, 70)}")' if gold else "")

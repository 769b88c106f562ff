"""Rank components by the words of a query: whole words and their beginnings, never parts from within."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from blade_eval.catalogue.entries import Component, Entry

_WORD = re.compile(r"[a-z0-9]+")
# What people type, and what definitions call it.
_SYNONYMS = {
    "coding": "code programming python sql swe", "code": "coding programming", "programming": "coding code",
    "maths": "math", "mathematics": "math", "mathematical": "math", "arithmetic": "math",
    "safety": "safe refusal refuse harmful jailbreak", "safe": "safety refusal",
    "harmful": "safety refusal", "refusal": "safety refuse", "jailbreak": "safety",
    "tools": "tool function agent", "tool": "function agent agentic", "agentic": "agent tool",
    "agents": "agent agentic", "function": "tool", "speech": "asr audio", "audio": "asr speech",
    "asr": "speech audio transcription", "translation": "translate wmt mt", "translate": "translation",
    "science": "gpqa physics chemistry biology", "reasoning": "reason", "knowledge": "mmlu facts",
    "database": "sql", "json": "structured schema", "judge": "llm", "instructions": "instruction",
    "instruct": "instruction",
}  # fmt: skip
# Worth of a hit by the field it is in, highest first.
_NAME, _DOMAIN, _CATEGORY, _PART, _TEXT = 100.0, 40.0, 36.0, 24.0, 12.0
# Worth of a hit by how it came about.
_EXACT, _STEM, _BEGINS, _ENDS, _TYPO, _SYNONYM = 1.0, 0.9, 0.7, 0.5, 0.4, 0.45


class Ranked(NamedTuple):
    """What was found, best first, and whether every word of the query was found in each."""

    found: tuple[Entry | Component, ...]
    all_words: bool


def ranked(query: str, among: Sequence[Entry] | Sequence[Component]) -> Ranked:
    """The components that have all words of the query; if none has, those that have some."""
    words = list(dict.fromkeys(_WORD.findall(query.lower())))
    rows: list[tuple[int, float, Entry | Component]] = []
    for part in among:
        fields = _fields(part)
        worths = [_score(word, fields) for word in words]
        # a resources server with examples is rather what benchmarks are made of than what is looked for
        weight = 0.4 if part.name.startswith("resources_servers/") else 1.0
        if n := sum(worth > 0 for worth in worths):
            rows.append((n, sum(worths) * weight, part))
    complete = [row for row in rows if row[0] == len(words)]
    # of two that fit alike, a benchmark comes before an environment
    chosen = sorted(complete or rows, key=lambda row: (-row[0], -row[1], row[2].kind, row[2].name.lower()))
    return Ranked(tuple(part for _, _, part in chosen), bool(complete))


def _fields(part: Entry | Component) -> list[tuple[float, list[str]]]:
    name = part.name.removeprefix("resources_servers/")
    fields = [(_NAME, name), (_DOMAIN, part.domain), (_TEXT, part.description)]
    if isinstance(part, Entry):
        fields += [(_CATEGORY, part.category), (_PART, part.verifier), (_PART, part.agent)]
    else:
        fields += [(_PART, " ".join(part.variants))]
    return [(worth, _words(text)) for worth, text in fields if text]


def _words(text: str) -> list[str]:
    lowered = text.lower()
    parts = _WORD.findall(lowered)
    # math-500 is asked for as math500, and aime24 as aime 24
    joined = ["".join(pair) for pair in pairwise(parts)] if len(parts) < 8 else []
    split = [piece for part in parts for piece in re.findall(r"[a-z]{3,}|\d+", part) if piece != part]
    return list(dict.fromkeys([*parts, *joined, *split]))


def _score(word: str, fields: list[tuple[float, list[str]]]) -> float:
    direct = max((worth * _fit(word, words, worth == _NAME) for worth, words in fields), default=0.0)
    if len(word) < 3:
        return direct
    stems = {stem(other) for other in _SYNONYMS.get(word, "").split()}
    meant = (worth * _SYNONYM for worth, words in fields if stems & set(map(stem, words)))
    return max(direct, *meant, 0.0)


def _fit(word: str, words: list[str], in_name: bool) -> float:
    if word in words:
        return _EXACT
    if any(stem(word) == stem(other) for other in words):
        return _STEM
    if len(word) >= (2 if in_name else 4) and any(other.startswith(word) for other in words):
        return _BEGINS
    if in_name and len(word) >= 4 and any(other.endswith(word) for other in words):
        return _ENDS  # birdbench for bench, ifeval for eval
    if any(_mistyped(word, other) for other in words):
        return _TYPO
    return 0.0


def stem(word: str) -> str:
    """A word without its ending, so that coding, codes and code are one."""
    for ending in ("ings", "ing", "ies", "ers", "es", "ed", "er", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


def _mistyped(word: str, other: str) -> bool:
    """One slip in a word of five letters or more, two from nine on; never in a number or the initial."""
    if min(len(word), len(other)) < 5 or abs(len(word) - len(other)) > 2 or word[0] != other[0]:
        return False
    if re.sub(r"\D", "", word) != re.sub(r"\D", "", other):
        return False  # aime24 is not aime25
    return _slips(word, other) <= (2 if len(word) >= 9 else 1)


def _slips(word: str, two: str) -> int:
    """Letters left out, put in, changed, or exchanged with their neighbour."""
    before: list[int] = []
    last = list(range(len(two) + 1))
    for i, letter in enumerate(word, 1):
        row = [i]
        for j, other in enumerate(two, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and word[i - 2] == other:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]

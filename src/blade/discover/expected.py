"""Turn what a task expects into features: whether a rollout came upon it, touched it and did it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from blade import events
from blade.model import Call, Episode, Gold, TaskTraces

MAX_OUTPUT = 20_000  # characters of one result in which the answer is looked for
MAX_OUTPUTS = 200_000  # of one rollout
MAX_RAW = 2_000  # characters of the arguments of one call
MAX_IDS = 40
MAX_VALUES = 2_000  # looked through for ids
MAX_HITS = 20
MIN_ANSWER, MAX_ANSWER = 3, 80  # a longer answer is put in other words by whoever holds it
MAX_GIVEN = 20_000
CHECKED = 4  # repeats asked whether they expect the same

_ID = re.compile(r"#?(?=\D*\d)\w[\w.@:-]*")
_DATE_OR_AMOUNT = re.compile(r"\d{4}-\d\d(?:-\d\d)?|\d*\.\d+")
_DECIMALS = re.compile(r"\.\d")
_LISTED = re.compile(r"\s*(?:[,;]\s+and|[,;]|\band\b|&)\s+")
_SMALL = re.compile(r"[-+$£€]?\d{1,3}(?:\.\d+)?\s*%?")  # stands in many texts by chance


@dataclass(frozen=True)
class Expected:
    """What the rollouts of a task are looked at for; empty where the task does not say."""

    asked: bool  # the task expects an answer
    answer: tuple[str, ...]  # the parts it lists in lower case, if it can be recognised where it stands
    ids: tuple[str, ...]
    writes: frozenset[str]


def gold(task: TaskTraces) -> Gold:
    """What the task expects; a row that broke off may lack it where its repeats have it."""
    if task.gold.actions or task.gold.answer:
        return task.gold
    golds = (events.gold(episode.trace.row) for episode in task.episodes[:8])
    return next((found for found in golds if found.actions or found.answer), task.gold)


def expected(task: TaskTraces, found: Gold, given: str) -> Expected:
    """What to look for; `given` is the prompt."""
    answer = _answer(found.answer or "", given)
    if answer and any(
        (other := events.gold(episode.trace.row).answer) and other != found.answer
        for episode in task.episodes[1:CHECKED]
    ):
        answer = ()  # a field that differs between repeats is the answer of the model
    writes = frozenset(tool for tool, _ in found.actions if _changes(tool))
    ids = _ids([arguments for _, arguments in found.actions[:MAX_IDS]])
    return Expected(bool(found.answer), answer, ids, writes)


@lru_cache(maxsize=2000)
def _changes(tool: str) -> bool:
    return events.what_it_does(tool, None, None, {}) == events.WRITE


def _answer(told: str, given: str) -> tuple[str, ...]:
    """An answer worth looking for: not one that chance brings up, nor one that the prompt already holds."""
    answer = told.strip().lower()
    if not MIN_ANSWER <= len(answer) <= MAX_ANSWER or "\n" in answer or _SMALL.fullmatch(answer):
        return ()
    several = tuple(part for part in _LISTED.split(answer) if part)
    parts = several if all(len(part) > MIN_ANSWER for part in several) else (answer,)
    return () if not _missing(parts, given[-MAX_GIVEN:]) else parts


def _ids(arguments: list[Any]) -> tuple[str, ...]:
    """The values inside that name one thing: no choice among few, no date, no amount and no free text."""
    found: dict[str, None] = {}
    waiting = arguments
    for value in waiting:  # which grows
        if len(waiting) > MAX_VALUES or len(found) == MAX_IDS:
            break
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) or type(value) is int:
            told = str(value)
            if 4 <= len(told) <= 60 and _ID.fullmatch(told) and not _DATE_OR_AMOUNT.fullmatch(told):
                found[told] = None
    return tuple(found)


def about(wanted: Expected) -> Iterator[str]:
    """What the task says, as conditions to compare within."""
    if wanted.answer:
        yield "task:gold_answer"
    if wanted.ids:
        yield "task:gold_ids"


def features(episode: Episode, wanted: Expected) -> Iterator[str]:
    """How a rollout stands to what is expected."""
    if wanted.answer and episode.calls and gets(episode.calls, wanted.answer):
        yield "gold_found"
    if wanted.ids and _touches(episode.calls, wanted.ids):
        yield "gold_ids_touched"
    if wanted.writes and wanted.writes - {call.tool for call in episode.calls if not call.failed}:
        yield "misses_gold_write"


def gets(calls: Sequence[Call], answer: Sequence[str]) -> bool:
    """Whether the results hold every part of the answer."""
    left, waiting = MAX_OUTPUTS, answer
    for call in calls:
        if left <= 0:
            return False
        text = call.output[: min(MAX_OUTPUT, left)]
        left -= len(text)
        if text and not (waiting := _missing(waiting, text)):
            return True
    return False


def _missing(parts: Sequence[str], text: str) -> list[str]:
    """The parts of an answer, in lower case, that a text does not hold as words of their own."""
    lower = text.lower()
    return [part for part in parts if not _holds(lower, part)]


def _holds(lower: str, part: str) -> bool:
    at = lower.find(part)
    for _ in range(MAX_HITS):
        if at < 0:
            return False
        before, after = lower[at - 1 : at], lower[at + len(part) : at + len(part) + 2]
        if not (_is_word(before) or before == "." or _is_word(after[:1]) or _DECIMALS.match(after)):
            return True
        at = lower.find(part, at + 1)
    return False


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _touches(calls: Sequence[Call], ids: Sequence[str]) -> bool:
    told = "\n".join(call.raw[:MAX_RAW] for call in calls[:400])
    return all(_stands(told, one) for one in ids)


def _stands(text: str, one: str) -> bool:
    """Whether an id stands in a text, and not only as a part of a longer one."""
    at = text.find(one)
    for _ in range(MAX_HITS):
        if at < 0:
            return False
        before, after = text[at - 1 : at], text[at + len(one) : at + len(one) + 1]
        if not (_is_word(before) or _is_word(after)):
            return True
        at = text.find(one, at + 1)
    return False

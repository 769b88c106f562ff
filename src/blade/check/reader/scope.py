"""Find whom a claim is about: its run, its task, and whether a sentence narrows it further."""

from __future__ import annotations

import re

import msgspec

from blade.check.reader import lexicon
from blade.check.reader.mentions import ADDRESS, RUN, SLICE, TASK, Mention, Reader, Sentence

_BREAK = re.compile(
    r"[,;:()\[\]—–|]|\s-\s|\b(?:because|since|while|whereas|but|although|though|so that|and so|which|due "
    r"to|owing to|thanks to|"
    r"yet|hence|therefore|suggesting|indicating|meaning|showing|making|driven|caused|resulting|"
    r"reflecting)\b",
    re.IGNORECASE,
)
_NARROWS = re.compile(
    r"^\W*(?:on|in|for|among|amongst|within|with|without|of|when|where|if|excluding|except|after|before|"
    r"under|"
    r"given|at|across|over|from|by|counting|ignoring|once|during|using|restricted|limited|only|conditional|"
    r"compared|versus|vs|not|no|nearly|about)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


class Around(msgspec.Struct, frozen=True):
    """What stands around a statement: its headings and the sentences before it."""

    headings: tuple[str, ...] = ()
    before: str = ""
    title: str = ""


class Scope(msgspec.Struct, frozen=True):
    runs: tuple[str, ...]  # one: this one; several: any of these; none: nobody knows
    doubt: str = ""


def run_of(reader: Reader, sentence: Sentence, around: Around, near: int | None = None) -> Scope:
    """The run a claim is about: named in the sentence, above it, before it, or the only one."""
    if len(reader.ground.runs) == 1:
        return Scope(tuple(reader.ground.runs))
    named = sentence.of(RUN)
    if lexicon.BOTH.search(sentence.text) and not named:
        return Scope(tuple(reader.ground.runs), "it is said of several runs")
    if named:
        runs = {one.names for one in named}
        if len(runs) == 1 and len(named[0].names) == 1:
            return Scope(named[0].names)
        return Scope(
            tuple(dict.fromkeys(name for one in named for name in one.names)), "two runs could be meant"
        )
    for text in (*reversed(around.headings), around.before, around.title):
        runs = {one.names for one in reader.sentence(text[-2000:]).of(RUN)} if text else set()
        if len(runs) == 1 and len(next(iter(runs))) == 1:
            return Scope(next(iter(runs)))
        if runs:
            break
    return Scope(tuple(reader.ground.runs), "two runs could be meant")


def task_of(reader: Reader, sentence: Sentence, around: Around) -> tuple[str | None, str]:
    """The one task a claim is about, or why it may be about a part of the run."""
    if sentence.of(SLICE) or sentence.of(ADDRESS):
        return None, "it is said of a part of the run"
    tasks = sentence.of(TASK)
    if tasks:
        keys = {key for one in tasks for key in one.names}
        return (next(iter(keys)), "") if len(keys) == 1 else (None, "several tasks could be meant")
    for text in (*reversed(around.headings), around.before):
        above = reader.sentence(text[-2000:]) if text else None
        if above is not None and (
            above.of(SLICE) or above.of(ADDRESS) or above.of(TASK) or _SECTION.search(text)
        ):
            return None, "the part of the report is about a part of the run"
    return None, ""


def is_apart(sentence: Sentence, at: int, noun: Mention | None) -> str:
    """Why an amount may not be about the one task of its sentence: it counts tasks, or stands before."""
    if noun is not None and noun.names[0] == "tasks":
        return "it may be said of other tasks"
    clause = next((piece for piece in segments(sentence.text) if piece[0] <= at < piece[1]), (0, 0))
    if all(one.start >= clause[1] for one in sentence.of(TASK)):
        return "it may be said of all tasks"
    return ""


_SECTION = re.compile(
    r"\b(?:task|slice|category|mode|cluster|group|stage|example|case)s? ?:? ?[#`“\"\d]", re.IGNORECASE
)


def segments(shape: str) -> list[tuple[int, int]]:
    """The clauses of a shape."""
    found, start = [], 0
    for hit in _BREAK.finditer(shape):
        found.append((start, hit.start()))
        start = hit.start() if hit[0][0].isalpha() else hit.end()
    found.append((start, len(shape)))
    return found


def unknown_words(sentence: Sentence, start: int, end: int, known: frozenset[str] | None = None) -> str:
    """What in and around a span of a shape nobody knows to be harmless; empty where all is plain.

    With words that are known, these are harmless too, and no word is narrowing by itself.
    """
    for first, last in segments(sentence.shape):
        piece = sentence.shape[first:last]
        inside = first < end and last > start
        if not inside and not _NARROWS.match(piece):
            continue
        narrow = lexicon.NARROWING.search(piece) if known is None else None
        if narrow:
            return narrow[0]
        for word in _WORD.findall(piece):
            lowered = word.lower().replace("’", "'").removesuffix("'s")
            harmless = lowered in lexicon.HARMLESS or (known is not None and lowered in known)
            if not (harmless or lowered.endswith("ly") or _is_mark(word)):
                return str(word)
    return ""


def _is_mark(word: str) -> bool:
    return all("\ue000" <= one <= "\uf8ff" for one in word)


def doubt_of(sentence: Sentence, start: int, end: int, known: frozenset[str] | None = None) -> str:
    """Why a misfit in a span may be no contradiction."""
    word = unknown_words(sentence, start, end, known)
    return f"the sentence may narrow it: {word}" if word else ""


def aligned(sentence: Sentence, amounts: list[Mention]) -> dict[int, str] | None:
    """Runs and amounts in turn: which amount is whose, by start; None where they do not alternate."""
    runs = [one for one in sentence.of(RUN) if len(one.names) == 1]
    if len(runs) != len(amounts) or len(runs) != len(sentence.of(RUN)) or len(runs) < 2:
        return None
    order = "".join(
        kind for _, kind in sorted([(one.start, "R") for one in runs] + [(one.start, "Q") for one in amounts])
    )
    half = len(runs)
    if order in ("RQ" * half, "QR" * half, "R" * half + "Q" * half, "RQQR", "QRRQ"):
        return {amount.start: run.names[0] for run, amount in zip(runs, amounts, strict=True)}
    return None

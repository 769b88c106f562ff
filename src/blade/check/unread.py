"""Find what of a report nobody read: sentences with an amount or a quotation, cells with a number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from blade.check.made import parsed
from blade.check.reader.quantities import WORDS
from blade.model import SUPPORTED, Assertion
from blade.prose.document import Document, Statement, document
from blade.prose.slots import CODE, NUMBER, RATIO, slots

SENTENCE, CELL = "sentence", "cell"
NAMING = frozenset(("id", "step"))  # kinds of claims that say no more than that something is there
_UNITS = r"tasks?|rollouts?|repeats?|attempts?|runs?|rows?|failures?|passes|cases|steps?|turns?|calls?|ones"
# Amounts in words, where one may be no more than `that one`, and all or both need what they are all of.
_AMOUNT = re.compile(
    rf"\b(?:{'|'.join(word for word, value in WORDS.items() if value > 1)}"
    r"|dozens?|hundreds?|thousands?|majority|twice|thrice|percent|half (?:of|the)"
    r"|(?:third|quarter|fifth|tenth)s? of"
    r"|(?:all|most|none|each|one|some|few|many|several|both|any) of (?:them|these|those|the|its|which)"
    rf"|(?:all|every|each|most|no|one|only|few|many|several|both) (?:[\w-]+ )?(?:{_UNITS}))\b",
    re.IGNORECASE,
)

# Amounts that nobody writes by the way, and reasons: told although nothing else of the sentence can be read.
_COUNT = "|".join(word for word, value in WORDS.items() if value > 0)
_STRONG = re.compile(
    rf"\b(?:half|thirds?|quarters|fifths?|tenths?|twice|thrice|double[ds]?|tripled?|majority|percent)\b"
    rf"|\b\d+(?:\.\d+)?[x×](?!\w)|\b(?:{_COUNT}) of (?:the |its |these |those )?(?:{_COUNT})\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(?:because|due to|owing to|caused by|thanks to|as a result of)\b", re.IGNORECASE)


class Unread(msgspec.Struct, frozen=True):
    """A sentence, or a cell with what stands beside it, of which nothing was read."""

    line: int
    kind: str
    text: str


def unread(text: str, found: Sequence[Assertion]) -> list[Unread]:
    """What a Markdown report says that nothing in `found` is about, in the order of its lines."""
    if parsed(text) is not None:
        return []
    told = document(text)
    return sorted([*_sentences(told, found), *_cells(told, found)], key=lambda one: one.line)


def _sentences(told: Document, found: Sequence[Assertion]) -> Iterator[Unread]:
    """Sentences with a number, an amount in words or a quotation of which nobody read anything.

    That the tasks, rollouts and steps which a sentence names are there tells nothing of its other numbers.
    """
    claims: dict[tuple[int, str], list[Assertion]] = {}
    for one in found:
        claims.setdefault((one.line, one.text), []).append(one)
    for said in told.statements:
        if said.kind == "sentence" and _has_more(said, claims.get((said.line, said.text), [])):
            yield Unread(said.line, SENTENCE, said.text)


def _has_more(said: Statement, claims: Sequence[Assertion]) -> bool:
    """Whether a sentence has amounts or quotations beside what was read of it."""
    if any(one.verdict != SUPPORTED or one.kind not in NAMING for one in claims):
        return False
    left = said.text
    for one in claims:
        end = one.start + len(one.found)
        if one.start >= 0:
            left = left[: one.start] + " " * len(one.found) + left[end:]
    if any(slot.kind != CODE for slot in slots(left)):
        return True
    for slot in slots(left):
        left = left[: slot.start] + " " * (slot.end - slot.start) + left[slot.end :]
    if _STRONG.search(left):
        return True
    return bool(claims) and bool(_AMOUNT.search(left) or _REASON.search(left))


def _cells(told: Document, found: Sequence[Assertion]) -> Iterator[Unread]:
    """Cells with a number, beside the name of their row, that no claim on their line holds."""
    claims: dict[int, list[str]] = {}
    for one in found:
        claims.setdefault(one.line, []).append(one.found.strip())
    for table in told.tables:
        for row in table.rows:
            read = claims.get(row.line, [])
            for at, cell in enumerate(row.cells[1:], 1):
                is_number = any(slot.kind in (NUMBER, RATIO) for slot in slots(cell))
                if is_number and not any(one and (one in cell or cell in one) for one in read):
                    name = table.header[at] if at < len(table.header) else ""
                    beside = " | ".join(part for part in (row.cells[0], name) if part.strip())
                    yield Unread(row.line, CELL, f"{beside}: {cell}")

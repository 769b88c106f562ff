"""Find what of a report nobody read: sentences that say something, and cells with numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from blade.check.made import parsed
from blade.model import SUPPORTED, Assertion
from blade.prose.document import Document, Statement, document
from blade.prose.slots import CODE, NUMBER, RATIO, slots

SENTENCE, CELL = "sentence", "cell"
NAMING = frozenset(("id", "step"))  # kinds of claims that say no more than that something is there
_WORD = re.compile(r"[^\W\d_][\w'’-]+")
# Words that point at a task or a rollout and say nothing of it.
_POINTING = frozenset(
    """see also cf compare such as like for example instance and or in of at from to the this that these those
    task tasks rollout rollouts repeat repeats attempt attempts step steps run here there above below e.g eg
    i.e ie is are was were it its with by on first second last other others both more""".split()
)


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
    """Sentences with a number or a quotation that nobody read, and those of which only the ids were read."""
    claims: dict[tuple[int, str], list[Assertion]] = {}
    for one in found:
        claims.setdefault((one.line, one.text), []).append(one)
    for said in told.statements:
        if said.kind != "sentence":
            continue
        of_it = claims.get((said.line, said.text), [])
        if _says_more(said, of_it) if of_it else any(slot.kind != CODE for slot in slots(said.text)):
            yield Unread(said.line, SENTENCE, said.text)


def _says_more(said: Statement, claims: Sequence[Assertion]) -> bool:
    """Whether a sentence of which only the ids were read says something of them."""
    if any(one.verdict != SUPPORTED or one.kind not in NAMING for one in claims):
        return False
    if said.text.rstrip().endswith(":"):
        return False  # what follows is what it says
    left = said.text
    for one in claims:
        left = left.replace(one.found, " ")
    words = [word for word in _WORD.findall(left) if word.lower() not in _POINTING]
    return bool(words)


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

"""What a report states, and what became of each statement when it was checked."""

from __future__ import annotations

import msgspec

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
UNVERIFIABLE = "unverifiable"
UNCITED = "uncited"
OPINION = "opinion"


class Finding(msgspec.Struct, frozen=True):
    """One statement of a checked report, and what the rows or the report itself say of it."""

    verdict: str
    kind: str  # citation, quotation, id, arithmetic, number, cause
    line: int  # the first line it stands on, from 1
    lines: tuple[int, ...]
    text: str  # the sentence, or the table row with its header
    printed: str  # what the report says
    expected: str = ""  # what the rows say, or the query that gives an uncited number
    reading: str = ""  # how it was read, in words
    why: str = ""
    query: str | None = None
    tasks: tuple[str, ...] = ()  # tasks and rollouts named in the same sentence: 12 or 12/0

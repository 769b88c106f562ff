"""What a report states, what the rows say of it, and what became of each statement."""

from __future__ import annotations

import msgspec

SUPPORTED = "supported"
CONTRADICTED = "contradicted"
UNVERIFIABLE = "unverifiable"
UNCITED = "uncited"
OPINION = "opinion"


class Claim(msgspec.Struct, frozen=True):
    """One thing that a page of ours states, bound to the query that finds it in the report again."""

    id: str
    text: str  # the sentence, or the row and column of the table cell
    # number, share, count, metric, id, quote, bucket, outcome, label, step, direction, ordering, name
    kind: str
    value: float | str | None
    query: str
    cites: tuple[str, ...] = ()  # RUN/TASK or RUN/TASK/REPEAT


class Fact(msgspec.Struct, frozen=True):
    """One thing that the rows of a run say, under the query that finds it again in report.json."""

    query: str
    kind: str  # rate, points, count, number, p, text, ids
    subject: str  # what it is, in one word of ours: pass_at_1, n_tasks, never, lost, shrunk
    names: tuple[str, ...]  # what a reader may call it, lower case, the most telling first
    value: float | str | tuple[str, ...] | None
    run: str | None = None  # None: of all runs, or of two that `scope` names
    scope: tuple[tuple[str, str], ...] = ()  # what it is about: ("task", "4"), ("slice", "category=refund")
    n: float | None = None  # its denominator
    unit: str = ""  # what the denominator, or a count, counts: tasks, rows, rollouts
    low: float | None = None
    high: float | None = None
    cites: tuple[str, ...] = ()


class Assertion(msgspec.Struct, frozen=True):
    """One claim of a checked report, and whether the data bears it out."""

    verdict: str
    # as in Claim, or: cell, entry, interval, p, percentage, sum, total, partition, difference, repeated, word
    kind: str
    line: int  # the first line it stands on, from 1
    last_line: int
    text: str  # the sentence, or the table row
    found: str  # what the report says
    expected: str | None = None  # what the data says
    why: str = ""
    subject: str | None = None  # as in Fact, where it could be read
    run: str | None = None
    scope: tuple[tuple[str, str], ...] = ()
    value: float | str | None = None
    query: str | None = None
    cites: tuple[str, ...] = ()  # TASK or TASK/REPEAT named in the same statement
    start: int = -1  # where `found` stands in `text`; -1: nowhere in particular


class Finding(msgspec.Struct, frozen=True):
    """One statement of a checked report, and what the rows or the report itself say of it."""

    verdict: str  # supported, contradicted, unverifiable, uncited, opinion
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

"""Say where a statement stands: its row and column, what came before it, whom it concerns."""

from __future__ import annotations

import msgspec

from blade.report.claims.mentions import Entity


class Context(msgspec.Struct, frozen=True):
    """One statement, sentence or table cell, and what surrounds it."""

    section: str
    at: int  # its number in the section, from 1
    text: str  # plain; what is taken from elsewhere stands between backticks
    lower: str  # the same in lower case
    shown: str  # what the claim calls it: the sentence, or row and column
    near: frozenset[Entity]  # named in the sentence, or in the row and column
    far: frozenset[Entity]  # named in the paragraph, its heading, or the sentence that introduces it
    runs: tuple[str, ...]  # the runs that may be meant, the likeliest first
    lead: str = ""  # of a cell: the first cell of its row, lower case
    row: str = ""  # of a cell: the other cells of its row, lower case
    column: str = ""  # of a cell: its header, lower case
    around: str = ""  # the paragraph and its heading, lower case
    quote: str = ""  # the statement is this quotation
    label_of: str = ""  # the statement introduces this quotation

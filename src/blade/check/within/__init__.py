"""Find what a report says against itself: sums, shares, intervals, words, what it says twice."""

from __future__ import annotations

from collections.abc import Iterator

from blade.check.within.beside import rates_beside, significance
from blade.check.within.changes import changes, differences, signs
from blade.check.within.complements import complements
from blade.check.within.equations import equations
from blade.check.within.intervals import chance_columns, chances, interval_columns, spans
from blade.check.within.order import ordered
from blade.check.within.partitions import buckets, losses, totals
from blade.check.within.passage import asserted, passages
from blade.check.within.ratios import ratios
from blade.check.within.repeated import repeated
from blade.check.within.shares import change_columns, share_columns
from blade.check.within.superlatives import bimodal, superlatives
from blade.check.within.totals import sums_below, total_columns, total_rows
from blade.check.within.words import comparisons, quantities
from blade.model import Assertion
from blade.prose.document import Document

# What a text can say against itself, and what a table can.
TEXTS = (
    ratios,
    spans,
    chances,
    equations,
    changes,
    differences,
    signs,
    buckets,
    losses,
    totals,
    quantities,
    comparisons,
    significance,
    rates_beside,
)
CELLS = (ratios, spans)  # all that fits into a short one
TABLES = (
    total_rows, total_columns, share_columns, change_columns, interval_columns, chance_columns, ordered,
)  # fmt: skip

__all__ = ["within"]


def within(document: Document) -> list[Assertion]:
    """Every check that a report allows of itself, by line; of two about the same words the first stays."""
    found: dict[tuple[int, str, str, int], Assertion] = {}
    for one in _all(document):
        found.setdefault((one.line, one.kind, one.found, one.start), one)
    return sorted(found.values(), key=lambda one: (one.line, one.start))


def _all(document: Document) -> Iterator[Assertion]:
    for passage in passages(document):
        for rule in TEXTS if len(passage.text) > 40 or passage.text == passage.whole else CELLS:
            for finding in rule(passage.text):
                yield asserted(finding, passage)
    yield from bimodal(document)
    yield from complements(document)
    for table in document.tables:
        for check in TABLES:
            yield from check(table)
    yield from sums_below(document)
    yield from superlatives(document)
    yield from repeated(document)

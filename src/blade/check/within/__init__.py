"""Find what a report says against itself: sums, shares, repeated quantities, words beside numbers."""

from __future__ import annotations

from blade.model import Assertion
from blade.prose.document import Document


def within(document: Document) -> list[Assertion]:
    """What of a document can be checked without any rows."""
    return []

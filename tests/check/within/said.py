"""Turn a few lines of Markdown into what is found in them."""

from __future__ import annotations

from blade.check.within import within
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import document


def found(text: str) -> list[Assertion]:
    return within(document(text))


def contradicted(text: str) -> list[Assertion]:
    return [one for one in found(text) if one.verdict == CONTRADICTED]


def supported(text: str) -> list[Assertion]:
    return [one for one in found(text) if one.verdict == SUPPORTED]


def table(header: str, *rows: str, before: str = "", after: str = "") -> str:
    """A report with one table; cells are parted by |."""
    lines = [before, "", f"| {header} |", "|" + " --- |" * (header.count("|") + 1)]
    return "\n".join(["# Report", "", *lines, *(f"| {row} |" for row in rows), "", after, ""])

"""Turn a report of raw rows into one like a redacted report, to be held beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blade import sanitize
from blade.model import Report
from blade.pipeline.load import Loaded
from blade.sanitize import PLACEHOLDER


def like(text: str, report: Report, loaded: Sequence[Loaded]) -> tuple[Report, bool]:
    """The report as `text` was redacted, and whether its codes are unknown here.

    With the key at hand the placeholders are made again, code by code; without it what stands outside them
    counts, and their kinds.
    """
    told = {hit[0] for hit in PLACEHOLDER.finditer(text)}
    if not told:
        return report, False
    key = sanitize.known_key()
    sources = [Path(source.path) for one in loaded for source in one.sources]
    policy = sanitize.policy_near(sources, here=False)
    again, _ = sanitize.redacted(report, key or sanitize.Key(b"any key will do here"), policy)
    made = {hit[0] for hit in PLACEHOLDER.finditer(repr(again))}
    return again, key is None or not told & made


def untold() -> str:
    """Why the placeholders of a report are not made again."""
    return "placeholders not re-derived: " + ("key differs" if sanitize.known_key() else "no key at hand")


def blinded(text: str) -> str:
    """`text` with the kinds of its placeholders alone."""
    return PLACEHOLDER.sub(lambda hit: f"[{hit[1]}]", text)

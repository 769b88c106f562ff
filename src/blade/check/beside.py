"""Give a page of ours the queries of its claims, which stand in the JSON file beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from blade.query.comments import escape_comment

_MARKED = re.compile(r"<!--c\d+-->")  # what a report of ours leaves behind a number


def claims_file(path: Path) -> Path:
    """Name the JSON file that belongs to a page."""
    return path.with_suffix(".json")


def with_claims(text: str, path: Path) -> str:
    """Add the queries of its claims to the text of the page at `path`, where they are beside it."""
    if path.suffix != ".md" or not _MARKED.search(text) or "<!--blade claims" in text:
        return text
    if not claims_file(path).is_file():
        return text
    try:
        claims = json.loads(claims_file(path).read_text(encoding="utf-8"))["claims"]
        lines = [f"{claim['id']} {escape_comment(claim['query'])}" for claim in claims]
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return text  # no report of ours
    return "\n".join([text.rstrip("\n"), "", "<!--blade claims", *lines, "-->", ""])

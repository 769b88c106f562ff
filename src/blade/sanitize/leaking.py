"""Find what looks private in a text that is about to leave; the value itself is not told."""

from __future__ import annotations

import msgspec

from blade.sanitize.cleaner import Cleaner
from blade.sanitize.keys import Key
from blade.sanitize.policy import Policy


class Leak(msgspec.Struct, frozen=True):
    """Something private: of which kind, and where."""

    kind: str
    line: int  # from 1; of a JSON document always 1
    field: str  # dotted, in JSON
    length: int


def leaks(text: str, policy: Policy | None = None) -> list[Leak]:
    """What looks private in a text: JSON, rows of JSON, Markdown, HTML or plain."""
    found: list[Leak] = []
    line = 1

    def seen(field: str, kind: str, value: str) -> None:
        found.append(Leak(kind, line, field, len(value)))

    cleaner = Cleaner(Key(b"to count, nothing is kept"), policy, seen)
    if not text.lstrip().startswith("{"):
        cleaner.row(text)
        return found
    rows = text.splitlines()
    if len(rows) > 1 and all(row.startswith("{") for row in rows if row):
        for line, row in enumerate(rows, 1):  # noqa: B007 the closure reads it
            cleaner.row(row)
    else:
        cleaner.row(text)
    return found

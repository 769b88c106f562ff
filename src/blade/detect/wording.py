"""Turn values of a rollout into the words of a summary: short, in one line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from blade import events

_SPACE = re.compile(r"\s+")


def short(value: Any, limit: int = 60) -> str:
    """A value in one line; a string as it stands, all else as JSON."""
    text = value[: 4 * limit] if isinstance(value, str) else events.canonical(value)
    line = _SPACE.sub(" ", text).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def steps(found: Sequence[int], limit: int = 4) -> str:
    """`step 3` or `steps 3, 5, 7 and 2 more`."""
    if len(found) == 1:
        return f"step {found[0]}"
    shown = found[:limit]
    rest = len(found) - len(shown)
    told = ", ".join(map(str, shown if rest else shown[:-1]))
    return f"steps {told} and {f'{rest} more' if rest else shown[-1]}"


def count(n: int, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{n} {noun}{'' if n == 1 else 's'}"

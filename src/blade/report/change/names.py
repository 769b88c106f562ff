"""Turn names of runs into ones that fit a column and can still be told apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from blade import hostile

LONGEST = 400  # characters of a name that are looked at
_WORD = re.compile(r"[^\W_]+\Z")


def cell_width(name: str) -> int:
    """Cells of a terminal that a name takes: wide characters take two."""
    from rich.cells import cell_len

    return cell_len(name)


def middle(name: str, columns: int) -> str:
    """The name, cleaned, in at most so many cells of a terminal: both ends tell more than the start alone."""
    from rich.cells import set_cell_size

    name = hostile.line(name, LONGEST)
    if cell_width(name) <= columns:
        return name
    head = (columns - 1) // 2
    end = set_cell_size(name[::-1], columns - 1 - head).rstrip()[::-1]
    return f"{set_cell_size(name, head).rstrip()}…{end}"


def apart(names: Sequence[str], columns: int) -> list[str]:
    """The names, each in at most so many cells; different names stay different."""
    cleaned = [hostile.line(name, LONGEST) for name in names]
    shapes: tuple[Callable[[], list[str]], ...] = (
        lambda: cleaned,
        lambda: _without_start(cleaned),
        lambda: _turned(_without_start(_turned(_without_start(cleaned)))),
    )
    for shape in shapes:
        found = [middle(name, columns) for name in shape()]
        if len(set(found)) == len(set(names)):
            return found
    places = {name: f" #{at}" for at, name in enumerate(dict.fromkeys(names), 1)}
    return [middle(name, max(1, columns - len(places[name]))) + places[name] for name in names]


def _without_start(names: list[str]) -> list[str]:
    """Without what all begin with, up to where a word starts."""
    first, last = min(names, default=""), max(names, default="")  # the farthest apart share the least
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    start = len(_WORD.sub("", first[:same]))
    return [f"…{name[start:]}" for name in names] if start > 1 else names


def _turned(names: list[str]) -> list[str]:
    return [name[::-1] for name in names]

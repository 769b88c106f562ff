"""Find what the rows of a package call things, their fields, tools and codes, with no other library."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLE = 200  # rows looked at in each file
MAX_LINE = 8 << 20  # bytes
_DEPTH = 3  # levels of objects whose keys are fields
_WIDE = 40  # keys up to which an object is a record and not a map
_CODE = 40  # characters up to which a value may be a code
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@dataclass(frozen=True)
class Terms:
    """What rows call things."""

    top: frozenset[str] = frozenset()  # the fields that rows of every file have
    fields: frozenset[str] = frozenset()  # these, and those of the records inside
    words: frozenset[str] = frozenset()  # of fields, tools and values that several rows share, lower case

    def named(self, text: str) -> set[str]:
        """The fields that a text names, letter by letter."""
        return {name for name in self.fields if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text)}


def terms(rollouts: Iterable[Path]) -> Terms:
    """The terms of the first rows of each file; a file that cannot be read has none."""
    tops: list[set[str]] = []
    paths: set[str] = set()
    values: Counter[str] = Counter()
    for path in rollouts:
        top: set[str] = set()
        for row in _rows(path):
            top |= row.keys()
            members = list(_members(row))
            paths |= {name for name, _ in members}
            values.update({value for _, value in members if isinstance(value, str) and len(value) <= _CODE})
            values.update(_tools(row))
        tops += [top] if top else []
    common = set.intersection(*tops) if tops else set()
    inner = {leaf for name in paths for leaf in [name.rpartition(".")[2]] if "_" in leaf}
    shared = {value for value, n in values.items() if n > 1}
    words = {part.lower() for members in paths | shared for part in _PART.findall(members) if len(part) > 2}
    return Terms(frozenset(common), frozenset(common | {name for name in paths if "." in name} | inner),
                 frozenset(words))  # fmt: skip


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for _ in range(SAMPLE):
                line = file.readline(MAX_LINE)
                if not line:
                    return
                try:
                    row = json.loads(line.decode("utf-8-sig"))
                except (ValueError, RecursionError):
                    continue
                if isinstance(row, dict):
                    yield row
    except OSError:
        return


def _members(value: dict[str, Any], above: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Every field of a row with its value, those of records under their path."""
    for key, inner in value.items():
        yield f"{above}{key}", inner
        if isinstance(inner, dict) and len(inner) <= _WIDE and depth < _DEPTH:
            yield from _members(inner, f"{above}{key}.", depth + 1)


def _tools(row: dict[str, Any]) -> Iterator[str]:
    """The tools that a row declares or calls."""
    places = (("responses_create_params", "tools"), ("response", "tools"), ("response", "output"))
    for outer, name in places:
        held = row.get(outer)
        items = held.get(name) if isinstance(held, dict) else None
        for item in items if isinstance(items, list) else []:
            members = item.get("name") if isinstance(item, dict) else None
            if isinstance(members, str):
                yield members

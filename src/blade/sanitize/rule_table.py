"""Load the table of what is private: rules, forms of keys, patterns and lists of words."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any


@cache
def table() -> dict[str, Any]:
    """The whole of `rules.yaml`."""
    import yaml

    text = Path(__file__).with_name("rules.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def words(name: str) -> frozenset[str]:
    """A list of words."""
    return frozenset(table()["words"][name].split())


def joined(parts: str | list[str]) -> str:
    """A pattern whose parts stand on lines of their own, with its fragments."""
    text = parts if isinstance(parts, str) else "".join(parts)
    return re.sub(r"\{([A-Z_]+)\}", lambda hit: joined(table()["fragments"][hit[1]]), text)


def compiled(name: str) -> re.Pattern[str]:
    """A pattern that a function of this room works with."""
    return re.compile(joined(table()["patterns"][name]))

"""Load the words and patterns by which reports are read from `vocabulary.yaml`."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _table() -> dict[str, Any]:
    import yaml

    text = Path(__file__).with_name("vocabulary.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def words(name: str) -> frozenset[str]:
    return frozenset(_table()["words"][name]["words"].split())


@cache
def any_of(name: str) -> re.Pattern[str]:
    """A pattern for any word of a list."""
    entry = _table()["words"][name]
    choices = (re.escape(word).replace("_", " ").replace(r"\*", r"\w*") for word in entry["words"].split())
    return re.compile(rf"\b(?:{'|'.join(choices)})\b{entry.get('more', '')}", re.IGNORECASE)


@cache
def compiled(name: str) -> re.Pattern[str]:
    """A pattern with its fragments."""
    fragments, text = _table()["fragments"], "".join(_table()["patterns"][name])
    while (whole := re.sub(r"\{([A-Z]+)\}", lambda hit: "".join(fragments[hit[1]]), text)) != text:
        text = whole
    return re.compile(text)

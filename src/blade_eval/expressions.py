"""Compile the expressions by which verifiers read answers; they stand in a table, by verifier and name."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def table(name: str) -> dict[str, Any]:
    """A file of YAML beside this module."""
    text = (Path(__file__).parent / name).read_text("utf-8")
    content: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return content


class Expressions:
    """The expressions of one verifier, compiled when they are first used."""

    def __init__(self, verifier: str) -> None:
        self.verifier = verifier

    def text(self, name: str) -> str:
        """An expression as text: its parts joined, and the entries that it names put in."""
        entry = table("expressions.yaml")[self.verifier][name]
        if isinstance(entry, dict):
            entry = f"(?:{'|'.join(entry['any of'])})"
        return re.sub("@([a-z_]+)@", lambda place: self.text(place[1]), "".join(entry))

    def __getattr__(self, name: str) -> re.Pattern[str]:
        pattern = re.compile(self.text(name))
        setattr(self, name, pattern)
        return pattern

"""Turn any person's prose and tables into assertions, held against what the runs say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blade.model import Assertion
from blade.prose.document import Document

if TYPE_CHECKING:
    from blade.check.world import World


def read(document: Document, world: World) -> list[Assertion]:
    """Every claim that can be read from the words of a document."""
    return []


def read_json(value: object, world: World) -> list[Assertion]:
    """Every claim that can be read from the keys of a JSON value."""
    return []

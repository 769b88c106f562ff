"""Hold any person's prose and tables against the facts of the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blade.model import Assertion
from blade.prose.document import Document

if TYPE_CHECKING:
    from blade.check.world import World


def read(document: Document, world: World) -> list[Assertion]:
    """Every claim that can be read from the words of a document."""
    return []

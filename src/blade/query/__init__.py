"""Answer queries over the tables of runs: measures, one SELECT, or conclusions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blade.query.query_ground import Ground


def evaluate(query: str, ground: Ground) -> Any:
    """The one value that a query gives."""
    from blade.query.query_ground import value

    return value(query, ground)

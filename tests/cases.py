"""Read the tables of cases that stand in `cases.json` beside the tests of a room."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _tables(room: str) -> dict[str, list[Any]]:
    tables: dict[str, list[Any]] = json.loads((Path(__file__).parent / room / "cases.json").read_text("utf-8"))
    return tables


def cases(room: str, name: str) -> list[Any]:
    """The rows of one table."""
    return _tables(room)[name]

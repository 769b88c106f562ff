"""Load the tables of cases that stand beside the tests of a room."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def _decoded(path: Path) -> dict[str, Any]:
    tables: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tables


def tables(path: str, file: str = "cases.yaml") -> dict[str, Any]:
    """The tables of a file beside a test file."""
    return _decoded(Path(path).with_name(file))


def cases(path: str, name: str) -> list[Any]:
    """The rows of a table in the `cases.yaml` beside a test file."""
    rows: list[Any] = tables(path)[name]
    return rows

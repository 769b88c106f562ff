"""Load the tables of cases that stand beside the tests of a room."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def _decoded(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    decoded: dict[str, Any] = json.loads(text) if path.suffix == ".json" else yaml.load(text, yaml.CSafeLoader)
    return decoded


def tables(path: str, file: str = "cases.yaml") -> dict[str, Any]:
    """The tables of a file beside a test file."""
    return _decoded(Path(path).with_name(file))


def cases(path: str, name: str) -> list[Any]:
    """The rows of a table in the `cases.yaml` or `cases.json` beside a test file."""
    is_yaml = Path(path).with_name("cases.yaml").exists()
    rows: list[Any] = tables(path, "cases.yaml" if is_yaml else "cases.json")[name]
    return rows

"""Load the tables of cases that stand beside the tests of a room."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def cases(path: str, name: str) -> list[Any]:
    """The rows of a table in the `cases.yaml` beside a test file."""
    text = Path(path).with_name("cases.yaml").read_text(encoding="utf-8")
    tables: dict[str, list[Any]] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return tables[name]

"""The accuracy card that ships with the package: how right the labels are where the truth is known."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def card() -> dict[str, Any] | None:
    """The card as `make accuracy` wrote it; None if it was never run."""
    file = resources.files("blade") / "accuracy.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

"""Compare what a solution returned with what is expected; for a worker that may be ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from blade_eval.sandbox import plain

SHOWN = 2000


def unequal(said: str, wanted: str) -> dict[str, str | bool] | None:
    """None when both are the same; else what is wrong and what was returned, as texts."""
    if said.startswith(('{"thing":', '{"coroutine":')):
        return {"wrong": False, "message": "Runtime error: what was returned is no plain data", "got": ""}
    expected = _listed(plain.decoded(wanted))
    try:
        value = plain.decoded(said)
        if _listed(value) == expected:
            return None
        shown = _shown(value)
    except Exception:  # such as Decimal("sNaN"), which equals nothing and says so loudly
        message = "Runtime error: something else was written where the answer belongs"
        return {"wrong": False, "message": message, "got": ""}
    message = f"Wrong answer: {shown[:80]} where {_shown(expected)[:80]} is expected"
    return {"wrong": True, "message": message, "got": shown[:SHOWN]}


def _shown(value: Any) -> str:
    if isinstance(value, Iterator):
        return "an iterator"
    try:
        return repr(value).encode("utf-8", "replace").decode("utf-8")
    except (ValueError, RecursionError):  # a number of too many digits to be written
        return f"a {type(value).__name__} too large to be shown"


def _listed(value: Any) -> Any:
    """Expected values come from JSON, which has no tuples, at any depth."""
    if isinstance(value, list | tuple | deque):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return _listed(value.tolist()) if hasattr(value, "tolist") else value

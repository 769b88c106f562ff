"""Turn JSON text into values, and values into one spelling."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_VOLATILE = frozenset(
    "timestamp request_id call_id nonce trace_id span_id idempotency_key session_id".split()
)


def parsed(text: str) -> Any:
    """The JSON in a text; None if there is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def canonical(value: Any) -> str:
    """A JSON value in one spelling, without fields that differ from call to call by nature."""
    if isinstance(value, dict) and _VOLATILE & value.keys():
        value = {key: inner for key, inner in value.items() if key not in _VOLATILE}
    try:
        text = msgspec.json.encode(value, order="deterministic").decode()
        return msgspec.json.encode(_whole(value), order="deterministic").decode() if ".0" in text else text
    except (TypeError, ValueError, RecursionError, UnicodeError):
        return repr(value)


def _whole(value: Any) -> Any:
    """A JSON value in which 2.0 is 2."""
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def compact(value: Any) -> str:
    """A value as it is quoted when it is no string."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

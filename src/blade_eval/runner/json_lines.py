"""Encode a row as a line of JSON, whatever stands in it, and decode a line."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from blade_eval.environment import Row

decode = msgspec.json.Decoder().decode
NOT_JSON = (msgspec.DecodeError, ValueError, RecursionError)
_encode = msgspec.json.Encoder().encode


def line(row: Row) -> bytes:
    """One compact line of UTF-8 with its newline; what is no JSON number is null."""
    try:
        return _encode(row) + b"\n"
    except (TypeError, ValueError, OverflowError):
        # half a surrogate pair, a huge whole number, a strange key
        return json.dumps(_plain(row), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def any_row(text: bytes) -> Row | None:
    """The object of a line, even with NaN or half surrogate pairs; None if it is none."""
    for read in (decode, json.loads):
        try:
            row = read(text)
        except NOT_JSON:
            continue
        return row if isinstance(row, dict) else None
    return None


def _plain(value: Any) -> Any:
    """What any JSON reader takes: no half surrogate pairs, no NaN, no keys that are no text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else _plain(str(value))

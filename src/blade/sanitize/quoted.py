"""Turn JSON text into its tokens, and its strings into what they say and back."""

from __future__ import annotations

import json
import re

import msgspec

TOKEN = re.compile(
    r'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"(?P<key>\s*:\s*)?|(?P<open>[{\[])|(?P<close>[}\]])', re.DOTALL
)
_SCALAR = re.compile(r"[^\s,}\]]+")
_NUMBERS = re.compile(r"\[?\s*(?:-?\d+\s*,\s*)*-?\d+\s*(?=[,}\]])")  # one, or the first of a plain list


def is_json(text: str) -> bool:
    """Is it JSON, or what Python writes and reads as such: NaN, Infinity."""
    try:
        msgspec.json.decode(text.encode("utf-8", "surrogatepass"), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return _is_pythons(text)
    return True


def _is_pythons(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


def decoded(text: str) -> str:
    """The text that the inside of a JSON string stands for; as it is where it is none."""
    if "\\" not in text:
        return text
    try:
        told = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return told if isinstance(told, str) else text


def encoded(text: str, like: str) -> str:
    """A text as the inside of a JSON string, escaped as the one it replaces."""
    ascii_only = "\\u" in like or any("\ud800" <= char <= "\udfff" for char in text)
    return json.dumps(text, ensure_ascii=ascii_only)[1:-1]


def numbers_end(raw: str, start: int) -> int:
    """Where the whole numbers that stand here end: one, or a list of them; `start` if there are none."""
    hit = _NUMBERS.match(raw, start)
    return hit.end() if hit else start


def value_end(raw: str, start: int) -> int:
    """Where the value that starts here ends."""
    hit = TOKEN.match(raw, start)
    if hit is None and raw[start : start + 1] == '"':
        return len(raw)  # torn
    if hit is None:
        scalar = _SCALAR.match(raw, start)
        return scalar.end() if scalar else start
    if hit["text"] is not None:
        return hit.end() - len(hit["key"] or "")
    depth = 0
    for hit in TOKEN.finditer(raw, start):
        depth += bool(hit["open"]) - bool(hit["close"])
        if depth == 0:
            return hit.end()
    return len(raw)

"""Turn a row into one without the fields that may not be shared, leaving hash and length of each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from blade.sanitize.keys import PLACEHOLDER
from blade.sanitize.policy import Policy

_TOKEN = re.compile(
    r'"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"(?P<key>\s*:\s*)?|(?P<open>[{\[])|(?P<close>[}\]])', re.DOTALL
)
_SCALAR = re.compile(r"[^\s,}\]]+")


def dropped(raw: str, policy: Policy, drop: Callable[[tuple[str, ...], str], str]) -> str:
    """A line of JSON in which `drop` says what stands for each field that the policy drops."""
    parts: list[str] = []
    stack: list[str] = []
    saved: list[str] = []
    done, key, at = 0, "", 0
    while (hit := _TOKEN.search(raw, at)) is not None:
        at = hit.end()
        if hit["open"]:
            stack.append(key if hit["open"] == "{" else "")
            saved.append(key)
        elif hit["close"] and saved:
            stack.pop()
            key = saved.pop()
        elif hit["key"]:
            key = json.loads(f'"{hit["text"]}"') if "\\" in hit["text"] else hit["text"]
            path = tuple(part for part in (*stack, key) if part)
            if policy.drops(path):
                end = _value_end(raw, at)
                value = raw[at:end]
                if value not in ("null", '""') and not PLACEHOLDER.fullmatch(value.strip().strip('"')):
                    parts += [raw[done:at], drop(path, value)]
                    done = end
                at = end
    return "".join([*parts, raw[done:]]) if parts else raw


def _value_end(raw: str, start: int) -> int:
    """Where the value that starts here ends."""
    hit = _TOKEN.match(raw, start)
    if hit is None:
        scalar = _SCALAR.match(raw, start)
        return scalar.end() if scalar else start
    if hit["text"] is not None:
        return hit.end() - len(hit["key"] or "")
    depth = 0
    for hit in _TOKEN.finditer(raw, start):
        depth += bool(hit["open"]) - bool(hit["close"])
        if depth == 0:
            return hit.end()
    return len(raw)

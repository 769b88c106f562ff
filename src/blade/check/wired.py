"""Hold a report in the wire format against the one that its rows give again, entry by entry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from blade.check.json_lines import Lines
from blade.check.redacted import blinded
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, Assertion

# Where files lay and what was typed are no claims about the rows.
_UNTOLD = frozenset({"path", "file", "made_by", "line"})
_SHOWN = 160  # characters of a value in a message


def wired(text: str, data: dict[str, Any], world: World) -> list[Assertion]:
    """Every entry of a report.json: supported, or contradicted value by value."""
    from blade.report import printed, printed_comparison

    written = (printed_comparison if world.is_comparison else printed)(world.report)
    again = json.loads(blinded(written) if world.is_blind else written)
    lines = Lines(text)
    found: list[Assertion] = []
    for key in data:
        if key in again:
            found += _part(key, data[key], again[key], lines)
    return found


def _part(key: str, told: Any, again: Any, lines: Lines) -> Iterator[Assertion]:
    if not isinstance(told, list) or not isinstance(again, list):
        yield from _entry(key, told, again, lines)
        return
    if len(told) != len(again):
        why = f"the rows give {len(again)} entries of {key}"
        yield _assertion(key, CONTRADICTED, f"{len(told)} entries", f"{len(again)} entries", why, lines)
    for at, (one, other) in enumerate(zip(told, again, strict=False)):
        yield from _entry(f"{key}[{at}]", one, other, lines)


def _entry(path: str, told: Any, again: Any, lines: Lines) -> Iterator[Assertion]:
    """One assertion for an entry that agrees, one for each value that does not."""
    wrong = list(_differences(path, told, again))
    if not wrong:
        yield _assertion(path, SUPPORTED, path, None, "the rows give the same entry", lines)
    for place, found, expected in wrong:
        yield _assertion(place, CONTRADICTED, found, expected, f"the rows give {expected} for {place}", lines)


def _differences(path: str, told: Any, again: Any) -> Iterator[tuple[str, str, str]]:
    if isinstance(told, dict) and isinstance(again, dict):
        untold = _UNTOLD | (_of_files(told) & _of_files(again))
        for key in {**told, **again}:
            if key not in untold and path not in _UNTOLD:
                yield from _differences(f"{path}.{key}", told.get(key), again.get(key))
    elif isinstance(told, list) and isinstance(again, list) and len(told) == len(again):
        for at, (one, other) in enumerate(zip(told, again, strict=True)):
            yield from _differences(f"{path}[{at}]", one, other)
    elif not _same(told, again):
        yield path, _shown(told), _shown(again)


def _of_files(entry: dict[str, Any]) -> frozenset[str]:
    """What of a claim about files says where they lay; such claims have a series of their own."""
    if "query" not in entry or not str(entry.get("id")).startswith("s"):
        return frozenset()
    return frozenset({"text", "query", "value"} if isinstance(entry.get("value"), str) else {"text", "query"})


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, int | float):
        return bool(one == other and type(one) is type(other))
    if isinstance(one, int) and isinstance(other, int):
        return one == other  # however large
    if not isinstance(other, int | float) or max(abs(one), abs(other)) > 1e300:
        return bool(one == other)
    return bool(abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other)))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _assertion(
    place: str, verdict: str, found: str, expected: str | None, why: str, lines: Lines
) -> Assertion:
    line = lines.of(place)
    return Assertion(verdict, "entry", line, line, place, found, expected, why)

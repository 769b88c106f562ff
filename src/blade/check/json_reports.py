"""Check reports in JSON: the claims and quotations of a report.json, and the sentences of any other JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from blade import hostile
from blade.check.cited_numbers import Answers
from blade.check.row_texts import Address, RowTexts
from blade.check.world import World
from blade.errors import BladeError, UsageError
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Finding
from blade.query.citations import in_words
from blade.query.ground import value as single

SCHEMA = "blade.report/2"
WORDS = 5  # from which a string is prose, not a value
_DEEPEST = 60
Reader = Callable[[str, World | None], tuple[Finding, ...]]


def json_findings(text: str, world: World | None, read: Reader) -> tuple[Finding, ...] | None:
    """The findings of a JSON text; None if it is no JSON."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    schema = data.get("schema") if isinstance(data, dict) else None
    if isinstance(schema, str) and schema.startswith("blade.report/") and schema != SCHEMA:
        raise UsageError(
            f"this file has the schema {hostile.line(schema, 40)}; this version checks {SCHEMA}",
            "write it again from the rollouts with `blade diagnose RUN -o DIR`",
            "old-schema",
        )
    if schema != SCHEMA:
        return _prose(data, text, world, read)
    return (*_claims(data, text, world), *_evidence(data, world)) if world is not None else ()


def _claims(data: dict[str, Any], text: str, world: World) -> Iterator[Finding]:
    """Every claim, its query asked again."""
    entries = data.get("claims")
    claims = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    claims = [claim for claim in claims if isinstance(claim.get("query"), str)]
    answers = Answers(world.ground, (claim["query"] for claim in claims))
    starts = {hit[1]: hit.start() for hit in re.finditer(r'"id"\s*:\s*"(c\d+)"', text)}
    for claim in claims:
        line = text.count("\n", 0, starts.get(str(claim.get("id")), 0)) + 1
        yield _claim(claim, line, answers)


def _claim(claim: dict[str, Any], line: int, answers: Answers) -> Finding:
    from blade.report.claims import agrees

    query, told, printed = claim["query"], claim.get("value"), str(claim.get("text", ""))
    place = (line, (line,), f"claims {claim.get('id')}: {printed}", printed)
    try:
        value = single(query, answers)
    except BladeError as error:
        return Finding(UNVERIFIABLE, "citation", *place, "", in_words(query), error.message, query)
    is_number = isinstance(value, int | float) and isinstance(told, int | float)
    same = abs(value - told) <= 1e-9 * max(1.0, abs(value)) if is_number else value == told
    holds = same and (value is None or agrees(printed, value))
    verdict = SUPPORTED if holds else CONTRADICTED
    why = "" if holds else "the query gives another value"
    return Finding(verdict, "citation", *place, str(value)[:200], f"{in_words(query)} = {value}"[:300], why, query)


def _evidence(data: dict[str, Any], world: World) -> Iterator[Finding]:
    """Every quotation with its address, looked up there."""
    texts = RowTexts(world.rows)
    for path, entry in _objects(data, ""):
        quote, task, repeat, step = (entry.get(name) for name in ("quote", "task", "repeat", "step"))
        if not isinstance(quote, str) or not isinstance(task, str) or not isinstance(repeat, int):
            continue
        field = entry.get("field")
        steps = (step,) if isinstance(step, int) else ()
        address = Address(task, repeat, steps, field if isinstance(field, str) else None)
        runs = (entry["run"],) if entry.get("run") in world.rows.runs else world.rows.runs
        is_there = texts.at(quote, address, runs) is not None
        yield Finding(
            SUPPORTED if is_there else CONTRADICTED, "quotation", 1, (1,), path, hostile.line(quote, 300), "",
            f"a quotation of {address}", "" if is_there else f"it does not stand in {address}",
            tasks=(f"{task}/{repeat}",),
        )  # fmt: skip


def _objects(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members if depth < _DEEPEST else ():
        name = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}" if path else str(key)
        yield from _objects(member, name, depth + 1)


def _prose(data: Any, text: str, world: World | None, read: Reader) -> tuple[Finding, ...]:
    """The strings that are prose, read as one text; each finding with its path and the line in the file."""
    strings = [
        (f"{path}.{key}" if path else str(key), string)
        for path, entry in _objects({"": data} if not isinstance(data, dict) else data, "")
        for key, member in entry.items()
        for string in ([member] if isinstance(member, str) else member if isinstance(member, list) else ())
        if isinstance(string, str) and len(string.split(maxsplit=WORDS)) >= WORDS
    ]
    parts, places, start = [], list[tuple[str, int]](), 0
    for path, string in strings:
        encoded = json.dumps(string, ensure_ascii=False)[1:-1]
        start = max(start, text.find(encoded, start))
        lines = string.replace("\r\n", "\n").split("\n")
        parts.append("\n".join(lines))
        places += [(path, text.count("\n", 0, start) + 1)] * (len(lines) + 1)
    found = read("\n\n".join(parts), world)
    moved = []
    for finding in found:
        path, line = places[min(finding.line, len(places)) - 1]
        moved.append(replace(finding, line=line, lines=(line,), text=f"{path}: {finding.text}"))
    return tuple(moved)

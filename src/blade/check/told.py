"""Put the outcome of a check into words, into JSON, and into a copy of the report with remarks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from blade import hostile
from blade.check.made import parsed
from blade.check.unread import CELL, NAMING, SENTENCE, Unread
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from blade.prose.document import document, plain

SCHEMA = "blade.check/1"
MOST = 40  # problems told on the screen
VERDICTS = (SUPPORTED, CONTRADICTED, UNVERIFIABLE)


def counts(found: Sequence[Assertion]) -> dict[str, int]:
    seen = Counter(one.verdict for one in found)
    return {verdict: seen[verdict] for verdict in VERDICTS}


def named(found: Sequence[Assertion]) -> int:
    """How many of the supported claims say no more than that a task, a rollout or a step is there."""
    return sum(one.verdict == SUPPORTED and one.kind in NAMING for one in found)


def problems(found: Sequence[Assertion]) -> list[Assertion]:
    """All that is not supported, contradictions first, each kind in the order of the report."""
    return sorted(
        (one for one in found if one.verdict != SUPPORTED), key=lambda one: one.verdict != CONTRADICTED
    )


def placed(text: str, found: Sequence[Assertion]) -> tuple[Assertion, ...]:
    """The claims with the very line of each problem, where its sentence goes over several."""
    if parsed(text) is not None or all(one.line == one.last_line for one in problems(found)):
        return tuple(found)
    lines = _unix(text).split("\n")
    return tuple(one if one.verdict == SUPPORTED else _placed(one, lines) for one in found)


def _placed(one: Assertion, lines: Sequence[str]) -> Assertion:
    if one.start < 0 or one.line == one.last_line or not one.found:
        return one
    before = one.text[: one.start].count(one.found)  # times that it stands there before
    for at in range(one.line, min(one.last_line, len(lines)) + 1):
        before -= plain(lines[at - 1]).count(one.found)
        if before < 0:
            return replace(one, line=at, last_line=at)
    return one


def as_json(found: Sequence[Assertion], left: Sequence[Unread] = ()) -> str:
    """The wire format of a check."""
    from blade.report.json_v1 import escaped

    wire: dict[str, Any] = {
        "schema": SCHEMA,
        "counts": {**counts(found), "named": named(found), "unread": len(left)},
        "problems": [_problem(one) for one in problems(found)],
        "unread": [{"line": one.line, "kind": one.kind, "text": one.text} for one in left],
    }
    return escaped(json.dumps(wire, ensure_ascii=False, indent=2)) + "\n"


def _problem(one: Assertion) -> dict[str, Any]:
    return {
        "verdict": one.verdict,
        "kind": one.kind,
        "line": one.line,
        "lines": [one.line, one.last_line],
        "text": one.text,
        "found": one.found,
        "expected": one.expected,
        "why": one.why,
    }


def as_text(
    found: Sequence[Assertion],
    name: str,
    runs: Sequence[str],
    left: Sequence[Unread] = (),
    note: str = "",
    is_all: bool = False,
) -> str:
    """The counts and the problems, for a terminal; `left` is what was not read."""
    seen = counts(found)
    exist = f" ({named(found):,} only that an id or a step exists)" if named(found) else ""
    against = f"against {', '.join(hostile.line(run, 40) for run in runs[:4])}" if runs else "against itself"
    lines = [
        f"BLADE check  {hostile.line(name, 60)} {against}",
        f"{len(found):,} claims read: {seen[SUPPORTED]:,} supported{exist}, "
        f"{seen[CONTRADICTED]:,} contradicted, {seen[UNVERIFIABLE]:,} unverifiable",
        *([note] if note else ()),
    ]
    shown = problems(found) if is_all else problems(found)[:MOST]
    for one in shown:
        lines += ["", *_lines(one)]
    more = len(problems(found)) - len(shown)
    if more:
        lines += ["", f"{more:,} more with --all or --json"]
    if not found:
        lines.append("Nothing in this report could be read as a claim.")
    lines += _left(left, is_all)
    return "\n".join(lines) + "\n"


def _left(left: Sequence[Unread], is_all: bool) -> list[str]:
    """What was not read: how much and on which lines, or all of it."""
    if not left:
        return []
    n = Counter(one.kind for one in left)
    parts = [f"{n[kind]:,} {kind}{'s' if n[kind] > 1 else ''}" for kind in (SENTENCE, CELL) if n[kind]]
    if is_all:
        told = [f"  line {one.line}  {hostile.line(one.text, 120)}" for one in left]
        return ["", f"Not read: {' and '.join(parts)}", *told]
    at = list(dict.fromkeys(one.line for one in left))
    where = ", ".join(map(str, at[:12])) + (", …" if len(at) > 12 else "")
    return ["", f"Not read: {' and '.join(parts)}, line {where} (--all shows them)"]


def _lines(one: Assertion) -> list[str]:
    place = f"line {one.line}" if one.line == one.last_line else f"lines {one.line}-{one.last_line}"
    lines = [f"{one.verdict}  {place}  {one.kind}: {hostile.line(one.found, 90)}"]
    if one.expected is not None:
        lines.append(f"  data says  {hostile.line(one.expected, 100)}")
    if one.why:
        lines.append(f"  because    {hostile.line(one.why, 160)}")
    if one.text and one.text != one.found:
        lines.append(f"  in         {hostile.line(one.text, 120)}")
    return lines


def annotated(text: str, found: Sequence[Assertion]) -> str:
    """The report with a quoted remark after each paragraph, table or quotation that has a problem."""
    text = _unix(text)
    lines = text.split("\n")
    ends = _ends(text, len(lines))
    remarks: dict[int, list[str]] = {}
    for one in problems(found):
        remarks.setdefault(ends.get(one.last_line, one.last_line), []).append(_remark(one))
    made = []
    for at, line in enumerate(lines, 1):
        made.append(line)
        if at in remarks:
            made += ["", *dict.fromkeys(remarks[at]), ""]
    return "\n".join(made)


def _unix(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _ends(text: str, n: int) -> dict[int, int]:
    """For each line of a table the last one of it: a remark inside would tear it apart."""
    found: dict[int, int] = {}
    for table in document(text).tables:
        last = max([table.line, *(row.line for row in table.rows)])
        found |= dict.fromkeys(range(table.line, min(last, n) + 1), last)
    return found


def _remark(one: Assertion) -> str:
    said = f"> **{one.verdict}**, line {one.line}: {hostile.markdown_inline(hostile.line(one.found, 200))}"
    meant = (
        f"; the data says {hostile.markdown_inline(hostile.line(one.expected, 200))}" if one.expected else ""
    )
    why = f" ({hostile.markdown_inline(hostile.line(one.why, 300))})" if one.why else ""
    return f"{said}{meant}{why}\n>"

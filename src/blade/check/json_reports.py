"""Check reports in JSON: the claims and quotations of a report.json, and the sentences of any other JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from blade import hostile
from blade.check.quotations import RowTexts, holds, squeezed
from blade.check.report_ground import World
from blade.check.row_ids import Address
from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Finding
from blade.model.measurements import PLACEHOLDER
from blade.query.citations import in_words
from blade.query.comments import escape_comment
from blade.query.query_ground import value as single
from blade.query.query_process import Answers
from blade.report.blocks import agrees

SCHEMA = "blade.report/2"
WORDS = 5  # from which a string is prose, not a value
Reader = Callable[[str, World | None], tuple[Finding, ...]]


def json_findings(text: str, world: World | None, read: Reader) -> tuple[Finding, ...] | None:
    """The findings of a JSON text; None if it is no JSON."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema == SCHEMA:
        return (*_claims(data, text, world), *_evidence(data, world)) if world is not None else ()
    if isinstance(schema, str) and schema.startswith("blade.report/"):
        message = f"this file has the schema {hostile.line(schema, 40)}; this version checks {SCHEMA}"
        raise UsageError(message, "write it again with `blade diagnose RUN -o DIR`", "old-schema")
    return _prose(data, text, world, read)


def _claims(data: dict[str, Any], text: str, world: World) -> Iterator[Finding]:
    entries = data.get("claims")
    claims = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    claims = [claim for claim in claims if isinstance(claim.get("query"), str)]
    answers = Answers(world.ground, (claim["query"] for claim in claims))
    lines = [re.search(r'"id"\s*:\s*"(c\d+)"', line) for line in text.split("\n")]
    line_of = {hit[1]: number for number, hit in enumerate(lines, 1) if hit}
    return (_claim(claim, line_of.get(str(claim.get("id")), 1), answers) for claim in claims)


def _claim(claim: dict[str, Any], line: int, answers: Answers) -> Finding:
    query, stated, printed = claim["query"], claim.get("value"), str(claim.get("text", ""))
    place = (line, (line,), f"claims {claim.get('id')}: {printed}", printed)
    try:
        value = single(query, answers)
    except BladeError as error:
        return Finding(UNVERIFIABLE, "citation", *place, "", in_words(query), error.message, query)
    is_number = isinstance(value, int | float) and isinstance(stated, int | float)
    same = abs(value - stated) <= 1e-9 * max(1.0, abs(value)) if is_number else value == stated
    same = same and (value is None or agrees(printed, value))
    if PLACEHOLDER.search(f"{stated} {query}"):  # what stands beside what was taken out is compared
        same = same or (isinstance(value, str) and isinstance(stated, str) and holds(squeezed(value), stated))
    reading, why = f"{in_words(query)} = {value}"[:300], "" if same else "the query gives another value"
    verdict = SUPPORTED if same else UNVERIFIABLE if PLACEHOLDER.search(query) else CONTRADICTED
    return Finding(verdict, "citation", *place, str(value)[:200], reading, why, query)


def _evidence(data: dict[str, Any], world: World) -> Iterator[Finding]:
    texts = RowTexts(world.rows)
    for path, entry in _members(data, ""):
        get = entry.get if isinstance(entry, dict) else {}.get
        quote, task, repeat, step, field, run = map(get, ("quote", "task", "repeat", "step", "field", "run"))
        if not isinstance(quote, str) or not isinstance(task, str) or not isinstance(repeat, int):
            continue
        steps = (step,) if isinstance(step, int) else ()
        address = Address(task, repeat, steps, field if isinstance(field, str) else None)
        is_there = texts.at(quote, address, (run,) if run in world.rows.runs else world.rows.runs) is not None
        place = (1, (1,), path, hostile.line(quote, 300), "", f"a quotation of {address}")
        why = "" if is_there else f"it does not stand in {address}"
        verdict = SUPPORTED if is_there else CONTRADICTED
        yield Finding(verdict, "quotation", *place, why, tasks=(f"{task}/{repeat}",))


def _members(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A value and all that is in it, each with its path."""
    yield path, value
    named = {f"{path}.{key}".lstrip("."): v for key, v in value.items()} if isinstance(value, dict) else {}
    named |= {f"{path}[{key}]": v for key, v in enumerate(value)} if isinstance(value, list) else {}
    for name, member in named.items() if depth < 60 else ():
        yield from _members(member, name, depth + 1)


def _prose(data: Any, text: str, world: World | None, read: Reader) -> tuple[Finding, ...]:
    """The strings that are prose, read as one text; each finding with its path and the line in the file."""
    parts, places, start = list[str](), list[tuple[str, int]](), 0
    for path, string in _members(data, ""):
        if isinstance(string, str) and len(string.split(maxsplit=WORDS)) >= WORDS:
            start = max(start, text.find(json.dumps(string, ensure_ascii=False)[1:-1], start))
            parts.append(string.replace("\r\n", "\n").replace("\r", "\n"))
            places += [(path, text.count("\n", 0, start) + 1)] * (parts[-1].count("\n") + 2)
    moved = []
    for finding in read("\n\n".join(parts), world):
        path, line = places[min(finding.line, len(places)) - 1]
        moved.append(replace(finding, line=line, lines=(line,), text=f"{path}: {finding.text}"))
    return tuple(moved)


def with_claims(text: str, path: Path) -> str:
    """Add the queries of its claims to the text of the page at `path`, where they are beside it."""
    is_marked = re.search(r"<!--c\d+-->", text) is not None  # as a report of ours leaves behind a number
    is_page = path.suffix == ".md" and is_marked and "<!--blade claims" not in text
    if not is_page or not path.with_suffix(".json").is_file():
        return text
    try:
        claims = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["claims"]
        lines = [f"{claim['id']} {escape_comment(claim['query'])}" for claim in claims]
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return text  # no report of ours
    return "\n".join([text.rstrip("\n"), "", "<!--blade claims", *lines, "-->", ""])


def read_report(report: str, may_read: Callable[[str], bool] = lambda path: True) -> str:
    """The text of a report file, or of standard input, with its claims where their file may be read."""
    path = Path(report)
    if path.is_dir():
        raise NothingToRead(f"{report} is a folder", "name the report in it, such as report.md", "nothing-to-read")
    try:
        raw = sys.stdin.buffer.read() if report == "-" else path.read_bytes()
    except FileNotFoundError as error:
        raise NothingToRead(f"{report} does not exist", "check the path", "no-such-path") from error
    except OSError as error:
        raise _unreadable(f"cannot read {report}: {error.strerror}", "check its permissions") from error
    if not raw.strip():
        raise NothingToRead(f"{report} is empty", "give a report in Markdown or JSON", "nothing-to-read")
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(f"{report} is not text", "give a report in Markdown or JSON, in UTF-8") from error
    if text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        raise _unreadable(f"{report} is HTML, which is not read", "check report.md or report.json beside it")
    if path.suffix == ".json":
        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(f"{report} is not complete JSON", "it may be cut; write it again") from error
    return with_claims(text, path) if may_read(str(path.with_suffix(".json"))) else text


def _unreadable(message: str, hint: str) -> Unreadable:
    return Unreadable(message, hint, "unreadable-file")

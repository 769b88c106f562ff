"""Turn a report into how it was made, where it says so: its command, and the names of its runs."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import msgspec

from blade.prose.document import document

SCHEMA = "blade.report/1"
_FLAGS = frozenset("--series --quick".split())
_VALUES = frozenset("--baseline --pass-threshold --margin --by".split())


class Made(msgspec.Struct, frozen=True):
    """What a report says of its own making; nothing where it says nothing."""

    is_comparison: bool = False
    runs: tuple[str, ...] = ()
    command: str = ""
    version: str = ""
    data: Any = None  # the parsed JSON, where the report is JSON


def made(text: str) -> Made:
    """How a Markdown or JSON report was made."""
    data = parsed(text)
    if data is not None:
        return _of_json(data)
    told = document(text)
    cells = [row.cells for table in told.tables for row in table.rows if len(row.cells) > 1]
    command = next((row[1].strip("`") for row in cells if row[0] == "Command"), "")
    names = next((row[1:] for row in cells if row[0] == "Run"), ())
    is_comparison = told.title.endswith("BLADE Comparison Report")
    version = next((row[1].strip("`") for row in cells if row[0] == "BLADE"), "")
    return Made(is_comparison, tuple(name.strip("`") for name in names), command, version)


def parsed(text: str) -> Any:
    """The JSON that a text is; None if it is none."""
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _of_json(data: Any) -> Made:
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return Made(data=data)
    runs = [run.get("name") for run in data.get("runs") or () if isinstance(run, dict)]
    by = data.get("made_by")
    command = str(by.get("command", "")) if isinstance(by, dict) else ""
    version = str(by.get("blade", "")) if isinstance(by, dict) else ""
    is_comparison = bool(re.match(r"blade\s+compare\b", command))
    return Made(is_comparison, tuple(str(name) for name in runs), command, version, data)


def options(command: str) -> dict[str, str]:
    """The options of a recorded command that change what a report says; nothing else of it is taken."""
    try:
        words = shlex.split(command)
    except ValueError:
        return {}
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _FLAGS:
            found[name] = ""
        elif name in _VALUES and (equals or at + 1 < len(words)):
            found[name] = value if equals else words[at + 1]
    return found

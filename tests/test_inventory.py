"""Nothing a user has is lost: every command, option, exit code, error, file, wire key and name of the API stays listed.

`tests/inventory.txt` is the list. A line that goes needs a line in the changelog that says why; `BLADE_GOLDEN=write` rewrites it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import blade
from blade import errors
from blade.agent.mcp.server import TOOLS
from blade.cli.main import cli
from blade.query import measures, select
from tests.conftest import ROOT

LIST = ROOT / "tests" / "inventory.txt"
SCHEMAS = ("report/report.schema.json", "check/check.schema.json")
_FILE = re.compile(r"`([\w{}<>*.-]+\.(?:md|json|jsonl|html|toml|csv|txt|yaml|parquet|svg|tsv|db|log))`")


def commands(command: click.Command, path: str) -> Iterator[str]:
    """The command with its arguments and options, and those below it."""
    yield f"command {path}"
    for parameter in command.params:
        names = parameter.opts if isinstance(parameter, click.Option) else [(parameter.name or "").upper()]
        yield from (f"option {path} {name}" for name in (*names, *parameter.secondary_opts))
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from commands(found, f"{path} {name}")


def keys(part: Any, path: str, definitions: Any, seen: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of all members that a schema describes."""
    if isinstance(part, list):
        for entry in part:
            yield from keys(entry, path, definitions, seen)
    if not isinstance(part, dict):
        return
    name = str(part.get("$ref", "")).rpartition("/")[2]
    if name and name not in seen:
        yield from keys(definitions[name], path, definitions, (*seen, name))
    for member, inner in part.get("properties", {}).items():
        yield f"key {path}.{member}"
        yield from keys(inner, f"{path}.{member}", definitions, seen)
    for word in ("items", "anyOf", "allOf", "oneOf", "additionalProperties", "prefixItems"):
        yield from keys(part.get(word), path, definitions, seen)


def inventory() -> list[str]:
    """Everything that a user can name."""
    found = set(commands(cli, "blade"))
    found |= {f"exit {value}" for name, value in vars(errors).items() if name.startswith("EXIT_")}
    found |= {f"error {slug}" for slug in re.findall(r"^#+ `?([a-z][a-z0-9-]+)`?$", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)}
    for name in SCHEMAS:
        content = json.loads((ROOT / "src/blade" / name).read_text())
        found |= set(keys(content, Path(name).name.partition(".")[0], content.get("$defs", content.get("definitions", {}))))
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        if page.name != "map.md":
            found |= {f"file {name}" for name in _FILE.findall(page.read_text())}
    for source in (ROOT / "src").rglob("*.py"):
        found |= {f"variable {name}" for name in re.findall(r"\bBLADE_[A-Z_]+\b", source.read_text())}
    found |= {f"api {name}" for name in blade.__all__} | {f"tool {name}" for name in TOOLS}
    found |= {f"table {name}" for name in select.TABLES} | {f"measure {name}" for name in measures.NAMES}
    return sorted(found)


def test_nothing_that_a_user_has_is_lost() -> None:
    present = inventory()
    if os.environ.get("BLADE_GOLDEN") == "write":
        LIST.write_text("\n".join(present) + "\n")
    listed = LIST.read_text().splitlines()
    assert [line for line in listed if line not in present] == [], "lost: strike them from the list with a changelog line that says why"
    assert [line for line in present if line not in listed] == [], "new: add them to the list"

"""`blade detectors`: print the questions of the ladder, and how right each is where the truth is known."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.diagnose.ladder import Rule

COLUMNS = 100
INDENT = 12


@click.command(short_help="List the questions of a diagnosis: what proves each, and how right it is.")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def detectors(name: str | None, as_json: bool) -> None:
    """List the questions that a diagnosis asks, in order, or print one in full.

    Every lost point goes to the first question that proves itself for its row. NAME is a question such as
    verifier.
    """
    from blade.diagnose.ladder import RULES

    entries = [_entry(rule) for rule in RULES]
    if name is None:
        click.echo(json.dumps({"rungs": entries}, indent=2) if as_json else "\n\n".join(map(_text, entries)))
        return
    chosen = _chosen(name, entries)
    click.echo(json.dumps(chosen, indent=2) if as_json else _text(chosen))


def _entry(rule: Rule) -> dict[str, Any]:
    import msgspec

    from blade.pipeline.report_pages import card

    measured = (card() or {}).get("rungs", {})
    return {**msgspec.structs.asdict(rule), "accuracy": measured.get(rule.name)}


def _chosen(name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    by_name = {entry["name"]: entry for entry in entries}
    if name.lower() in by_name:
        return by_name[name.lower()]
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), by_name, 3, 0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "`blade detectors` lists them"
    raise UsageError(f"there is no question named {name}", hint, "no-such-detector")


def _text(entry: Mapping[str, Any]) -> str:
    parts = [
        ("Question", entry["question"]),
        ("Proved by", entry["proof"]),
        ("Refuted by", entry["refuted"]),
        ("Label", entry["label"]),
        ("Accuracy", _accuracy(entry["accuracy"])),
    ]
    lines = [entry["name"]]
    for name, text in parts:
        lines += textwrap.wrap(
            text, COLUMNS, initial_indent=f"  {name:<{INDENT}}", subsequent_indent=" " * (INDENT + 2)
        )
    return "\n".join(lines)


def _accuracy(measured: Mapping[str, int] | None) -> str:
    """Say how many of its labels were right on runs whose answer is known."""
    if not measured or not measured["n"]:
        return "not measured"
    right, n = measured["right"], measured["n"]
    return f"{right:,} of {n:,} labels right ({right / n:.0%}), on runs with a known answer"

"""`blade detectors`: print the questions of the ladder, and how right each is where the truth is known."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

import click

from blade.cli.options import json_option
from blade.errors import UsageError

COLUMNS = 100
INDENT = 12


@click.command(short_help="List the questions of a diagnosis: what proves each, and how right it is.")
@click.argument("name", metavar="[NAME]", required=False)
@json_option()
def detectors(name: str | None, as_json: bool) -> None:
    """List the questions that a diagnosis asks, in order, or print one in full.

    Every lost point goes to the first question that proves itself for its row. NAME is a question such as
    verifier.
    """
    import msgspec

    from blade.diagnose.ladder import RULES
    from blade.pipeline.report_pages import card

    measured = (card() or {}).get("rungs", {})
    entries = [{**msgspec.structs.asdict(rule), "accuracy": measured.get(rule.name)} for rule in RULES]
    if name is None:
        click.echo(json.dumps({"rungs": entries}, indent=2) if as_json else "\n\n".join(map(_text, entries)))
        return
    by_name = {entry["name"]: entry for entry in entries}
    if name.lower() not in by_name:
        from difflib import get_close_matches

        near = get_close_matches(name.lower(), by_name, 3, 0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "`blade detectors` lists them"
        raise UsageError(f"there is no question named {name}", hint, "no-such-detector")
    chosen = by_name[name.lower()]
    click.echo(json.dumps(chosen, indent=2) if as_json else _text(chosen))


def _text(entry: Mapping[str, Any]) -> str:
    counts = entry["accuracy"]
    accuracy = "not measured"  # of labels on runs whose answer is known
    if counts and counts["n"]:
        right, n = counts["right"], counts["n"]
        accuracy = f"{right:,} of {n:,} labels right ({right / n:.0%}), on runs with a known answer"
    lines = [entry["name"]]
    for name, text in (
        ("Question", entry["question"]), ("Proved by", entry["proof"]), ("Refuted by", entry["refuted"]),
        ("Label", entry["label"]), ("Accuracy", accuracy),
    ):  # fmt: skip
        head, indent = f"  {name:<{INDENT}}", " " * (INDENT + 2)
        lines += textwrap.wrap(text, COLUMNS, initial_indent=head, subsequent_indent=indent)
    return "\n".join(lines)

"""`blade init`: draft a blade.toml from what the rows show."""

from __future__ import annotations

import json

import click

from blade.cli.options import json_option
from blade.cli.output import Progress


@click.command(short_help="Draft a blade.toml from the rows of a run.")
@click.argument("run", metavar="RUN")
@json_option("Print what was inferred as JSON.")
def init(run: str, as_json: bool) -> None:
    """Draft the benchmark facts of RUN: blade init RUN > blade.toml.

    Comments give the support for each inferred fact; confirm or delete every line.
    """
    from blade import pipeline

    with Progress() as progress:
        loaded = pipeline.load([run], progress)
        drafts = pipeline.drafts(loaded)
        if len(loaded) > 1 and not as_json:
            progress.notice(f"{run} holds {len(loaded)} runs; this is drafted from {loaded[0].name}")
    click.echo(json.dumps([draft.facts for draft in drafts], indent=2) if as_json else drafts[0].text, nl=as_json)

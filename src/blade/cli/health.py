"""`blade health`: check whether the score can be trusted: coverage, infrastructure, verifier, data."""

from __future__ import annotations

import shlex

import click

from blade.cli.options import THRESHOLD, json_option, runs_argument, threshold_words
from blade.cli.output import Progress


@click.command(short_help="Check whether the score can be trusted.")
@runs_argument()
@THRESHOLD
@json_option()
def health(runs: tuple[str, ...], pass_threshold: float | None, as_json: bool) -> None:
    """Check the evaluation rather than the model: alarms, warnings and notes, each with the rows concerned.

    An alarm means that the score cannot be used as it stands. Counts from the columns follow: missing rows,
    duplicates, rewards, empty outputs.

    RUN is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a folder, a quoted glob of shards,
    NAME=PATH, or - for standard input. The exit code is 0 whatever is found.
    """
    from blade import pipeline
    from blade.report import first_page

    with Progress() as progress:
        loaded = pipeline.load(runs, progress)
        command = shlex.join(["blade", "health", *runs, *threshold_words(pass_threshold)])
        report = pipeline.diagnose(loaded, command, pass_threshold, progress)
    click.echo(first_page.health_json(report) if as_json else first_page.health(report), nl=False)

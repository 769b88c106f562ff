"""`blade health`: check whether the score can be trusted: coverage, infrastructure, verifier, data."""

from __future__ import annotations

import shlex

import click

from blade.cli.diagnose import refuse_nothing, refuse_threshold


@click.command(short_help="Check whether the score can be trusted.")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option("--pass-threshold", metavar="X", type=float, help="A row passes at reward >= X (default: 1).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def health(runs: tuple[str, ...], pass_threshold: float | None, as_json: bool) -> None:
    """Check the evaluation rather than the model: alarms, warnings and notes, each with the rows concerned.

    An alarm means that the score cannot be used as it stands. Counts from the columns follow: missing rows,
    duplicates, rewards, empty outputs.

    RUN is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a folder, a quoted glob of shards,
    NAME=PATH, or - for standard input. The exit code is 0 whatever is found.
    """
    from blade import pipeline
    from blade.cli.output import Progress
    from blade.report import first_page

    refuse_nothing(runs)
    refuse_threshold(pass_threshold)
    options = ["--pass-threshold", repr(pass_threshold)] if pass_threshold is not None else []
    with Progress() as progress:
        loaded = pipeline.load(runs, progress)
        command = shlex.join(["blade", "health", *runs, *options])
        report = pipeline.diagnose(loaded, command, pass_threshold, progress)
    click.echo(first_page.health_json(report) if as_json else first_page.health(report), nl=False)

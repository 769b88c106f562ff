"""`blade diagnose`: read runs, measure them, print the summary and write the report."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from blade.errors import UsageError


@click.command(short_help="Which tasks failed, in which slices, and is the evaluation sound.")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option(
    "-o", "--output", metavar="DIR", help="Write report.md, report.html, report.json, metrics.json, figures/."
)
@click.option("--pass-threshold", metavar="X", type=float, help="A row passes at reward >= X (default: 1).")
@click.option("--notes", metavar="FILE", help="Notes for the inventory (default: notes.md beside the run).")
@click.option("--json", "as_json", is_flag=True, help="Print report.json instead of the summary.")
@click.option("--force", is_flag=True, help="Write into a folder that holds other files.")
def diagnose(
    runs: tuple[str, ...],
    output: str | None,
    pass_threshold: float | None,
    notes: str | None,
    as_json: bool,
    force: bool,
) -> None:
    """Diagnose runs: count, rate and bucket their tasks, and check the evaluation itself.

    RUN is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a folder, a quoted glob of shards,
    NAME=PATH, or - for standard input.
    """
    refuse_nothing(runs)
    refuse_threshold(pass_threshold)
    command = shlex.join(["blade", "diagnose", *runs, *_options(pass_threshold)])
    print_report(runs, command, output, pass_threshold, notes, as_json, force)


def print_report(
    runs: tuple[str, ...],
    command: str,
    output: str | None,
    threshold: float | None,
    notes: str | None,
    as_json: bool,
    force: bool,
) -> None:
    """The whole job: load, diagnose, print, write."""
    from blade import pipeline
    from blade.cli.output import cannot_write, refuse_foreign, wrote
    from blade.cli.watch import Progress
    from blade.report import text

    folder = Path(output) if output else None
    if folder is not None:
        refuse_foreign(folder, force)
    with Progress() as progress:
        loaded = pipeline.load(runs, progress, Path(notes) if notes else None)
        if folder is None and not as_json:
            click.echo(text.render(pipeline.summarise(loaded, command, threshold)), nl=False)
            return
        progress.start("measuring", 0)
        report = pipeline.with_digests(pipeline.diagnose(loaded, command, threshold))
    if as_json:
        from blade.report import json_v1

        click.echo(json_v1.render(report), nl=False)
    else:
        click.echo(text.render(report), nl=False)
    if folder is not None:
        from blade.report import write

        try:
            wrote(write(report, folder), quiet=as_json)
        except OSError as error:
            raise cannot_write(folder, error) from error


def refuse_nothing(runs: tuple[str, ...]) -> None:
    if not runs:
        raise UsageError("no RUN was given", "name a rollouts file or a folder, or try `blade demo`", "usage")


def refuse_threshold(threshold: float | None) -> None:
    if threshold is not None and not abs(threshold) < float("inf"):
        raise UsageError(
            f"--pass-threshold {threshold} is no number to pass at", "give a finite number", "bad-threshold"
        )


def _options(threshold: float | None) -> list[str]:
    return ["--pass-threshold", repr(threshold)] if threshold is not None else []

"""`blade diagnose`: read runs, measure them, print the summary and write the report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade.cli import options
from blade.cli.output import Progress, put, refuse_foreign, wrote
from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.pipeline.trace_reading import Clock


@click.command(short_help="Which tasks failed, why, and what to fix first.")
@options.runs_argument()
@options.output_option("Write report.md, report.html, report.json, metrics.json, figures/.")
@click.option("--baseline", metavar="NAME", help="The run to compare the others with (default: first).")
@options.THRESHOLD
@options.MAPPING
@click.option("--notes", metavar="FILE", help="Notes for the inventory (default: notes.md beside the run).")
@options.REDACT
@options.json_option("Print report.json instead of the summary.")
@click.option("--quick", is_flag=True, help="Count and rate only: no trace is read, nothing is written.")
@options.TIMINGS
@options.force_option()
def diagnose(
    runs: tuple[str, ...], output: str | None, baseline: str | None, pass_threshold: float | None, fields: str | None,
    notes: str | None, redact: bool, as_json: bool, quick: bool, timings: bool, force: bool,
) -> None:  # fmt: skip
    """Diagnose runs: which tasks failed, why, and what to fix first.

    RUN is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a folder, a quoted glob of shards,
    NAME=PATH, or - for standard input.
    """
    if quick and (output or as_json):
        raise UsageError("--quick only prints the counts", "leave out -o and --json, or --quick", "usage")
    from blade import pipeline
    from blade.formats.field_mapping import mapping_of
    from blade.pipeline.session import depends_on
    from blade.pipeline.trace_reading import Clock
    from blade.report import first_page, json_text, write
    from blade.tables import cache

    mapped, based = ["--map", fields] if fields else [], ["--baseline", baseline] if baseline else []
    command = shlex.join(["blade", "diagnose", *runs, *mapped, *options.threshold_words(pass_threshold), *based])
    folder, clock = Path(output) if output else None, Clock()
    if folder is not None:
        refuse_foreign(folder, force)
    with Progress() as progress:
        loaded = pipeline.load(runs, progress, Path(notes) if notes else None, mapping_of(fields) if fields else None)
        if quick:
            click.echo(first_page.render(pipeline.summarise(loaded, command, pass_threshold)), nl=False)
            click.echo("Not read  the trajectories: leave --quick out to learn why tasks fail")
            return
        key = None if folder or as_json or timings or redact else depends_on(loaded, command)
        source = Path(loaded[0].sources[0].path)
        page = cache.kept(source, "summary", key) if key else None
        if page is not None:
            click.echo(first_page.painted(page.decode("utf-8", "replace")), nl=False)
            return
        report = pipeline.diagnose(loaded, command, pass_threshold, progress, clock, baseline)
        if folder is not None or as_json:
            report = pipeline.with_digests(report)
        if redact:
            from blade.cli.sanitize import redacted

            report = redacted(report, loaded)
    written = put(lambda: write(report, folder, force=force), folder) if folder else []
    if as_json:
        click.echo(json_text(report), nl=False)
    else:
        text = first_page.render(report)
        click.echo(first_page.painted(text), nl=False)
        if key:
            cache.keep(source, "summary", key, text.encode("utf-8", "replace"))
    if timings:
        print_times(clock)
    wrote(written, quiet=as_json)


def print_times(clock: Clock) -> None:
    """Print how long each stage took, the longest first."""
    for stage, seconds in sorted(clock.seconds.items(), key=lambda entry: -entry[1]):
        click.echo(f"{seconds:9.2f} s  {stage}", err=True)

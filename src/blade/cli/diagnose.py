"""`blade diagnose`: read runs, measure them, print the summary and write the report."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline.trace_reading import Clock


@click.command(short_help="Which tasks failed, why, and what to fix first.")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option(
    "-o", "--output", metavar="DIR", help="Write report.md, report.html, report.json, metrics.json, figures/."
)
@click.option("--baseline", metavar="NAME", help="The run to compare the others with (default: first).")
@click.option("--pass-threshold", metavar="X", type=float, help="A row passes at reward >= X (default: 1).")
@click.option(
    "--map", "fields", metavar="NAME=FIELD,...", help="Name the fields of rows that are not NeMo Gym's."
)
@click.option("--notes", metavar="FILE", help="Notes for the inventory (default: notes.md beside the run).")
@click.option("--redact", is_flag=True, help="Replace what must not be shared by placeholders.")
@click.option("--json", "as_json", is_flag=True, help="Print report.json instead of the summary.")
@click.option("--quick", is_flag=True, help="Count and rate only: no trace is read, nothing is written.")
@click.option("--timings", is_flag=True, help="Tell on stderr how long each stage took.")
@click.option("--force", is_flag=True, help="Write into a folder that holds other files.")
def diagnose(
    runs: tuple[str, ...],
    output: str | None,
    baseline: str | None,
    pass_threshold: float | None,
    fields: str | None,
    notes: str | None,
    redact: bool,
    as_json: bool,
    quick: bool,
    timings: bool,
    force: bool,
) -> None:
    """Diagnose runs: which tasks failed, why, and what to fix first.

    RUN is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a folder, a quoted glob of shards,
    NAME=PATH, or - for standard input.
    """
    refuse_nothing(runs)
    refuse_threshold(pass_threshold)
    if quick and (output or as_json):
        raise UsageError("--quick only prints the counts", "leave out -o and --json, or --quick", "usage")
    mapped = ["--map", fields] if fields else []
    command = shlex.join(["blade", "diagnose", *runs, *mapped, *_options(pass_threshold, baseline)])
    print_report(
        runs, command, output, pass_threshold, notes, as_json, force, quick, timings, baseline, redact, fields
    )


def print_report(
    runs: tuple[str, ...],
    command: str,
    output: str | None,
    threshold: float | None,
    notes: str | None,
    as_json: bool,
    force: bool,
    quick: bool = False,
    timings: bool = False,
    baseline: str | None = None,
    redact: bool = False,
    fields: str | None = None,
) -> None:
    """The whole job: load, diagnose, write, print."""
    from blade import pipeline
    from blade.cli.output import Progress, refuse_foreign, wrote
    from blade.formats.field_mapping import mapping_of
    from blade.pipeline.session import depends_on
    from blade.pipeline.trace_reading import Clock
    from blade.report import first_page
    from blade.tables import cache

    folder = Path(output) if output else None
    if folder is not None:
        refuse_foreign(folder, force)
    with Progress() as progress:
        loaded = pipeline.load(runs, progress, Path(notes) if notes else None, mapping_of(fields) if fields else None)
        if quick:
            click.echo(first_page.render(pipeline.summarise(loaded, command, threshold)), nl=False)
            click.echo("Not read  the trajectories: leave --quick out to learn why tasks fail")
            return
        key = None if folder or as_json or timings or redact else depends_on(loaded, command)
        told = cache.kept(Path(loaded[0].sources[0].path), "summary", key) if key else None
        if told is not None:
            click.echo(first_page.painted(told.decode("utf-8", "replace")), nl=False)
            return
        clock = Clock()
        report = pipeline.diagnose(loaded, command, threshold, progress, clock, baseline)
        if folder is not None or as_json:
            report = pipeline.with_digests(report)
        if redact:
            from blade.cli.sanitize import redacted

            report = redacted(report, loaded)
    written = _write(report, folder, force) if folder else []
    if as_json:
        from blade.report import json_text

        click.echo(json_text(report), nl=False)
    else:
        said = first_page.render(report)
        click.echo(first_page.painted(said), nl=False)
        if key:
            cache.keep(Path(loaded[0].sources[0].path), "summary", key, said.encode("utf-8", "replace"))
    if timings:
        tell_times(clock)
    wrote(written, quiet=as_json)


def _write(report: Report, folder: Path, force: bool) -> list[Path]:
    from blade.cli.output import put
    from blade.report import write

    return put(lambda: write(report, folder, force=force), folder)


def tell_times(clock: Clock) -> None:
    """How long each stage took, the longest first."""
    for stage, seconds in sorted(clock.seconds.items(), key=lambda told: -told[1]):
        click.echo(f"{seconds:9.2f} s  {stage}", err=True)


def refuse_nothing(runs: tuple[str, ...]) -> None:
    if not runs:
        raise UsageError("no RUN was given", "name a rollouts file or a folder, or try `blade demo`", "usage")


def refuse_threshold(threshold: float | None) -> None:
    if threshold is not None and not abs(threshold) < float("inf"):
        raise UsageError(
            f"--pass-threshold {threshold} is no number to pass at", "give a finite number", "bad-threshold"
        )


def _options(threshold: float | None, baseline: str | None) -> list[str]:
    told = ["--pass-threshold", repr(threshold)] if threshold is not None else []
    return [*told, *(["--baseline", baseline] if baseline else [])]

"""`blade diagnose`, `health`, `draft` and `init`: read runs, and print or write what they show."""

from __future__ import annotations

import json
from pathlib import Path

import click

from blade.cli import options
from blade.cli.output import (
    Progress,
    print_times,
    put,
    refuse_foreign,
    refuse_sources,
    refuse_unwritable,
    write_text,
    wrote,
)
from blade.cli.sanitize import redacted
from blade.errors import UsageError
from blade.hostile import command_line
from blade.targets import refuse_taken


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
    from blade.pipeline.stages import Clock
    from blade.report import first_page, json_text, write
    from blade.tables import cache

    command = command_line("diagnose", runs, map=fields or None, pass_threshold=pass_threshold, baseline=baseline or None)
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
            report = pipeline.with_digests(report, loaded)
        if redact:
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


@click.command(short_help="Check whether the score can be trusted.")
@options.runs_argument()
@options.THRESHOLD
@options.json_option()
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
        command = command_line("health", runs, pass_threshold=pass_threshold)
        report = pipeline.diagnose(loaded, command, pass_threshold, progress)
    click.echo(first_page.health_json(report) if as_json else first_page.health(report), nl=False)


@click.command(short_help="A short, verified report whose prose you improve.")
@options.runs_argument()
@options.output_option("Where the draft goes.", "FILE", required=True)
@options.THRESHOLD
@options.REDACT
@options.force_option("Write over a file that is there.")
def draft(runs: tuple[str, ...], output: str, pass_threshold: float | None, redact: bool, force: bool) -> None:
    """Write the report on RUN in short: all sections, true numbers, the judgements so far.

    Comments in it that begin with `write:` say what judgement belongs where; `blade check` then compares what
    was written with the rows.
    """
    from msgspec.structs import replace

    from blade import pipeline
    from blade.report.draft_report import draft as drafted

    path = Path(output)
    if output == "-":
        raise UsageError("a draft goes to a file", "name one with -o, such as report.md", "usage")
    refuse_taken(path, force)
    refuse_unwritable(path.absolute().parent)
    command = command_line("diagnose", runs, pass_threshold=pass_threshold)
    with Progress() as progress:
        session = pipeline.session(runs, progress, pass_threshold, command)
        report = replace(session.report, made_by={**session.report.made_by, "command": command})
        report = pipeline.with_digests(report, session.loaded)
        if redact:
            report = redacted(report, session.loaded)
    refuse_sources(path, session.loaded)
    write_text(path, drafted(report, runs))
    click.echo(f"Wrote {output}")


@click.command(short_help="Draft a blade.toml from the rows of a run.")
@click.argument("run", metavar="RUN")
@options.json_option("Print what was inferred as JSON.")
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

"""`blade draft`: a short report in which every number is true, for an agent or a person to write on."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from blade.errors import UsageError


@click.command(short_help="A short, verified report whose prose you improve.")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option("-o", "--output", metavar="FILE", required=True, help="Where the draft goes.")
@click.option("--pass-threshold", metavar="X", type=float, help="A row passes at reward >= X (default: 1).")
@click.option("--redact", is_flag=True, help="Replace what must not be shared by placeholders.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def draft(
    runs: tuple[str, ...], output: str, pass_threshold: float | None, redact: bool, force: bool
) -> None:
    """Write the report on RUN in short: all sections, true numbers, the judgements so far.

    Comments in it that begin with `write:` say what judgement belongs where; `blade check` then holds what
    was written against the rows.
    """
    from msgspec.structs import replace

    from blade import pipeline
    from blade.cli.diagnose import refuse_nothing, refuse_threshold
    from blade.cli.output import Progress, refuse_sources, refuse_unwritable, write_text
    from blade.report.draft_report import draft as drafted
    from blade.targets import refuse_taken

    refuse_nothing(runs)
    refuse_threshold(pass_threshold)
    to = Path(output)
    if output == "-":
        raise UsageError("a draft goes to a file", "name one with -o, such as report.md", "usage")
    refuse_taken(to, force)
    refuse_unwritable(to.absolute().parent)
    threshold = ["--pass-threshold", repr(pass_threshold)] if pass_threshold is not None else []
    command = shlex.join(["blade", "diagnose", *runs, *threshold])
    with Progress() as progress:
        asked = pipeline.session(runs, progress, pass_threshold, command)
        report = replace(asked.report, made_by={**asked.report.made_by, "command": command})
        report = pipeline.with_digests(report)
        if redact:
            from blade.cli.sanitize import redacted

            report = redacted(report, asked.loaded)
    refuse_sources(to, asked.loaded)
    write_text(to, drafted(report, runs))
    click.echo(f"Wrote {output}")

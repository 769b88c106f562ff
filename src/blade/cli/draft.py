"""`blade draft`: a short report in which every number is true, for an agent or a person to write on."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from blade.cli.options import REDACT, THRESHOLD, force_option, output_option, runs_argument, threshold_words
from blade.cli.output import Progress, refuse_sources, refuse_unwritable, write_text
from blade.errors import UsageError


@click.command(short_help="A short, verified report whose prose you improve.")
@runs_argument()
@output_option("Where the draft goes.", "FILE", required=True)
@THRESHOLD
@REDACT
@force_option("Write over a file that is there.")
def draft(runs: tuple[str, ...], output: str, pass_threshold: float | None, redact: bool, force: bool) -> None:
    """Write the report on RUN in short: all sections, true numbers, the judgements so far.

    Comments in it that begin with `write:` say what judgement belongs where; `blade check` then compares what
    was written with the rows.
    """
    from msgspec.structs import replace

    from blade import pipeline
    from blade.report.draft_report import draft as drafted
    from blade.targets import refuse_taken

    path = Path(output)
    if output == "-":
        raise UsageError("a draft goes to a file", "name one with -o, such as report.md", "usage")
    refuse_taken(path, force)
    refuse_unwritable(path.absolute().parent)
    command = shlex.join(["blade", "diagnose", *runs, *threshold_words(pass_threshold)])
    with Progress() as progress:
        session = pipeline.session(runs, progress, pass_threshold, command)
        report = replace(session.report, made_by={**session.report.made_by, "command": command})
        report = pipeline.with_digests(report)
        if redact:
            from blade.cli.sanitize import redacted

            report = redacted(report, session.loaded)
    refuse_sources(path, session.loaded)
    write_text(path, drafted(report, runs))
    click.echo(f"Wrote {output}")

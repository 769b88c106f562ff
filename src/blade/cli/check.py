"""`blade check`: hold every claim of any report against the rows it is about."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from blade.errors import EXIT_FAILED_GATE, NothingToRead, Unreadable, UsageError


@click.command(short_help="Is every number, id and quotation of a report true.")
@click.argument("report", metavar="REPORT")
@click.argument("more", nargs=-1, metavar="[RUN...]")
@click.option(
    "--run", "runs", metavar="RUN", multiple=True, help="A run that the report is about; may be repeated."
)
@click.option("-o", "--output", metavar="FILE", help="Write a copy of the report with its problems marked.")
@click.option(
    "--baseline", metavar="NAME", help="The run the others are compared with (default: as the report says)."
)
@click.option(
    "--pass-threshold",
    metavar="X",
    type=float,
    help="A row passes at reward >= X (default: as the report says).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the counts and problems as JSON.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def check(
    report: str,
    more: tuple[str, ...],
    runs: tuple[str, ...],
    output: str | None,
    baseline: str | None,
    pass_threshold: float | None,
    as_json: bool,
    force: bool,
) -> None:
    """Check any report, Markdown or JSON: each claim is supported, contradicted or unverifiable.

    Without --run the report is held against itself: sums, shares, repeated numbers, words beside numbers.
    The exit code is 1 if anything is contradicted.
    """
    from blade.cli.diagnose import refuse_threshold
    from blade.cli.watch import Progress

    refuse_threshold(pass_threshold)
    if more and not runs:
        raise UsageError(f"{more[0]} is no option", "name the runs with --run RUN", "usage")
    if output and Path(output).exists() and not force:
        raise UsageError(
            f"{output} is there already", "name another file, or add --force", "output-not-empty"
        )
    text = _text(report)
    from blade.check import checked, told

    with Progress() as progress:
        world = None
        if runs:
            from blade.check.recomputed import recomputed

            world = recomputed(text, (*runs, *more), progress, pass_threshold, baseline)
        found = checked(text, world)
    if output:
        _write(Path(output), told.annotated(text, found))
    names = [one.name for one in world.report.runs] if world else []
    click.echo(told.as_json(found) if as_json else told.as_text(found, report, names), nl=False)
    if output:
        click.echo(f"Wrote {output}", err=as_json)
    if told.counts(found)["contradicted"]:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def _text(report: str) -> str:
    path = Path(report)
    try:
        raw = sys.stdin.buffer.read() if report == "-" else path.read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        hint = "name the file, such as report.md" if path.is_dir() else "check the path"
        raise NothingToRead(f"there is no report {report}", hint, "nothing-to-read") from error
    except OSError as error:
        raise Unreadable(
            f"cannot read {report}: {error.strerror}", "check its permissions", "unreadable-file"
        ) from error
    if not raw.strip():
        raise NothingToRead(f"{report} is empty", "give a report in Markdown or JSON", "nothing-to-read")
    return raw.decode("utf-8", errors="replace")


def _write(path: Path, text: str) -> None:
    from blade.cli.output import cannot_write

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error

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
@click.option("--all", "is_all", is_flag=True, help="Show every problem, and all that was not read.")
@click.option("--json", "as_json", is_flag=True, help="Print counts, problems and what was not read as JSON.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def check(
    report: str,
    more: tuple[str, ...],
    runs: tuple[str, ...],
    output: str | None,
    baseline: str | None,
    pass_threshold: float | None,
    is_all: bool,
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
    if output and Path(output).exists() and not force:
        raise UsageError(
            f"{output} is there already", "name another file, or add --force", "output-not-empty"
        )
    if output and not Path(output).absolute().parent.is_dir():
        raise Unreadable(
            f"cannot write {output}: its folder does not exist",
            "make the folder, or name another",
            "cannot-write",
        )
    from blade.check import checked, redacted, told
    from blade.check.unread import unread

    text = _text(report)

    with Progress() as progress:
        world = None
        if runs or more:
            from blade.check.recomputed import recomputed

            world = recomputed(text, (*runs, *more), progress, pass_threshold, baseline)
        found = checked(text, world)
    is_blind = world is not None and world.is_blind
    left = unread(redacted.blinded(text) if is_blind else text, found)
    found = told.placed(text, found)
    note = redacted.untold() if is_blind else ""
    if output:
        _write(Path(output), told.annotated(text, found))
    names = [one.name for one in world.report.runs] if world else []
    if as_json and note:
        click.echo(note, err=True)
    click.echo(
        told.as_json(found, left) if as_json else told.as_text(found, report, names, left, note, is_all),
        nl=False,
    )
    if output:
        click.echo(f"Wrote {output}", err=as_json)
    if told.counts(found)["contradicted"]:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def _text(report: str) -> str:
    from blade.check.made import parsed

    path = Path(report)
    if path.is_dir():
        raise NothingToRead(
            f"{report} is a folder", "name the report in it, such as report.md", "nothing-to-read"
        )
    try:
        raw = sys.stdin.buffer.read() if report == "-" else path.read_bytes()
    except FileNotFoundError as error:
        raise NothingToRead(f"{report} does not exist", "check the path", "no-such-path") from error
    except OSError as error:
        raise _unreadable(f"cannot read {report}: {error.strerror}", "check its permissions") from error
    if not raw.strip():
        raise NothingToRead(f"{report} is empty", "give a report in Markdown or JSON", "nothing-to-read")
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(f"{report} is no text", "give a report in Markdown or JSON, in UTF-8") from error
    start = text.lstrip()[:15].lower()
    if start.startswith(("<!doctype html", "<html")):
        raise _unreadable(f"{report} is HTML, which is not read", "check report.md or report.json beside it")
    if path.suffix == ".json" and parsed(text) is None:
        raise _unreadable(f"{report} is no whole JSON", "it may be cut short; write it again")
    return text


def _unreadable(message: str, hint: str) -> Unreadable:
    return Unreadable(message, hint, "unreadable-file")


def _write(path: Path, text: str) -> None:
    from blade.cli.output import cannot_write

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error

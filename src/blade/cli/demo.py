"""`blade demo`: write a simulated run with planted faults and diagnose it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from blade.errors import UsageError


@click.command(short_help="A guided first run on simulated rollouts.")
@click.option(
    "-o", "--output", metavar="DIR", default="blade-demo", show_default=True, help="Where run and report go."
)
@click.option("--json", "as_json", is_flag=True, help="Print report.json instead of the summary.")
@click.option("--force", is_flag=True, help="Write into folders that hold other files.")
def demo(output: str, as_json: bool, force: bool) -> None:
    """Write a simulated run with planted faults, diagnose it, and say where the report lies.

    The rollouts are made up by BLADE itself; no model was run.
    """
    from blade import planted
    from blade.cli.diagnose import print_report
    from blade.cli.output import cannot_write, refuse_foreign

    run, report = Path(output) / "run", Path(output) / "report"
    refuse_foreign(report, force)
    try:
        with tempfile.TemporaryDirectory() as fresh:
            planted.write_demo(Path(fresh))
            _put(Path(fresh), run, force)
    except OSError as error:
        raise cannot_write(run, error) from error
    click.echo(
        f"Wrote a simulated run to {run}: no model was run, and the faults in it are planted.\n", err=as_json
    )
    command = f"blade diagnose {run} -o {report}"
    print_report((str(run),), command, str(report), None, None, as_json, force)
    click.echo(
        f"\nOpen {report / 'report.html'}, or read {report / 'report.md'}. Try: blade show {run} 0/0",
        err=as_json,
    )


def _put(fresh: Path, folder: Path, force: bool) -> None:
    """Copy the files of the demo into `folder`, over nothing but an earlier demo."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(fresh.iterdir()):
        there = folder / path.name
        if there.exists() and not force and there.read_bytes() != path.read_bytes():
            hint = "name another folder with -o, or add --force"
            raise UsageError(f"{there} is not of the demo", hint, "output-not-empty")
    for path in fresh.iterdir():
        shutil.copyfile(path, folder / path.name)

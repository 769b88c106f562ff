"""`blade demo`: write a simulated run with planted faults and diagnose it."""

from __future__ import annotations

from pathlib import Path

import click


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
    from blade.cli.output import cannot_write

    run, report = Path(output) / "run", Path(output) / "report"
    try:
        planted.write_demo(run)
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

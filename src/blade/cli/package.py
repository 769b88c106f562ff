"""`blade package`: scaffold, validate, sanitise and judge BLADE-ready packages."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import click

from blade.errors import EXIT_FAILED_GATE, UsageError

# Commands that are loaded when they are asked for, with what `--help` says of each.
LATE = {
    "extract-anchor-facts": ("extract_anchor_facts", "Draft the facts that a report on this run must find."),
    "score": ("score", "Judge a report by its rollouts and anchor facts."),
    "calibrate": ("calibrate", "Show that the judge tells the golden report from every attack on it."),
}
ORDER = ("init", "validate", "extract-anchor-facts", "make-shallow", "score", "calibrate", "sanitize")


class _Group(click.Group):
    """A group whose commands are listed in the order of the work, some of them loaded late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in ORDER if name in self.commands or name in LATE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LATE:
            return super().get_command(ctx, cmd_name)
        found = getattr(importlib.import_module("blade.cli.package_judge"), LATE[cmd_name][0])
        return found if isinstance(found, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, LATE[name][1] if name in LATE else self.commands[name].get_short_help_str(100))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Group, short_help="Scaffold, validate and judge BLADE-ready packages.")
def package() -> None:
    """A package teaches how to analyse one benchmark, and proves that the teaching works.

    It holds skill/SKILL.md, rollouts/*.jsonl, and golden_reports/ with metrics, anchor facts and shallow
    baselines.
    """


@package.command(short_help="Scaffold a package from runs.")
@click.argument("folder", metavar="DIR")
@click.option("--run", "runs", metavar="RUN", multiple=True, help="A scored run; give at least two.")
@click.argument("more", nargs=-1, metavar="[RUN...]")
@click.option("--name", metavar="NAME", help="The benchmark (default: as blade.toml says, else the folder).")
@click.option("--pass-threshold", metavar="X", type=float, help="A row passes at reward >= X (default: 1).")
@click.option("--force", is_flag=True, help="Write over a package that is there.")
def init(
    folder: str,
    runs: tuple[str, ...],
    more: tuple[str, ...],
    name: str | None,
    pass_threshold: float | None,
    force: bool,
) -> None:
    """Draft a package in DIR: skill, rollouts, and for each run a golden report with its sidecars.

    RUN is as for `blade diagnose`. All of it is a draft: a person reviews what is written.
    """
    from blade import pipeline
    from blade.cli.diagnose import refuse_nothing, refuse_threshold
    from blade.cli.output import put, wrote
    from blade.cli.watch import Progress
    from blade.package.scaffold import refuse_filled, scaffold

    refuse_nothing((*runs, *more))
    refuse_threshold(pass_threshold)
    to = Path(folder)
    refuse_filled(to, force)
    with Progress() as progress:
        loaded = pipeline.load([*runs, *more], progress)
        written = put(lambda: scaffold(to, loaded, name, pass_threshold, progress), to)
        if len(loaded) < 2:
            progress.notice("a package needs two scored, comparable runs; this one has one")
    wrote(written, quiet=False)
    click.echo(f"\nReview the drafts, then: blade package validate --benchmark-dir {folder}")


@package.command(short_help="Is a package whole, true and ready.")
@click.option("--benchmark-dir", required=True, metavar="DIR", help="The folder of the package.")
@click.option(
    "--phase",
    type=click.Choice(["all", "skill", "rollouts", "golden"]),
    default="all",
    show_default=True,
    help="What to look at.",
)
@click.option(
    "--min-anchor-facts", type=int, default=8, show_default=True, help="Facts that each report needs."
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def validate(benchmark_dir: str, phase: str, min_anchor_facts: int, as_json: bool) -> None:
    """Check a package, part by part; the last lines are the readiness checklist.

    The exit code is 1 if anything fails.
    """
    from blade.cli.watch import Progress
    from blade.package.validate import validate as validated

    with Progress() as progress:
        found = validated(Path(benchmark_dir), phase, min_anchor_facts, progress)
    click.echo(json.dumps(found.as_json(), indent=2) if as_json else "\n".join(found.lines()))
    if not found.passed:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


@package.command("make-shallow", short_help="Make the shallow baseline of a report.")
@click.option("--input", "source", required=True, metavar="FILE", help="The golden report.")
@click.option("--output", required=True, metavar="FILE", help="Where the shallow baseline goes.")
def make_shallow(source: str, output: str) -> None:
    """Keep the headings and the tables of aggregate numbers of a report: a negative control."""
    from blade.cli.output import cannot_write
    from blade.errors import NothingToRead
    from blade.package import files, shallow

    if not Path(source).is_file():
        raise NothingToRead(f"{source} does not exist", "name a Markdown report", "no-such-path")
    try:
        shallow.make_shallow(Path(source), Path(output))
    except files.Broken as broken:
        raise UsageError(f"{source} {broken}", "give a Markdown file in UTF-8", "usage") from broken
    except OSError as error:
        raise cannot_write(Path(output), error) from error
    click.echo(f"Wrote {output}")

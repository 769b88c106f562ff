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
    "calibrate": ("calibrate", "Show that the judge ranks reports by their quality."),
}
ORDER = ("init", "validate", "extract-anchor-facts", "make-shallow", "score", "calibrate", "sanitize")


class _Group(click.Group):
    """A group whose commands are listed in the order of the work, some of them loaded late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in ORDER if name in self.commands or name in LATE]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in LATE:
            return super().get_command(ctx, cmd_name)
        command = getattr(importlib.import_module("blade.cli.package_judge"), LATE[cmd_name][0])
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, LATE[name][1] if name in LATE else self.commands[name].get_short_help_str(100))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Group, short_help="Scaffold, validate and judge BLADE-ready packages.")
def package() -> None:
    """A package teaches how to analyse one benchmark and shows that the teaching works.

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
    from blade.cli.output import Progress, put, wrote
    from blade.package.drafts import refuse_filled, scaffold

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


@package.command(short_help="Check whether a package is complete, true and ready.")
@click.option("--benchmark-dir", required=True, metavar="DIR", help="The folder of the package.")
@click.option(
    "--phase",
    type=click.Choice(["all", "skill", "rollouts", "golden"]),
    default="all",
    show_default=True,
    help="What to look at.",
)
@click.option(
    "--min-anchor-facts",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    help="Facts that each report needs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def validate(benchmark_dir: str, phase: str, min_anchor_facts: int, as_json: bool) -> None:
    """Check a package, part by part; the last lines are the readiness checklist.

    The exit code is 1 if anything fails.
    """
    from blade.cli.output import Progress
    from blade.package.validation import validate as validated

    with Progress() as progress:
        result = validated(Path(benchmark_dir), phase, min_anchor_facts, progress)
    click.echo(json.dumps(result.as_json(), indent=2) if as_json else "\n".join(result.lines()))
    if not result.passed:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


@package.command("make-shallow", short_help="Make the shallow baseline of a report.")
@click.option("--input", "source", required=True, metavar="FILE", help="The golden report.")
@click.option("--output", required=True, metavar="FILE", help="Where the shallow baseline goes.")
@click.option("--force", is_flag=True, help="Write over a baseline that a person has changed.")
def make_shallow(source: str, output: str, force: bool) -> None:
    """Keep the headings and the tables of aggregate numbers of a report: a negative control."""
    from blade.cli.output import cannot_write
    from blade.errors import NothingToRead, Unreadable
    from blade.package.layout import Broken
    from blade.package.shallow import make_shallow as shallow

    if not Path(source).is_file():
        raise NothingToRead(f"{source} does not exist", "name a Markdown report", "no-such-path")
    try:
        why = shallow(Path(source), Path(output), force)
    except Broken as broken:
        raise Unreadable(f"{source} {broken}", "give a Markdown file in UTF-8", "unreadable-file") from broken
    except OSError as error:
        raise cannot_write(Path(output), error) from error
    if why:
        hint = "name another file, or add --force to write over it"
        raise UsageError(f"{output} {why}; it was kept", hint, "output-not-empty")
    click.echo(f"Wrote {output}")


@package.command(short_help="Write a copy of a package that can be shared.")
@click.option("--benchmark-dir", required=True, metavar="DIR", help="The folder of the package.")
@click.option("-o", "--output", required=True, metavar="DIR", help="Where the clean package goes.")
@click.option("--key", "key_path", metavar="FILE", help="The key of the placeholders (default: your own).")
@click.option(
    "--policy", "policy_path", metavar="FILE", help="A blade.toml with [sharing] (default: the package's)."
)
@click.option("--report", "report_path", metavar="FILE", help="Write what was removed, and where, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON.")
@click.option("--force", is_flag=True, help="Write into a folder that holds files.")
def sanitize(
    benchmark_dir: str,
    output: str,
    key_path: str | None,
    policy_path: str | None,
    report_path: str | None,
    as_json: bool,
    force: bool,
) -> None:
    """Take secrets, people, hosts, homes and names out of rollouts, reports and anchors alike.

    Placeholders are the same everywhere, so that the clean package still validates. The exit code is 1 if
    anything private is left.
    """
    from blade.cli.output import Progress, cannot_write, write_text
    from blade.hostile import line
    from blade.package.sharing import sanitise
    from blade.sanitize import as_json as removed_as_json
    from blade.sanitize import leak_lines, read_key, read_policy
    from blade.targets import refuse_taken

    target = Path(output)
    if report_path:
        settings = [Path(place) for place in (key_path, policy_path) if place]
        refuse_taken(
            Path(report_path),
            force,
            [*settings, *(path for path in Path(benchmark_dir).rglob("*") if path.is_file())],
        )
    if target.is_dir() and any(target.iterdir()) and not force:
        raise UsageError(
            f"{output} holds files already", "name another folder, or add --force", "output-not-empty"
        )
    policy = read_policy(Path(policy_path)) if policy_path else None
    key = read_key(Path(key_path)) if key_path else None
    try:
        with Progress() as progress:
            removed = sanitise(Path(benchmark_dir), target, policy, key, progress)
    except OSError as error:
        raise cannot_write(target, error) from error
    if report_path:
        write_text(Path(report_path), removed_as_json(removed))
    if as_json:
        click.echo(removed_as_json(removed), nl=False)
    else:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in removed.kinds.items())
        click.echo(f"Removed {removed.total:,} values{f': {kinds}' if kinds else ''}")
        for name, why in removed.left_out.items():
            click.echo(line(f"Left out {name}: it {why}", 400))
        wrote = f"Wrote {output}/; keep the key with the raw rows, not with these"
        click.echo("\n".join(line(text, 400) for text in leak_lines(removed) or [wrote]))
    if removed.leaks:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)

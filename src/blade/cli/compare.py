"""`blade compare`: why the score changed between runs, and whether it did."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blade.cli.diagnose import refuse_nothing, refuse_threshold, tell_times
from blade.errors import EXIT_FAILED_GATE, UsageError

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline import Loaded


@click.command(short_help="Why did the score change, and is the change real.")
@click.argument("runs", nargs=-1, metavar="BASELINE CANDIDATE...")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    help="Write compare.md, compare.html, compare.json, figures/ (and gate.md).",
)
@click.option("--by", metavar="FIELD", help="Split one run by a field of its rows and compare the parts.")
@click.option(
    "--baseline", metavar="NAME", help="The run, or the value of --by, to compare with (default: first)."
)
@click.option(
    "--margin", metavar="X", type=float, default=0.03, show_default=True,
    help="Points of score, as a fraction, within which two runs are equivalent.",
)  # fmt: skip
@click.option("--series", "ordered", is_flag=True, help="The runs are checkpoints in order: tell the trend.")
@click.option("--gate", metavar="POLICY.toml", help="Judge the change by a policy; exit 1 if it fails.")
@click.option("--pass-threshold", metavar="X", type=float, help="A row passes at reward >= X (default: 1).")
@click.option("--redact", is_flag=True, help="Replace what must not be shared by placeholders.")
@click.option("--json", "as_json", is_flag=True, help="Print compare.json instead of the summary.")
@click.option("--quick", is_flag=True, help="From the columns alone: no trace is read, so no behaviours.")
@click.option("--timings", is_flag=True, help="Tell on stderr how long each stage took.")
@click.option("--force", is_flag=True, help="Write into a folder that holds other files.")
def compare(
    runs: tuple[str, ...],
    output: str | None,
    by: str | None,
    baseline: str | None,
    margin: float,
    ordered: bool,
    gate: str | None,
    pass_threshold: float | None,
    redact: bool,
    as_json: bool,
    quick: bool,
    timings: bool,
    force: bool,
) -> None:
    """Compare runs of the same tasks: is the change real, and what moved it, in terms that add up.

    The first RUN is the baseline. RUN is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a folder,
    a quoted glob of shards, or NAME=PATH; a file with several agents holds one run for each.
    """
    refuse_nothing(runs)
    refuse_threshold(pass_threshold)
    _refuse_options(by, margin, ordered, baseline)
    from blade import pipeline
    from blade.cli.output import Progress, refuse_foreign
    from blade.pipeline import comparing
    from blade.pipeline.trace_reading import Clock

    folder = Path(output) if output else None
    if folder is not None:
        refuse_foreign(folder, force, is_comparison=True)
    policy = comparing.policy(Path(gate)) if gate else None
    told = _options(by, baseline, margin, ordered, gate, pass_threshold, quick)
    command, clock = shlex.join(["blade", "compare", *runs, *told]), Clock()
    with Progress() as progress:
        loaded = pipeline.load(_apart(runs), progress)
        parts = comparing.split_runs(loaded, by) if by else loaded
        _refuse_one(parts)
        report = comparing.compare(
            parts, command, threshold=pass_threshold, margin=margin, baseline=baseline, ordered=ordered,
            quick=quick, policy=policy, watcher=progress, clock=clock,
        )  # fmt: skip
        if folder is not None or as_json:
            report = pipeline.with_digests(report)
        if redact:
            from blade.cli.sanitize import redacted

            report = redacted(report, loaded)
    _print(report, as_json, folder, force)
    _warn_refused(report)
    if timings:
        tell_times(clock)
    if report.gate is not None and report.gate.verdict == "FAIL":
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def _print(report: Report, as_json: bool, folder: Path | None, force: bool) -> None:
    from blade.cli.output import put, wrote
    from blade.pipeline import comparing
    from blade.report import json_text, write_comparison
    from blade.report.comparison_screen import compare_text

    further = {"gate.md": comparing.gate_markdown(report)} if report.gate is not None else {}
    written = put(lambda: write_comparison(report, folder, further, force=force), folder) if folder else []
    click.echo(json_text(report, is_comparison=True) if as_json else compare_text(report), nl=False)
    wrote(written, quiet=as_json)


def _warn_refused(report: Report) -> None:
    """Say where nothing was compared: the exit code is the same whatever a comparison finds."""
    from blade.hostile import line

    for one in report.comparisons:
        if one.refused is not None:
            told = f"{one.candidate} was not compared with {one.baseline}: {one.refused}"
            click.echo(f"warning: {line(told, 400)}", err=True)


def _apart(runs: tuple[str, ...]) -> tuple[str, ...]:
    """The runs as they were given; one that is given twice is held against itself under a second name."""
    found: list[str] = []
    for run in runs:
        again = run in found and "=" not in run
        found.append(f"{Path(run).name.split('.')[0]} again={run}" if again else run)
    return tuple(found)


def _refuse_options(by: str | None, margin: float, ordered: bool, baseline: str | None) -> None:
    if by == "reward":
        raise UsageError(
            "the reward cannot split a run: it is what the parts would be compared by",
            "name what was varied within the tasks, such as --by skills_ref.hash",
            "cannot-split",
        )
    if not 0 < margin < float("inf"):
        raise UsageError(f"--margin {margin:g} is no margin", "give a fraction such as 0.03", "bad-margin")
    if ordered and baseline:
        raise UsageError(
            "--series takes the runs in the order given, and --baseline changes it",
            "name the first checkpoint first, and leave --baseline out",
            "usage",
        )


def _refuse_one(loaded: list[Loaded]) -> None:
    if len(loaded) < 2:
        raise UsageError(
            "one run was given, and a comparison takes two",
            "name a second RUN, or split this one by a field of its rows: --by skills_ref.hash",
            "one-run",
        )


def _options(
    by: str | None,
    baseline: str | None,
    margin: float,
    ordered: bool,
    gate: str | None,
    threshold: float | None,
    quick: bool,
) -> list[str]:
    """What was asked for, to write it down in the report."""
    from blade.pipeline.comparing import MARGIN

    told = [*(["--by", by] if by else []), *(["--baseline", baseline] if baseline else [])]
    told += ["--margin", repr(margin)] if margin != MARGIN else []
    told += [*(["--series"] if ordered else []), *(["--gate", gate] if gate else [])]
    told += ["--pass-threshold", repr(threshold)] if threshold is not None else []
    return [*told, *(["--quick"] if quick else [])]

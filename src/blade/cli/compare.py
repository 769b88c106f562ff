"""`blade compare`: why the score changed between runs, and whether it did."""

from __future__ import annotations

from pathlib import Path

import click

from blade.cli import options
from blade.cli.output import Progress, exit_failed, print_times, put, refuse_foreign, wrote
from blade.cli.sanitize import redacted
from blade.errors import UsageError
from blade.hostile import command_line, line


@click.command(short_help="Why did the score change, and is the change real.")
@options.runs_argument("BASELINE CANDIDATE...")
@options.output_option("Write compare.md, compare.html, compare.json, figures/ (and gate.md).")
@click.option("--by", metavar="FIELD", help="Split one run by a field of its rows and compare the parts.")
@click.option("--baseline", metavar="NAME", help="The run, or the value of --by, to compare with (default: first).")
@click.option(
    "--margin", metavar="X", type=float, default=0.03, show_default=True,
    help="Points of score, as a fraction, within which two runs are equivalent.",
)  # fmt: skip
@click.option("--series", "ordered", is_flag=True, help="The runs are checkpoints in order: tell the trend.")
@click.option("--gate", metavar="POLICY.toml", help="Judge the change by a policy; exit 1 if it fails.")
@options.THRESHOLD
@options.REDACT
@options.json_option("Print compare.json instead of the summary.")
@click.option("--quick", is_flag=True, help="From the columns alone: no trace is read, so no behaviours.")
@options.TIMINGS
@options.force_option()
def compare(
    runs: tuple[str, ...], output: str | None, by: str | None, baseline: str | None, margin: float, ordered: bool,
    gate: str | None, pass_threshold: float | None, redact: bool, as_json: bool, quick: bool, timings: bool, force: bool,
) -> None:  # fmt: skip
    """Compare runs of the same tasks: is the change real, and what moved it, in terms that add up.

    The first RUN is the baseline. RUN is a rollouts file (.jsonl, .jsonl.gz, .jsonl.zst), a folder,
    a quoted glob of shards, or NAME=PATH; a file with several agents holds one run for each.
    """
    _refuse_options(by, margin, ordered, baseline)
    from blade import pipeline
    from blade.compare.gate import markdown
    from blade.compare.gate_policy import read_policy
    from blade.pipeline import comparing
    from blade.pipeline.stages import Clock
    from blade.report import json_text, write
    from blade.report.comparison_screen import compare_text

    folder = Path(output) if output else None
    if folder is not None:
        refuse_foreign(folder, force, is_comparison=True)
    policy = read_policy(Path(gate)) if gate else None
    command, clock = command_line(
        "compare", runs, by=by or None, baseline=baseline or None, margin=margin if margin != comparing.MARGIN else None,
        series=ordered, gate=gate or None, pass_threshold=pass_threshold, quick=quick,
    ), Clock()  # fmt: skip
    with Progress() as progress:
        loaded = pipeline.load(comparing.apart(runs), progress)
        parts = comparing.split_runs(loaded, by) if by else loaded
        if len(parts) < 2:
            raise UsageError(
                "one run was given, and a comparison takes two",
                "name a second RUN, or split this one by a field of its rows: --by skills_ref.hash", "one-run",
            )  # fmt: skip
        report = comparing.compare(
            parts, command, threshold=pass_threshold, margin=margin, baseline=baseline, ordered=ordered,
            quick=quick, policy=policy, watcher=progress, clock=clock,
        )  # fmt: skip
        if folder is not None or as_json:
            report = pipeline.with_digests(report, loaded)
        if redact:
            report = redacted(report, loaded)
    further = {"gate.md": markdown(report.gate, report.made_by["command"])} if report.gate is not None else {}
    written = put(lambda: write(report, folder, True, further, force=force), folder) if folder else []
    click.echo(json_text(report, is_comparison=True) if as_json else compare_text(report), nl=False)
    wrote(written, quiet=as_json)
    for pair in report.comparisons:
        if pair.refused is not None:  # the exit code is the same whatever a comparison finds
            text = f"{pair.candidate} was not compared with {pair.baseline}: {pair.refused}"
            click.echo(f"warning: {line(text, 400)}", err=True)
    if timings:
        print_times(clock)
    exit_failed(report.gate is not None and report.gate.verdict == "FAIL")


def _refuse_options(by: str | None, margin: float, ordered: bool, baseline: str | None) -> None:
    if by == "reward":
        raise UsageError(
            "the reward cannot split a run: it is what the parts would be compared by",
            "name what was varied within the tasks, such as --by skills_ref.hash", "cannot-split",
        )  # fmt: skip
    if not 0 < margin < float("inf"):
        raise UsageError(f"--margin {margin:g} is no margin", "give a fraction such as 0.03", "bad-margin")
    if ordered and baseline:
        raise UsageError(
            "--series takes the runs in the order given, and --baseline changes it",
            "name the first checkpoint first, and leave --baseline out", "usage",
        )  # fmt: skip

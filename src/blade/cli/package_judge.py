"""`blade package score` and its kin: draft anchors, judge a report, prove that the judge can judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from blade.errors import EXIT_FAILED_GATE, NothingToRead, UsageError
from blade.package import MIN_ANCHORS


@click.command("extract-anchor-facts", short_help="Draft the facts that a report on this run must find.")
@click.option("--golden", required=True, metavar="FILE", help="The golden report.")
@click.option("--output", required=True, metavar="FILE", help="Where the anchor facts go.")
@click.option("--benchmark", required=True, metavar="NAME", help="The benchmark, for the file.")
@click.option(
    "--model-name", required=True, metavar="NAME", help="The model; its rollouts are looked up by it."
)
@click.option("--num-facts", type=click.IntRange(1), default=12, show_default=True, help="Facts to draft.")
@click.option(
    "--min-facts",
    type=click.IntRange(0),
    default=MIN_ANCHORS,
    show_default=True,
    help="Exit 1 if there are fewer.",
)
@click.option("--rollouts", metavar="FILE", multiple=True, help="Rollouts (default: those of the package).")
@click.option("--force", is_flag=True, help="Write over facts that a person has reviewed or changed.")
def extract_anchor_facts(
    golden: str,
    output: str,
    benchmark: str,
    model_name: str,
    num_facts: int,
    min_facts: int,
    rollouts: tuple[str, ...],
    force: bool,
) -> None:
    """Draft anchor facts: what the golden report says of single tasks and the rollouts bear out.

    Each holds a sentence and a predicate that a claim must meet. Review them before use. Without rollouts
    they are drafted from the report alone, unchecked.
    """
    from blade.cli.watch import Progress
    from blade.package.judge import anchors, sources

    path = _file(golden, "a golden report")
    given = tuple(_file(one, "a rollouts file") for one in rollouts)
    method = anchors.METHOD
    with Progress() as progress:
        try:
            found = sources.drafted(path, given, model_name, num_facts, progress)
        except sources.CannotJudge as why:
            progress.notice(f"{why.message}: the facts are drafted from the report alone")
            found = anchors.undrafted(sources.report_text(path), num_facts)
            method = anchors.UNCHECKED
    made = anchors.as_file(found, benchmark, model_name, method)
    if not force:
        _refuse_reviewed(Path(output), made)
    _write(Path(output), made)
    click.echo(f"Wrote {len(found)} anchor facts to {output}")
    if len(found) < min_facts:
        click.echo(f"Only {len(found)} facts name single tasks; {min_facts} are needed", err=True)
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


@click.command(short_help="Judge a report by its rollouts and anchor facts.")
@click.option("--report", required=True, metavar="FILE", help="The report to judge.")
@click.option("--golden", required=True, metavar="FILE", help="The golden report of the same run.")
@click.option("--anchor-facts", required=True, metavar="FILE", help="The anchor facts of the golden report.")
@click.option("--output-dir", metavar="DIR", help="Write reward.json there.")
@click.option("--rollouts", metavar="FILE", multiple=True, help="Rollouts (default: those of the package).")
@click.option(
    "--min-anchor-facts",
    type=click.IntRange(1),
    default=MIN_ANCHORS,
    show_default=True,
    help="Facts that must be usable.",
)
def score(
    report: str,
    golden: str,
    anchor_facts: str,
    output_dir: str | None,
    rollouts: tuple[str, ...],
    min_anchor_facts: int,
) -> None:
    """Judge a report: its claims against the rollouts, its findings against the anchor facts.

    The exit code is 1 if there is nothing to judge by.
    """
    from blade.cli.watch import Progress
    from blade.package.judge import result, sources
    from blade.package.judge import score as judge

    submitted = _file(report, "a report")
    with Progress() as progress, _told_plainly():
        case = sources.case(
            _file(golden, "a golden report"),
            _file(anchor_facts, "a file of anchor facts"),
            rollouts=[_file(one, "a rollouts file") for one in rollouts],
        )
        seat = sources.seated(case, progress, min_anchor_facts)
        told = result.as_json(judge.judged(sources.report_text(submitted), seat), seat)
    if output_dir is not None:
        _write(Path(output_dir) / "reward.json", told)
    click.echo(json.dumps(told, indent=2))


@click.command(short_help="Show that the judge tells the golden report from every attack on it.")
@click.option("--golden-report", required=True, metavar="FILE", help="The golden report.")
@click.option("--anchor-facts", required=True, metavar="FILE", help="Its anchor facts.")
@click.option("--shallow-report", required=True, metavar="FILE", help="Its shallow baseline.")
@click.option("--output-dir", metavar="DIR", help="Default: calibration-runs/ and the time.")
@click.option(
    "--min-spread", type=float, default=0.50, show_default=True, help="Golden less shallow, at least."
)
@click.option("--rollouts", metavar="FILE", multiple=True, help="Rollouts (default: those of the package).")
@click.option(
    "--min-anchor-facts",
    type=click.IntRange(1),
    default=MIN_ANCHORS,
    show_default=True,
    help="Facts that must be usable.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Draws of what is drawn; the worst counts.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def calibrate(
    golden_report: str,
    anchor_facts: str,
    shallow_report: str,
    output_dir: str | None,
    min_spread: float,
    rollouts: tuple[str, ...],
    min_anchor_facts: int,
    seeds: int,
    as_json: bool,
) -> None:
    """Attack the golden report and judge the results: shuffled, negated, invented, about other rollouts.

    The exit code is 0 only if the golden report separates from every attack and the controls hold.
    """
    from blade.cli.watch import Progress
    from blade.package.calibrate import battery as trials
    from blade.package.judge import sources
    from blade.package.layout import TRIALS

    folder = Path(output_dir or f"{TRIALS}/{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    with Progress() as progress, _told_plainly():
        case = sources.case(
            _file(golden_report, "a golden report"),
            _file(anchor_facts, "a file of anchor facts"),
            _file(shallow_report, "a shallow report"),
            [_file(one, "a rollouts file") for one in rollouts],
        )
        seat = sources.seated(case, progress, min_anchor_facts)
        told = trials.calibrated(case, seat, progress, min_spread, seeds)
    for name, reward in trials.rewards(told, seat).items():
        _write(folder / name / "reward.json", reward)
    summary = trials.as_summary(told)
    _write(folder / "calibration_summary.json", summary)
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(trials.lines(told)))
    click.echo(f"Wrote {folder}/calibration_summary.json", err=as_json)
    if told.problems:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Say why a report cannot be judged, and end with 1: the report may be good, and nothing shows it."""
    from blade.package.judge import sources

    try:
        yield
    except sources.CannotJudge as why:
        click.echo(f"error: cannot judge: {why.message}\nhint:  {why.hint}", err=True)
        click.echo("see:   docs/package.md#refine-it", err=True)
        raise click.exceptions.Exit(EXIT_FAILED_GATE) from why


def _file(path: str, what: str) -> Path:
    if not Path(path).is_file():
        raise NothingToRead(f"{path} does not exist", f"name {what}", "no-such-path")
    return Path(path)


def _refuse_reviewed(path: Path, data: dict[str, Any]) -> None:
    """Keep what a person has reviewed or changed."""
    from blade.package.seal import why_kept

    if why := why_kept(path, _json(data)):
        hint = "name another file, or add --force to write over it"
        raise UsageError(f"{path} {why}; it was kept", hint, "output-not-empty")


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, data: dict[str, Any]) -> None:
    from blade.cli.output import cannot_write
    from blade.package import files

    try:
        files.write(path, _json(data))
    except OSError as error:
        raise cannot_write(path, error) from error

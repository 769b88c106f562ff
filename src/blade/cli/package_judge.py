"""`blade package score`, `calibrate`, `extract-anchor-facts`: judge reports, and show that the judge can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.errors import EXIT_FAILED_GATE, NothingToRead, UsageError, with_pages
from blade.package import MIN_ANCHORS

if TYPE_CHECKING:
    from blade.package.calibration import Calibration


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
    """Draft anchor facts: numbers that the golden report cites, each with its query, answer and tasks.

    The rows are those of the package's rollouts/. Contrasts that the rows show fill up what is missing.
    Review the facts before use: strike weak ones, then set "review_required" to false. Without rollouts
    they are sentences of the report, matched by wording.
    """
    from blade.cli.output import Progress
    from blade.package import anchors, report_score

    path = _file(golden, "a golden report")
    paths = tuple(_file(name, "a rollouts file") for name in rollouts)
    with Progress() as progress, _explained():
        case = report_score.case(path, None, None, paths, model_name)
        worlds = report_score.worlds_for(case, progress)
        if worlds is None:
            progress.notice(f"no rollouts of {model_name} were found: the facts are drafted by wording alone")
            facts = anchors.drafted_by_wording(case.golden, num_facts)
        else:
            facts = anchors.drafted(case.golden, worlds, num_facts)
    document = anchors.as_file(
        facts, benchmark, model_name, anchors.CITED if worlds is not None else anchors.BY_WORDING
    )
    if not force:
        _refuse_reviewed(Path(output), document)
    _write(Path(output), document)
    weak = sum(fact.weak for fact in facts)
    click.echo(f"Wrote {len(facts)} anchor facts to {output}" + (f" ({weak} weak)" if weak else ""))
    if len(facts) < min_facts:
        click.echo(f"Only {len(facts)} facts were found; {min_facts} are needed", err=True)
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

    Without rollouts the score rests on wording, and says so. The exit code is 1 if too few facts can be used.
    """
    from blade.cli.output import Progress
    from blade.package import report_score

    submitted = _file(report, "a report")
    with Progress() as progress, _explained():
        case = report_score.case(
            _file(golden, "a golden report"),
            _file(anchor_facts, "a file of anchor facts"),
            rollouts=[_file(name, "a rollouts file") for name in rollouts],
        )
        if not case.rollouts:
            progress.notice("no rollouts were found: the score rests on wording")
        bench = report_score.bench_for(case, progress, min_anchor_facts)
        reward = report_score.as_json(report_score.judged(report_score.report_text(submitted), bench), bench)
    if output_dir is not None:
        _write(Path(output_dir) / "reward.json", reward)
    click.echo(json.dumps(reward, indent=2))


@click.command(short_help="Show that the judge ranks reports by their quality.")
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
    help="Draws of each random attack; the worst counts.",
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
    """Show that the judge ranks reports by quality: golden above shallow, attacks low, graded ones in order.

    Graded reports are read from graded/ beside the golden report, where they exist. The exit code is 0 only
    if everything separates.
    """
    from blade.cli.output import Progress
    from blade.package import calibration as battery
    from blade.package import layout, report_score

    folder = Path(output_dir or f"{layout.TRIALS}/{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    path = _file(golden_report, "a golden report")
    with Progress() as progress, _explained():
        case = report_score.case(
            path,
            _file(anchor_facts, "a file of anchor facts"),
            _file(shallow_report, "a shallow report"),
            [_file(name, "a rollouts file") for name in rollouts],
        )
        bench = report_score.bench_for(case, progress, min_anchor_facts)
        graded = layout.golden(path).graded
        texts = {grade: report_score.report_text(report) for grade, report in graded.items()}
        calibration = battery.calibrated(case, bench, texts, min_spread, seeds)
    for name, reward in battery.rewards(calibration, bench).items():
        _write(folder / name / "reward.json", reward)
    summary = battery.as_summary(calibration)
    _write(folder / "calibration_summary.json", summary)
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(calibration_lines(calibration)))
    click.echo(f"Wrote {folder}/calibration_summary.json", err=as_json)
    if calibration.problems:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def calibration_lines(calibration: Calibration) -> list[str]:
    """The calibration for a reader: what was tried, what it scored, what bound it had to keep."""
    from blade.package.calibration import TARGETS
    from blade.package.report_score import WORDING

    least, most = TARGETS["golden_vs_self_min"], TARGETS["shallow_vs_golden_max"]
    below = f"at most {most:.2f}, {calibration.min_spread:.2f} below golden"
    printed = [
        f"{'golden report':<28} {calibration.golden.score:6.3f}  at least {least:.2f}",
        f"{'shallow report':<28} {calibration.shallow.score:6.3f}  {below}",
        "",
    ]
    if calibration.rests_on == WORDING:
        printed = ["No rollouts were found: all scores rest on wording", "", *printed]
    for title, trials in (("Attacks", calibration.attacks), ("Graded reports", calibration.graded)):
        printed += [title] if trials else []
        for trial in trials:
            score = f"{trial.score:6.3f}" if trial.score is not None else "     –"
            printed.append(f"  {trial.name:<26} {score}  {trial.bound}{'  BROKEN' * (trial.held is False)}")
        printed += [""] if trials else []
    problems = calibration.problems
    return [*printed, "calibrated" if not problems else f"not calibrated: {'; '.join(problems)}"]


@contextmanager
def _explained() -> Iterator[None]:
    """Say why a report cannot be judged, and exit with 1: the report may be good, and nothing shows it."""
    from blade.hostile import under
    from blade.package import report_score

    try:
        yield
    except report_score.CannotJudge as why:
        click.echo(f"{under('error: cannot judge: ', why.message)}\n{under('hint:  ', why.hint)}", err=True)
        click.echo(f"see:   {with_pages('docs/package.md#refine-it')}", err=True)
        raise click.exceptions.Exit(EXIT_FAILED_GATE) from why


def _file(path: str, what: str) -> Path:
    if not Path(path).is_file():
        raise NothingToRead(f"{path} does not exist", f"name {what}", "no-such-path")
    return Path(path)


def _refuse_reviewed(path: Path, data: dict[str, Any]) -> None:
    """Keep what a person has reviewed or changed."""
    from blade.package.layout import why_kept

    if why := why_kept(path, _json(data)):
        hint = "name another file, or add --force to write over it"
        raise UsageError(f"{path} {why}; it was kept", hint, "output-not-empty")


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, data: dict[str, Any]) -> None:
    from blade.cli.output import cannot_write
    from blade.package.layout import write_text

    try:
        write_text(path, _json(data))
    except OSError as error:
        raise cannot_write(path, error) from error

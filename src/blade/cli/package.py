"""`blade package`: scaffold, validate, sanitise and judge BLADE-ready packages, and show that the judge can judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blade.cli.options import THRESHOLD, Command, LateGroup, force_option, json_option, output_option
from blade.cli.output import Progress, exit_failed, put, wrote
from blade.cli.sanitize import KEY, REPORT, settings_of
from blade.errors import EXIT_FAILED_GATE, NothingToRead, Unreadable, UsageError, with_pages
from blade.hostile import line, under
from blade.package import MIN_ANCHORS
from blade.targets import STAGING, put_text, refuse_taken

if TYPE_CHECKING:
    from blade.package.calibration import Calibration

# In the order of the work.
COMMANDS = "init validate extract-anchor-facts make-shallow score calibrate sanitize".split()


def _file(*names: str, help: str, what: str, **more: Any) -> Callable[[Command], Command]:
    """The option of a file, or of several, that must be there."""

    def there(_: click.Context, __: click.Parameter, value: Any) -> Any:
        paths = [Path(path) for path in (value if isinstance(value, tuple) else (value,))]
        if missing := [path for path in paths if not path.is_file()]:
            raise NothingToRead(f"{missing[0]} does not exist", f"name {what}", "no-such-path")
        return paths if isinstance(value, tuple) else paths[0]

    return click.option(*names, metavar="FILE", help=help, callback=there, **more)


def _least(default: int, help: str, least: int = 0) -> Callable[[Command], Command]:
    return click.option("--min-anchor-facts", type=click.IntRange(least), default=default, show_default=True, help=help)


BENCHMARK_DIR = click.option("--benchmark-dir", required=True, metavar="DIR", help="The folder of the package.")
ROLLOUTS = _file(
    "--rollouts", help="Rollouts (default: those of the package).", what="a rollouts file", multiple=True
)


@click.group(
    cls=LateGroup, late={name: f"package:{name.replace('-', '_')}" for name in COMMANDS},
    short_help="Scaffold, validate and judge BLADE-ready packages.",
)  # fmt: skip
def package() -> None:
    """A package teaches how to analyse one benchmark and shows that the teaching works.

    It holds skill/SKILL.md, rollouts/*.jsonl, and golden_reports/ with metrics, anchor facts and shallow
    baselines.
    """


@click.command(short_help="Scaffold a package from runs.")
@click.argument("folder", metavar="DIR")
@click.option("--run", "runs", metavar="RUN", multiple=True, help="A scored run; give at least two.")
@click.argument("more", nargs=-1, metavar="[RUN...]")
@click.option("--name", metavar="NAME", help="The benchmark (default: as blade.toml says, else the folder).")
@THRESHOLD
@force_option("Write over a package that is there.")
def init(
    folder: str, runs: tuple[str, ...], more: tuple[str, ...], name: str | None, pass_threshold: float | None, force: bool
) -> None:
    """Draft a package in DIR: skill, rollouts, and for each run a golden report with its sidecars.

    RUN is as for `blade diagnose`. All of it is a draft: a person reviews what is written.
    """
    from blade import pipeline
    from blade.cli.options import refuse_no_runs
    from blade.package.drafts import refuse_filled, scaffold

    refuse_no_runs((*runs, *more))
    target = Path(folder)
    refuse_filled(target, force)
    with Progress() as progress:
        loaded = pipeline.load([*runs, *more], progress)
        written = put(lambda: scaffold(target, loaded, name, pass_threshold, progress), target)
        if len(loaded) < 2:
            progress.notice("a package needs two scored, comparable runs; this one has one")
    wrote(written, quiet=False)
    click.echo(f"\nReview the drafts, then: blade package validate --benchmark-dir {folder}")


@click.command(short_help="Check whether a package is complete, true and ready.")
@BENCHMARK_DIR
@click.option(
    "--phase", type=click.Choice(["all", "skill", "rollouts", "golden"]), default="all", show_default=True,
    help="What to look at.",
)  # fmt: skip
@_least(8, "Facts that each report needs.")
@json_option("Print the checks as JSON.")
def validate(benchmark_dir: str, phase: str, min_anchor_facts: int, as_json: bool) -> None:
    """Check a package, part by part; the last lines are the readiness checklist.

    The exit code is 1 if anything fails.
    """
    from blade.package.validation import validate as validated

    with Progress() as progress:
        result = validated(Path(benchmark_dir), phase, min_anchor_facts, progress)
    click.echo(json.dumps(result.as_json(), indent=2) if as_json else "\n".join(result.lines()))
    exit_failed(not result.passed)


@click.command("make-shallow", short_help="Make the shallow baseline of a report.")
@_file("--input", "source", help="The golden report.", what="a Markdown report", required=True)
@click.option("--output", required=True, metavar="FILE", help="Where the shallow baseline goes.")
@force_option("Write over a baseline that a person has changed.")
def make_shallow(source: Path, output: str, force: bool) -> None:
    """Keep the headings and the tables of aggregate numbers of a report: a negative control."""
    from blade.package.layout import Broken
    from blade.package.shallow import make_shallow as shallow

    try:
        _refuse_kept(output, put(lambda: shallow(source, Path(output), force), Path(output)))
    except Broken as broken:
        raise Unreadable(f"{source} {broken}", "give a Markdown file in UTF-8", "unreadable-file") from broken
    click.echo(f"Wrote {output}")


@click.command("extract-anchor-facts", short_help="Draft the facts that a report on this run must find.")
@_file("--golden", help="The golden report.", what="a golden report", required=True)
@click.option("--output", required=True, metavar="FILE", help="Where the anchor facts go.")
@click.option("--benchmark", required=True, metavar="NAME", help="The benchmark, for the file.")
@click.option("--model-name", required=True, metavar="NAME", help="The model; its rollouts are looked up by it.")
@click.option("--num-facts", type=click.IntRange(1), default=12, show_default=True, help="Facts to draft.")
@click.option(
    "--min-facts", type=click.IntRange(0), default=MIN_ANCHORS, show_default=True, help="Exit 1 if there are fewer."
)
@ROLLOUTS
@force_option("Write over facts that a person has reviewed or changed.")
def extract_anchor_facts(
    golden: Path, output: str, benchmark: str, model_name: str, num_facts: int, min_facts: int,
    rollouts: list[Path], force: bool,
) -> None:  # fmt: skip
    """Draft anchor facts: numbers that the golden report cites, each with its query, answer and tasks.

    The rows are those of the package's rollouts/. Contrasts that the rows show fill up what is missing.
    Review the facts before use: strike weak ones, then set "review_required" to false. Without rollouts
    they are sentences of the report, matched by wording.
    """
    from blade.package import anchors, report_score
    from blade.package.layout import why_kept

    with Progress() as progress, _explained():
        case = report_score.case(golden, None, None, rollouts, model_name)
        worlds = report_score.worlds_for(case, progress)
        if worlds is None:
            progress.notice(f"no rollouts of {model_name} were found: the facts are drafted by wording alone")
            facts = anchors.drafted_by_wording(case.golden, num_facts)
        else:
            facts = anchors.drafted(case.golden, worlds, num_facts)
    basis = anchors.CITED if worlds is not None else anchors.BY_WORDING
    document = anchors.as_file(facts, benchmark, model_name, basis)
    _refuse_kept(output, "" if force else why_kept(Path(output), _json(document)))
    _write(Path(output), document)
    weak = sum(fact.weak for fact in facts)
    click.echo(f"Wrote {len(facts)} anchor facts to {output}" + (f" ({weak} weak)" if weak else ""))
    if len(facts) < min_facts:
        click.echo(f"Only {len(facts)} facts were found; {min_facts} are needed", err=True)
    exit_failed(len(facts) < min_facts)


@click.command(short_help="Judge a report by its rollouts and anchor facts.")
@_file("--report", help="The report to judge.", what="a report", required=True)
@_file("--golden", help="The golden report of the same run.", what="a golden report", required=True)
@_file("--anchor-facts", help="The anchor facts of the golden report.", what="a file of anchor facts", required=True)
@click.option("--output-dir", metavar="DIR", help="Write reward.json there.")
@ROLLOUTS
@_least(MIN_ANCHORS, "Facts that must be usable.", 1)
def score(
    report: Path, golden: Path, anchor_facts: Path, output_dir: str | None, rollouts: list[Path],
    min_anchor_facts: int,
) -> None:  # fmt: skip
    """Judge a report: its claims against the rollouts, its findings against the anchor facts.

    Without rollouts the score rests on wording, and says so. The exit code is 1 if too few facts can be used.
    """
    from blade.package import report_score

    with Progress() as progress, _explained():
        case = report_score.case(golden, anchor_facts, rollouts=rollouts)
        if not case.rollouts:
            progress.notice("no rollouts were found: the score rests on wording")
        bench = report_score.bench_for(case, progress, min_anchor_facts)
        reward = report_score.as_json(report_score.judged(report_score.report_text(report), bench), bench)
    if output_dir is not None:
        _write(Path(output_dir) / "reward.json", reward)
    click.echo(json.dumps(reward, indent=2))


@click.command(short_help="Show that the judge ranks reports by their quality.")
@_file("--golden-report", help="The golden report.", what="a golden report", required=True)
@_file("--anchor-facts", help="Its anchor facts.", what="a file of anchor facts", required=True)
@_file("--shallow-report", help="Its shallow baseline.", what="a shallow report", required=True)
@click.option("--output-dir", metavar="DIR", help="Default: calibration-runs/ and the time.")
@click.option("--min-spread", type=float, default=0.50, show_default=True, help="Golden less shallow, at least.")
@ROLLOUTS
@_least(MIN_ANCHORS, "Facts that must be usable.", 1)
@click.option(
    "--seeds", type=click.IntRange(1), default=2, show_default=True, help="Draws of each random attack; the worst counts."
)
@json_option("Print the summary as JSON.")
def calibrate(
    golden_report: Path, anchor_facts: Path, shallow_report: Path, output_dir: str | None, min_spread: float,
    rollouts: list[Path], min_anchor_facts: int, seeds: int, as_json: bool,
) -> None:  # fmt: skip
    """Show that the judge ranks reports by quality: golden above shallow, attacks low, graded ones in order.

    Graded reports are read from graded/ beside the golden report, where they exist. The exit code is 0 only
    if everything separates.
    """
    from blade.package import calibration as battery
    from blade.package import layout, report_score

    folder = Path(output_dir or f"{layout.TRIALS}/{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    with Progress() as progress, _explained():
        case = report_score.case(golden_report, anchor_facts, shallow_report, rollouts)
        bench = report_score.bench_for(case, progress, min_anchor_facts)
        graded = layout.golden(golden_report).graded
        texts = {grade: report_score.report_text(report) for grade, report in graded.items()}
        calibration = battery.calibrated(case, bench, texts, min_spread, seeds)
    for name, reward in battery.rewards(calibration, bench).items():
        _write(folder / name / "reward.json", reward)
    summary = battery.as_summary(calibration)
    _write(folder / "calibration_summary.json", summary)
    click.echo(json.dumps(summary, indent=2) if as_json else "\n".join(calibration_lines(calibration)))
    click.echo(f"Wrote {folder}/calibration_summary.json", err=as_json)
    exit_failed(calibration.problems)


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
    from blade.package import report_score

    try:
        yield
    except report_score.CannotJudge as why:
        click.echo(f"{under('error: cannot judge: ', why.message)}\n{under('hint:  ', why.hint)}", err=True)
        click.echo(f"see:   {with_pages('docs/package.md#refine-it')}", err=True)
        raise click.exceptions.Exit(EXIT_FAILED_GATE) from why


def _refuse_kept(output: str, why: str) -> None:
    """Do not write over what a person has changed."""
    if why:
        hint = "name another file, or add --force to write over it"
        raise UsageError(f"{output} {why}; it was kept", hint, "output-not-empty")


@click.command("sanitize", short_help="Write a copy of a package that can be shared.")
@BENCHMARK_DIR
@output_option("Where the clean package goes.", required=True)
@KEY
@click.option("--policy", "policy_path", metavar="FILE", help="A blade.toml with [sharing] (default: the package's).")
@REPORT
@json_option("Print what was removed as JSON.")
@force_option("Write into a folder that holds files.")
def sanitize(
    benchmark_dir: str, output: str, key_path: str | None, policy_path: str | None, report_path: str | None,
    as_json: bool, force: bool,
) -> None:  # fmt: skip
    """Take secrets, people, hosts, homes and names out of rollouts, reports and anchors alike.

    Placeholders are the same everywhere, so that the clean package still validates. The exit code is 1 if
    anything private is left.
    """
    from blade.package.sharing import sanitise
    from blade.sanitize import as_json as removed_as_json
    from blade.sanitize import leak_lines, read_key, read_policy

    target = Path(output)
    if report_path:
        settings = settings_of([Path(benchmark_dir)], key_path, policy_path)
        inside = (path for path in Path(benchmark_dir).rglob("*") if path.is_file())
        refuse_taken(Path(report_path), force, [*settings, *inside])
    if target.is_dir() and not force and any(not place.name.startswith(STAGING) for place in target.iterdir()):
        raise UsageError(f"{output} holds files already", "name another folder, or add --force", "output-not-empty")
    policy = read_policy(Path(policy_path)) if policy_path else None
    key = read_key(Path(key_path)) if key_path else None
    with Progress() as progress:
        removed = put(lambda: sanitise(Path(benchmark_dir), target, policy, key, progress, force), target)
    if report_path:
        put(lambda: put_text(Path(report_path), removed_as_json(removed), force), Path(report_path))
    if as_json:
        click.echo(removed_as_json(removed), nl=False)
    else:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in removed.kinds.items())
        click.echo(f"Removed {removed.total:,} values{f': {kinds}' if kinds else ''}")
        for name, why in removed.left_out.items():
            click.echo(line(f"Left out {name}: it {why}", 400))
        wrote = f"Wrote {output}/; keep the key with the raw rows, not with these"
        click.echo("\n".join(line(text, 400) for text in leak_lines(removed) or [wrote]))
    exit_failed(removed.leaks)


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _write(path: Path, data: dict[str, Any]) -> None:
    from blade.package.layout import write_text

    put(lambda: write_text(path, _json(data)), path)

"""Write the report of runs: what is counted, what the traces say, and what cannot be said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

import blade
from blade import measure
from blade.formats import single_rows
from blade.model import Buckets, Cause, Gap, Level, Loss, Outcome, Report, Run, Trust
from blade.pipeline.load import MAX_SKIPPED, Loaded, refuse_changed
from blade.report import queried_numbers
from blade.tables import index as store

if TYPE_CHECKING:
    from blade.model import Benchmark, Source, TaskMatrix
    from blade.pipeline.trace_reading import Read, Reading


@cache
def card() -> dict[str, Any] | None:
    """The card as `make accuracy` wrote it; None if it was never run."""
    file = resources.files("blade") / "accuracy.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


# Flags of the columns that stand before the causes; the others are told with the aggregate results.
TRUSTED = ("lost_rows", "absent_tasks", "failed_rows", "masked_rows", "missing_rows_matter", "unexpected_keys", "duplicate_rows")

# What a report cannot say when a sidecar is missing.
UNSUPPORTED = {
    "materialized_inputs": "expected rollouts are inferred; a task that lost all its repeats is not seen",
    "failures": "rollouts that failed cannot be told from those that left no trace",
    "aggregate_metrics": "there is no number of the evaluation itself to hold ours against",
    "config": "settings that no row states are unknown, not default",
}


def with_digests(report: Report, loaded: Sequence[Loaded]) -> Report:
    """The report with the sha256 of each source, which takes a second per gigabyte the first time."""
    runs = [replace(run, sources=tuple(_digested(source) for source in run.sources)) for run in report.runs]
    for entry in loaded:
        refuse_changed(entry)
    return replace(report, runs=tuple(runs))


def _digested(source: Source) -> Source:
    return source if source.path == "-" else replace(source, sha256=store.sha256_of(Path(source.path)))


def summarise(loaded: Sequence[Loaded], command: str, threshold: float | None = None) -> Report:
    """Scores, buckets and health from the columns alone: no trace is opened."""
    unread = Gap("causes, mechanisms and recommendations", "the trajectories were not read, as asked")
    pages = []
    for entry in loaded:
        scoring, run = scoring_of(entry, threshold), entry.run
        health = measure.health.health(run.rollouts, run.coverage, scoring, single_rows.quoter(run))
        pages.append(replace(_page(entry, scoring), health=tuple(health)))
    report = _joined(loaded, pages, command)
    return replace(report, gaps=(unread, *report.gaps))


def listed(loaded: Sequence[Loaded], scored: Sequence[measure.Scoring], command: str) -> Report:
    """The runs by name and score, and nothing that takes longer."""
    pairs = zip(loaded, scored, strict=True)
    pages = [Report({}, (_run(entry, scoring),), gaps=_gaps(entry, scoring)) for entry, scoring in pairs]
    return _joined(loaded, pages, command)


def joined(loaded: Sequence[Loaded], pages: Sequence[Report], readings: Sequence[Reading], command: str) -> Report:
    """One report of what was counted and what the traces say, with how right the labels were where that is known."""
    whole = [_with_reading(page, reading) for page, reading in zip(pages, readings, strict=True)]
    return replace(_joined(loaded, whole, command), accuracy=card())


def with_matrix(report: Report, read: Sequence[Read], readings: Sequence[Reading]) -> Report:
    """With what several runs together say of their tasks."""
    from blade.diagnose.matrix import matrix

    models = [entry.loaded.run.model for entry in read]
    grid = matrix([entry.diagnosis for entry in readings], models, [entry.judged.task.tolist() for entry in read])
    if grid is None:
        return report
    doubts = [_golds_to_review(report, run, grid) for run in grid.runs] if grid.gold_to_review else []
    return replace(report, task_matrix=grid, trust=(*report.trust, *doubts))


def _golds_to_review(report: Report, run: str, matrix: TaskMatrix) -> Trust:
    """That different models agree on another answer than the expected one, with the rows of these tasks."""
    names = matrix.gold_to_review
    shown = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
    text = (
        f"{len(names)} task{'s' if len(names) > 1 else ''} to review: different models agree on another answer than the "
        f"expected one ({shown})."
    )
    tasks = [task for task in report.tasks if task.run == run and task.task in names]
    rows = sum(each.outcome is not Outcome.MISSING for task in tasks for each in task.repeats)
    keys = ", ".join(queried_numbers.quoted(name) for name in names)
    query = f"select run, task, repeat, row from rollouts {queried_numbers.where(run, f'task in ({keys})')}"
    return Trust(run, "warning", Cause.TASK_OR_VERIFIER, text, rows, query, "Have a person review these golds.")


def drafts(loaded: Sequence[Loaded]) -> list[measure.slices.Draft]:
    """A draft of the benchmark facts of each run."""
    return [measure.slices.draft(entry.run.rollouts, scoring_of(entry, None)) for entry in loaded]


def scoring_of(entry: Loaded, threshold: float | None) -> measure.Scoring:
    """How the rows of a run count; what the user asked for goes before `blade.toml`."""
    return measure.scoring.scoring(
        entry.run.rollouts, entry.benchmark.pass_threshold if threshold is None else threshold
    )


# The parts of a report that are one list over all runs.
LISTS = (
    "runs", "measures", "buckets", "tasks", "health", "funnels", "slices", "compared", "trust", "groups",
    "unexplained", "losses", "attributions", "run_causes", "recommendations", "agreements",
)  # fmt: skip


def _joined(loaded: Sequence[Loaded], pages: Sequence[Report], command: str) -> Report:
    lists: dict[str, Any] = {
        name: tuple(entry for page in pages for entry in getattr(page, name)) for name in LISTS
    }
    # skipped lines of all sources; runs of one file share theirs
    n_skipped = {tuple(source.path for source in entry.sources): entry.n_skipped for entry in loaded}
    return Report(
        made_by={"blade": blade.__version__, "command": command}, **lists,
        skipped=tuple(dict.fromkeys(line for entry in loaded for line in entry.skipped))[:MAX_SKIPPED],
        skipped_total=sum(n_skipped.values()),
        gaps=tuple(dict.fromkeys(gap for page in pages for gap in page.gaps)),
        judgements={run: judged for page in pages for run, judged in page.judgements.items()},
        benchmark={entry.name: _with_guesses(entry) for entry in loaded},
    )


def _with_reading(page: Report, read: Reading) -> Report:
    """The page of a run with what its traces say."""
    conclusion, bounded = read.concluded, bool(page.losses)
    people = read.diagnosis.people
    if people.is_regrouped:  # by content; what counts tries of an index means nothing
        page = replace(
            page,
            buckets=(Buckets(people.run, *people.by_outcome(), page.buckets[0].missing),),
            measures=(
                *(count for count in page.measures if count.name not in measure.outcome_rates.OF_TRIES),
                *measure.outcome_rates.of_tries(people.run, people.task, people.passed, "by prompt"),
            ),
        )
    # flags of the columns count by the index of the file: they say nothing where that does not identify a task
    flags = () if people.is_regrouped else read.health
    counted = [
        Trust(flag.run, "warning", None, flag.text, round((flag.value or 0) * flag.n), "")
        for flag in flags if flag.level is not Level.INFO and flag.flag in TRUSTED
    ]  # fmt: skip
    return replace(
        page, health=read.health, trust=(*conclusion.trust, *counted), groups=conclusion.groups,
        slices=conclusion.slices, unexplained=(conclusion.unexplained,), run_causes=conclusion.run_causes,
        losses=conclusion.losses if bounded else (), attributions=conclusion.attributions if bounded else (),
        recommendations=conclusion.recommendations, agreements=read.agreements, gaps=(*page.gaps, *read.gaps),
        judgements={read.judged.run: read.judgements} if read.judgements else {},
    )  # fmt: skip


def measured(entry: Loaded, scoring: measure.Scoring) -> Report:
    """What is counted of one run: scores with intervals, tasks, numbers that were reported; health follows with the traces."""
    rollouts, coverage, benchmark = entry.run.rollouts, entry.run.coverage, entry.benchmark
    page = _page(entry, scoring)
    of_outcomes = measure.outcome_rates
    more = (*of_outcomes.majority(rollouts, scoring, benchmark), *of_outcomes.effort(rollouts, scoring))
    return replace(
        page,
        measures=(*page.measures, *more),
        tasks=measure.scoring.task_results(rollouts, coverage, scoring),
        compared=tuple(measure.reconciliation.compared(entry.name, entry.reported, rollouts, coverage, scoring)),
    )


def _page(entry: Loaded, scoring: measure.Scoring) -> Report:
    """What the columns of one run say at once."""
    rollouts, coverage, benchmark = entry.run.rollouts, entry.run.coverage, entry.benchmark
    has_losses = scoring.score is not None and scoring.is_bounded and not scoring.is_unscored
    return Report(
        made_by={},
        runs=(_run(entry, scoring),),
        measures=tuple(measure.outcome_rates.measures(entry.name, rollouts, coverage, scoring)),
        buckets=(measure.scoring.buckets(rollouts, scoring),),
        funnels=(measure.funnel.funnel(rollouts, coverage, scoring, benchmark),),
        losses=(
            Loss(entry.name, Cause.UNDETERMINED, "not attributed", 1.0 - (scoring.score or 0.0)),
        ) if has_losses else (),
        gaps=_gaps(entry, scoring),
    )


def _run(entry: Loaded, scoring: measure.Scoring) -> Run:
    return Run(
        name=entry.name, model=entry.run.model, agent=entry.run.agent, benchmark=entry.benchmark.name,
        sources=entry.sources, artifacts=entry.artifacts, notes=entry.notes,
        settings={**entry.settings, "tasks grouped by": entry.run.rollouts.grouped_by},
        n_tasks=len(entry.run.rollouts.task_keys), n_rollouts=len(entry.run.rollouts.task),
        coverage=entry.run.coverage, reward_kind=scoring.reward_kind, pass_threshold=scoring.threshold,
        has_pass_rate=scoring.has_pass_rate, score_name=scoring.score_name, score=scoring.score,
        oracle=measure.outcome_rates.oracle(scoring),
        outcomes=measure.scoring.outcome_counts(entry.run.coverage, scoring),
    )


def _with_guesses(entry: Loaded) -> Benchmark:
    """The benchmark facts, and what the rows were taken to say where no `blade.toml` does."""
    facts = entry.benchmark
    if facts.path is not None:
        return facts
    guesses = [f"tasks are told apart by {entry.run.rollouts.grouped_by}"]
    if "extracted_answer" in entry.run.rollouts.fields:
        guesses.append("the answer of a rollout is its extracted_answer")
    return replace(facts, inferred=tuple(guesses))


def _gaps(entry: Loaded, scoring: measure.Scoring) -> tuple[Gap, ...]:
    missing = {artifact.kind for artifact in entry.artifacts if not artifact.present}
    gaps = [*entry.gaps]
    gaps += [Gap(f"no {kind} file of {entry.name}", why) for kind, why in UNSUPPORTED.items() if kind in missing]
    if not scoring.is_bounded:
        gaps.append(Gap(f"losses of {entry.name}", "rewards leave [0, 1], so there is no full score to lose from"))
    if not scoring.has_pass_rate:
        why = "no threshold says what passes; give --pass-threshold"
        gaps.append(Gap(f"pass rates and buckets of {entry.name}", why))
    return (*gaps, *measure.slices.gaps(entry.run.rollouts, scoring, entry.benchmark))

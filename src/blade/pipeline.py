"""The whole flow, in order, on one page: paths to indexed runs, indexed runs to a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

import blade
from blade import ingest, measure
from blade.errors import NothingToRead, Unreadable
from blade.ingest import assemble, find, opened, sidecars
from blade.ingest.rows import Rows
from blade.model import (
    Artifact,
    Benchmark,
    Cause,
    Gap,
    Loss,
    Report,
    ReportedNumber,
    Run,
    Skipped,
    Source,
)
from blade.store import index as store
from blade.store.columns import Index
from blade.store.index import Watcher

# What a report cannot say when a sidecar is missing.
UNSUPPORTED = {
    "materialized_inputs": "expected rollouts are inferred; a task that lost all its repeats is not seen",
    "failures": "rollouts that failed cannot be told from those that left no trace",
    "aggregate_metrics": "there is no number of the evaluation itself to hold ours against",
    "config": "settings that no row states are unknown, not default",
}
MAX_SKIPPED = 1000  # listed in a report; all are counted
LATER = (
    ("signatures, behaviours and mechanisms", "this version does not read the trajectories"),
    (
        "root causes, run causes and recommendations",
        "they need the behaviours; every lost point is undetermined",
    ),
    ("clean_pass_at_1", "it needs root causes to tell infrastructure, task and data faults from the model"),
    ("paired comparison of runs", "this version measures each run by itself"),
)


class Loaded(msgspec.Struct, frozen=True):
    """One run with everything that was found beside it."""

    name: str
    run: assemble.Assembled
    benchmark: Benchmark
    artifacts: tuple[Artifact, ...]
    sources: tuple[Source, ...]
    notes: tuple[str, ...]
    settings: dict[str, str]
    reported: tuple[ReportedNumber, ...]
    skipped: tuple[Skipped, ...]
    n_skipped: int
    gaps: tuple[Gap, ...] = ()  # what was passed over while reading, told once for all runs


def load(specs: Sequence[str], watcher: Watcher, notes: Path | None = None) -> list[Loaded]:
    """Find, index and assemble the runs that `specs` name; what is passed over becomes a gap."""
    told: list[str] = []

    def notice(text: str) -> None:
        told.append(text)
        watcher.notice(text)

    loaded = [run for found in find.runs(specs, notice) for run in _loaded(found, watcher, notice, notes)]
    if not loaded:
        raise NothingToRead(
            "nothing to read", "give a rollouts file, a folder, or a glob of shards", "nothing-to-read"
        )
    gaps = tuple(Gap("read in part", text) for text in dict.fromkeys(told))
    return [replace(loaded[0], gaps=gaps), *loaded[1:]]


def _loaded(
    found: find.Found, watcher: Watcher, notice: Callable[[str], None], notes: Path | None
) -> list[Loaded]:
    artifacts = sidecars.artifacts(found)
    benchmark = sidecars.benchmark(artifacts)
    main = [store.open_index(path, ingest.FORMATS["nemo_gym"], watcher) for path in found.paths]
    _refuse_empty(found, main)
    inputs, failures = (_indexed(artifacts, kind, watcher) for kind in ("materialized_inputs", "failures"))
    beside = (Rows(list(inputs)) if inputs else None, Rows(list(failures)) if failures else None)
    runs = assemble.assemble(found.name, Rows(list(main)), *beside, benchmark, notice)
    reported = sidecars.reported(found.name, artifacts, notice)
    settings = sidecars.settings(artifacts, notice)
    read = [*main, *inputs, *failures]
    return [
        Loaded(
            name=run.rollouts.run,
            run=run,
            benchmark=benchmark,
            artifacts=tuple(artifacts),
            sources=tuple(_source(index) for index in main),
            notes=sidecars.notes(artifacts, notes),
            settings={**run.settings, **settings},
            reported=tuple(
                number for number in reported if number.agent in ("", run.agent) or len(runs) == 1
            ),
            skipped=tuple([entry for index in read for entry in index.skipped()][:MAX_SKIPPED]),
            n_skipped=sum(index.n_skipped for index in read),
        )
        for run in runs
    ]


def _indexed(artifacts: list[Artifact], kind: str, watcher: Watcher) -> list[Index]:
    paths = [path for path in sidecars.of_kind(artifacts, kind) if path.stat().st_size]
    return [store.open_index(path, ingest.FORMATS["nemo_gym"], watcher) for path in paths]


def _source(index: Index) -> Source:
    return Source(str(index.path), None, index.manifest.size, index.n_rows)


def _refuse_empty(found: find.Found, main: list[Index]) -> None:
    names = ", ".join(str(path) for path in found.paths[:3])
    if any(index.n_rows for index in main):
        if not any(opened.holds_rollouts(index) for index in main):
            raise NothingToRead(
                f"no row of {names} has a response, a request or a reward",
                "give the file that `eval run` wrote with --output",
                "no-rollouts",
            )
        return
    skipped = [entry for index in main for entry in index.skipped()]
    if not skipped:
        raise NothingToRead(f"{names} is empty", "a run writes one JSON line per rollout", "nothing-to-read")
    first = skipped[0]
    raise Unreadable(
        f"no line of {names} can be read; line {first.line}: {first.reason}",
        "a rollouts file holds one JSON object per line, in UTF-8",
        "no-readable-rows",
    )


def with_digests(report: Report) -> Report:
    """The report with the sha256 of each source, which takes a second per gigabyte the first time."""
    runs = [replace(run, sources=tuple(_digested(source) for source in run.sources)) for run in report.runs]
    return replace(report, runs=tuple(runs))


def _digested(source: Source) -> Source:
    return source if source.path == "-" else replace(source, sha256=store.sha256_of(Path(source.path)))


def summarise(loaded: Sequence[Loaded], command: str, threshold: float | None = None) -> Report:
    """Scores, buckets and health: what the terminal shows."""
    return _report(loaded, command, threshold, in_full=False)


def diagnose(loaded: Sequence[Loaded], command: str, threshold: float | None = None) -> Report:
    """Everything that is known of the runs."""
    return _report(loaded, command, threshold, in_full=True)


def drafts(loaded: Sequence[Loaded]) -> list[measure.draft.Draft]:
    """A draft of the benchmark facts of each run."""
    return [
        measure.draft.draft(
            one.run.rollouts, measure.scoring.scoring(one.run.rollouts, one.benchmark.pass_threshold)
        )
        for one in loaded
    ]


def _report(loaded: Sequence[Loaded], command: str, threshold: float | None, in_full: bool) -> Report:
    pages = [_page(one, threshold, in_full) for one in loaded]
    return Report(
        made_by={"blade": blade.__version__, "command": command},
        runs=tuple(run for page in pages for run in page.runs),
        measures=tuple(entry for page in pages for entry in page.measures),
        buckets=tuple(entry for page in pages for entry in page.buckets),
        tasks=tuple(entry for page in pages for entry in page.tasks),
        health=tuple(entry for page in pages for entry in page.health),
        funnels=tuple(entry for page in pages for entry in page.funnels),
        slices=tuple(entry for page in pages for entry in page.slices),
        findings=tuple(entry for page in pages for entry in page.findings),
        compared=tuple(entry for page in pages for entry in page.compared),
        losses=tuple(entry for page in pages for entry in page.losses),
        skipped=_skipped(loaded)[:MAX_SKIPPED],
        skipped_total=_n_skipped(loaded),
        gaps=tuple(dict.fromkeys(gap for page in pages for gap in page.gaps)),
        benchmark={one.name: _with_guesses(one) for one in loaded},
    )


def _page(one: Loaded, threshold: float | None, in_full: bool) -> Report:
    """The report of one run."""
    rollouts, coverage, benchmark = one.run.rollouts, one.run.coverage, one.benchmark
    given = threshold if threshold is not None else benchmark.pass_threshold
    scoring = measure.scoring.scoring(rollouts, given)
    quote = opened.quoter(one.run)
    page = Report(
        made_by={},
        runs=(_run(one, scoring),),
        measures=tuple(measure.outcomes.measures(one.name, rollouts, coverage, scoring)),
        buckets=(measure.tasks.buckets(rollouts, scoring),),
        health=tuple(measure.health.health(rollouts, coverage, scoring, quote)),
        funnels=(measure.funnel.funnel(rollouts, coverage, scoring, benchmark),),
        findings=tuple(measure.identity.findings(rollouts, quote)),
        losses=_losses(one.name, scoring),
        gaps=_gaps(one, scoring),
    )
    if not in_full:
        return page
    return replace(
        page,
        measures=(
            *page.measures,
            *measure.majority.measures(rollouts, scoring, benchmark),
            *measure.effort.measures(rollouts, scoring),
        ),
        tasks=measure.tasks.task_results(rollouts, coverage, scoring),
        slices=tuple(measure.slices.slices(rollouts, scoring, benchmark)),
        compared=tuple(measure.compared.compared(one.name, one.reported, rollouts, coverage, scoring)),
    )


def _run(one: Loaded, scoring: measure.Scoring) -> Run:
    return Run(
        name=one.name,
        model=one.run.model,
        agent=one.run.agent,
        benchmark=one.benchmark.name,
        sources=one.sources,
        artifacts=one.artifacts,
        notes=one.notes,
        settings={**one.settings, "tasks grouped by": one.run.rollouts.grouped_by},
        n_tasks=len(one.run.rollouts.task_keys),
        n_rollouts=len(one.run.rollouts.task),
        coverage=one.run.coverage,
        reward_kind=scoring.reward_kind,
        pass_threshold=scoring.threshold,
        has_pass_rate=scoring.has_pass_rate,
        score_name=scoring.score_name,
        score=scoring.score,
        oracle=measure.outcomes.oracle(scoring),
        outcomes=measure.scoring.outcome_counts(one.run.coverage, scoring),
    )


def _with_guesses(one: Loaded) -> Benchmark:
    """The benchmark facts, and what the rows were taken to say where no `blade.toml` does."""
    facts = one.benchmark
    if facts.path is not None:
        return facts
    guesses = [f"tasks are told apart by {one.run.rollouts.grouped_by}"]
    if "extracted_answer" in one.run.rollouts.fields:
        guesses.append("the answer of a rollout is its extracted_answer")
    return replace(facts, inferred=tuple(guesses))


def _losses(name: str, scoring: measure.Scoring) -> tuple[Loss, ...]:
    if scoring.score is None or not scoring.is_bounded:
        return ()
    return (Loss(name, Cause.UNDETERMINED, "not attributed", 1.0 - scoring.score),)


def _gaps(one: Loaded, scoring: measure.Scoring) -> tuple[Gap, ...]:
    missing = [artifact.kind for artifact in one.artifacts if not artifact.present]
    gaps = [*(Gap(what, why) for what, why in LATER), *one.gaps]
    absent = [(kind, why) for kind, why in UNSUPPORTED.items() if kind in missing]
    gaps += [Gap(f"no {kind} file of {one.name}", why) for kind, why in absent]
    if not scoring.is_bounded:
        gaps.append(
            Gap(f"losses of {one.name}", "rewards leave [0, 1], so there is no full score to lose from")
        )
    if not scoring.has_pass_rate:
        gaps.append(
            Gap(
                f"pass rates and buckets of {one.name}",
                "no threshold says what passes; give --pass-threshold",
            )
        )
    gaps += measure.slices.gaps(one.run.rollouts, scoring, one.benchmark)
    return tuple(gaps)


def _skipped(loaded: Sequence[Loaded]) -> tuple[Skipped, ...]:
    return tuple(dict.fromkeys(entry for one in loaded for entry in one.skipped))


def _n_skipped(loaded: Sequence[Loaded]) -> int:
    """Skipped lines of all sources; runs of one file share theirs."""
    return sum({tuple(s.path for s in one.sources): one.n_skipped for one in loaded}.values())

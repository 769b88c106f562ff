"""Make the tables of loaded runs, once, beside their index; and ground for queries over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from blade import measure
from blade.errors import Unreadable
from blade.model import Report
from blade.pipeline.load import Loaded, refuse_changed
from blade.pipeline.report_pages import scoring_of
from blade.query.query_ground import Files, Ground
from blade.tables import cache, database, trace_tables, workers
from blade.tables import index as store
from blade.tables.index_files import OpenPart
from blade.tables.rollouts import Columns, Judged, laid_out, tasks

if TYPE_CHECKING:
    from blade.query.engine import Wish

_TOGETHER = 400  # rows below which a second process costs more than it brings


def ground_of(
    loaded: Sequence[Loaded], threshold: float | None = None, watcher: store.Watcher | None = None,
    report: Report | None = None,
) -> Ground:
    """Ground for queries over runs; `report` answers what is asked of the engine."""
    watcher = watcher or store.Silent()

    def files(with_traces: bool) -> tuple[Files, ...]:
        return tuple(_files(entry, threshold, with_traces, watcher) for entry in loaded)

    engine = _engine(loaded, threshold, watcher, report)
    return Ground(tuple(entry.name for entry in loaded), files, engine)


def _engine(
    loaded: Sequence[Loaded], threshold: float | None, watcher: store.Watcher, report: Report | None
) -> Any:
    """What the engine concludes, when it is first asked: of each run, and of several compared.

    Comparisons are those of `blade compare`, with the baseline, margin and depth that the query names.
    """
    from blade.query import engine

    reports: dict[Wish | None, Report] = {}

    def concluded(wish: Wish | None) -> Report:
        from blade.pipeline import comparing, stages

        if wish is not None and wish.baseline == loaded[0].name:
            wish = replace(wish, baseline=None)
        if wish is None and len(loaded) > 1 and comparing.shared_threshold(loaded, threshold) == threshold:
            wish = engine.Wish()  # the runs are scored as by themselves: a diagnosis holds the same
        if wish not in reports and wish is None:
            reports[wish] = stages.diagnose(list(loaded), "query", threshold, watcher)
        elif wish not in reports and wish is not None:
            reports[wish] = comparing.compare(
                loaded, "query", threshold=threshold, margin=wish.margin, baseline=wish.baseline,
                ordered=True, quick=wish.quick, watcher=watcher,
            )  # fmt: skip
        return reports[wish]

    def ask(query: str) -> Any:
        wish = engine.wish(query, [entry.name for entry in loaded])
        return engine.evaluate(query, report if report is not None else concluded(wish))

    return ask


def _files(entry: Loaded, threshold: float | None, with_traces: bool, watcher: store.Watcher) -> Files:
    # the tables depend on the files of a run and their lines, our code, its name, agent and rows, and the threshold
    lines = [part.entry.source for part in entry.run.rows.parts if isinstance(part, OpenPart)]
    key = cache.key(entry.stamps, entry.name, entry.run.agent or "", str(threshold), str(len(entry.run.rollouts.task)), *lines)
    if all(source.path != "-" for source in entry.sources):  # standard input cannot be found again
        try:
            return _files_in(cache.folder_for(Path(entry.sources[0].path)), key, entry, threshold, with_traces, watcher)
        except cache.Unwritable as error:
            watcher.notice(f"the cache {cache.root()} cannot be written ({error}); using temporary tables")
    try:
        return _files_in(Path(cache.scratch()), key, entry, threshold, with_traces, watcher)
    except cache.Unwritable as error:
        hint = "free some disk space, or set BLADE_CACHE_DIR to a folder on a disk that has some"
        raise Unreadable(f"no room for the tables of {entry.name}: {error}", hint, "no-space") from error


def _files_in(
    folder: Path, key: str, entry: Loaded, threshold: float | None, with_traces: bool, watcher: store.Watcher
) -> Files:
    path = folder / f"tables-{key}.duckdb"
    if not path.exists():
        if len(entry.run.rollouts.task) > 50_000:
            watcher.notice(f"making the tables of {entry.name}")
        scoring = scoring_of(entry, threshold)
        judged = _judged(entry, scoring)
        laid = laid_out(entry.run, judged)
        with database.writing(path) as writer:
            writer.add("rollouts", laid.rollouts)
            writer.add("tasks", tasks(entry.run, judged, laid.gold))
            writer.add("runs", _run_columns(entry, scoring))
            kinds = {"presence": np.int64, "distinct": np.int64, "is_cut": bool}
            names = ("path", "column", "role", "type", "presence", "distinct", "example", "is_cut")
            columns = {name: [getattr(each, name) for each in laid.fields] for name in names}
            writer.add("fields", {name: np.array(column, kinds.get(name, object)) for name, column in columns.items()})
            writer.add("checks", laid.checks)
            writer.add("answers", laid.answers)
        cache.trim()
    return Files(entry.name, str(path), *([_traces(folder, key, entry, watcher)] if with_traces else []))


def _judged(entry: Loaded, scoring: measure.Scoring) -> Judged:
    n = len(entry.run.rollouts.task)
    passed, score = np.zeros(n, bool), np.zeros(n)
    passed[scoring.rows], score[scoring.rows] = scoring.row_passed, scoring.row_score
    names = np.array([*(outcome.value for outcome in measure.scoring.OUTCOMES), None], object)
    return Judged(passed, names[scoring.outcome], score, scoring.has_pass_rate)


def _run_columns(entry: Loaded, scoring: measure.Scoring) -> Columns:
    coverage, rollouts = entry.run.coverage, entry.run.rollouts
    counts = (
        "expected", "scored", "failed", "masked", "lost", "duplicates", "identical_duplicates", "superseded",
        "unnumbered_copies", "unexpected", "repeats",
    )  # fmt: skip
    texts = {
        "model": entry.run.model, "agent": entry.run.agent, "benchmark": entry.benchmark.name,
        "score_name": scoring.score_name, "reward_kind": scoring.reward_kind.value,
        "path": entry.given or entry.sources[0].path,
    }  # fmt: skip
    numbers: dict[str, Any] = {"n_tasks": len(rollouts.task_keys), "n_rollouts": len(rollouts.task)}
    numbers |= {name: getattr(coverage, name) for name in counts} | {"pass_threshold": scoring.threshold}
    table: Columns = {name: np.array([value], object) for name, value in texts.items()}
    table |= {name: np.array([value]) for name, value in numbers.items()}
    table["score"] = np.ma.masked_array(np.array([scoring.score or 0.0]), [scoring.score is None])
    return table


def _traces(folder: Path, key: str, entry: Loaded, watcher: store.Watcher) -> tuple[str, ...]:
    """The files of the steps, calls and texts of a run, written by as many processes as there are cores."""
    n = len(entry.run.rollouts.task)
    n_parts = store.n_cores() if n > _TOGETHER else 1
    paths = [folder / f"traces-{key}-{part}-{n_parts}.duckdb" for part in range(n_parts)]
    missing = [part for part, path in enumerate(paths) if not path.exists()]
    if missing:
        watcher.start(f"reading the traces of {entry.name}", len(missing), "parts")

        def work(part: int) -> bytes:
            with database.writing(paths[part]) as writer:
                for batch in trace_tables.batches(entry.run, range(part, n, n_parts), entry.benchmark.tools):
                    for table, columns in batch.items():
                        writer.add(table, columns)
            return b"ok"

        done = workers.streamed(work, missing, n_parts) if n_parts > 1 else ((part, None) for part in missing)
        for part, result in done:
            if result is None and not paths[part].exists():
                work(part)
            watcher.advance(1)
        try:
            refuse_changed(entry)
        except Unreadable:
            for path in paths:
                path.unlink(missing_ok=True)
            raise
    return tuple(map(str, paths))

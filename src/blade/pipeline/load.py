"""Index the files of a run and assemble its rows, with everything that was found beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from blade.agent import judgements
from blade.errors import NothingToRead, Unreadable
from blade.formats import FORMATS, assemble, field_mapping, find, sidecars, single_rows
from blade.formats.joined_rows import Rows
from blade.model import Artifact, Benchmark, Gap, Judgement, ReportedNumber, Skipped, Source
from blade.model.run_rows import MAPPED
from blade.tables import cache
from blade.tables import index as store
from blade.tables.cache import Stamp
from blade.tables.index import Watcher
from blade.tables.index_files import Index

MAX_SKIPPED = 1000  # listed in a report; all are counted


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
    judged_in: Path | None  # the file that holds judgements of the run, or would
    judgements: tuple[Judgement, ...]  # as they were kept; whether they still hold is another question
    stamps: Mapping[str, Stamp] = {}  # of every file of the run, before anything of it was read
    given: str = ""  # the file that the rows come from, where a copy of it was read
    gaps: tuple[Gap, ...] = ()  # what was passed over while reading, told once for all runs


class RunFiles(msgspec.Struct, frozen=True):
    """The files of one run: what lies beside the rollouts, and an index of every file of rows."""

    run: find.Found
    artifacts: list[Artifact]
    stamps: Mapping[str, Stamp]
    benchmark: Benchmark
    main: list[Index]
    inputs: list[Index]
    failures: list[Index]


def indexed(run: find.Found, mapping: Mapping[str, str] | None, watcher: Watcher) -> RunFiles:
    """Index the rollouts files and the row sidecars of a run; `mapping` names fields that are not NeMo Gym's."""
    paths, artifacts = list(run.paths), sidecars.artifacts(run)
    if mapping:  # copies of its files whose rows are NeMo Gym's
        paths = [field_mapping.mapped_copy(path, mapping, Path(cache.scratch())) for path in paths]
    stamps = cache.stamps_of([artifact.path for artifact in artifacts if artifact.present] + [str(path) for path in paths if mapping])
    reader = find.reader_of(paths[0]) or next(iter(FORMATS.values()))
    main = [store.open_index(path, reader, watcher) for path in paths]
    _refuse_empty(run, main)
    inputs, failures = (
        [store.open_index(path, reader, watcher) for path in sidecars.of_kind(artifacts, kind) if path.stat().st_size]
        for kind in ("materialized_inputs", "failures")
    )
    if mapping and (inputs or failures) and {"task", "repeat"} & mapping.keys():
        watcher.notice(f"--map gives the rows of {run.name} other keys than its inputs and failures have; those are left out")
        inputs, failures = [], []
    return RunFiles(run, artifacts, stamps, sidecars.benchmark(artifacts), main, inputs, failures)


def refuse_changed(entry: Loaded) -> None:
    """Refuse a run whose rows became others while they were read."""
    for rows in filter(None, (entry.run.rows, entry.run.inputs)):
        for source in rows.sources:
            if isinstance(source, Index):
                source.refuse_changed()


def assembled(
    files: RunFiles, mapping: Mapping[str, str] | None, notice: Callable[[str], None], notes: Path | None
) -> list[Loaded]:
    """Lay the rows of a file out as runs, one for each agent, with what the small sidecars say."""
    name, artifacts = files.run.name, files.artifacts
    inputs, failures = (Rows(list(rows)) if rows else None for rows in (files.inputs, files.failures))
    runs = assemble.assemble(name, Rows(list(files.main)), inputs, failures, files.benchmark.task_id, notice)
    reported = sidecars.reported(name, artifacts, notice)
    settings = sidecars.settings(artifacts, notice)
    if mapping:
        fields = ",".join(f"{target}={path}" for target, path in mapping.items())
        settings = {**settings, MAPPED: f"{files.run.paths[0]} --map {fields}"}
    judged_in = sidecars.judgements(files.run)
    judged = _judgements(judged_in, notice)
    read = [*files.main, *files.inputs, *files.failures]
    is_alone = len(runs) == 1
    return [
        Loaded(
            name=run.rollouts.run, run=run, benchmark=files.benchmark, artifacts=tuple(artifacts),
            sources=tuple(Source(str(i.path), None, i.manifest.size, i.n_rows) for i in files.main),
            notes=sidecars.notes(artifacts, notes), settings={**run.settings, **settings},
            reported=tuple(number for number in reported if is_alone or number.agent in ("", run.agent)),
            skipped=tuple([entry for index in read for entry in index.skipped()][:MAX_SKIPPED]),
            n_skipped=sum(index.n_skipped for index in read), judged_in=judged_in,
            judgements=tuple(judgement for judgement in judged if is_alone or judgement.agent == run.agent),
            stamps=files.stamps, given=str(files.run.paths[0]) if mapping else "",
        )
        for run in runs
    ]


def _judgements(path: Path | None, notice: Callable[[str], None]) -> tuple[Judgement, ...]:
    """What was judged of a run; a file that cannot be read must not cost the diagnosis."""
    if path is None:
        return ()
    try:
        judged, bad = judgements.read(path)
    except Unreadable as error:
        notice(f"{error.message}; no judgement counts")
        return ()
    if bad:
        notice(f"{bad} line(s) of {path} are no judgements; passed over")
    return judged


def _refuse_empty(run: find.Found, main: list[Index]) -> None:
    names = ", ".join(str(path) for path in run.paths[:3])
    if any(index.n_rows for index in main):
        if not any(single_rows.holds_rollouts(index) for index in main):
            hint = field_mapping.proposal(run.paths[0]) or "give the file that `eval run` wrote with --output"
            raise NothingToRead(f"no row of {names} has a response, a request or a reward", hint, "no-rollouts")
        return
    first = next((line for index in main for line in index.skipped()), None)
    if first is None:
        raise NothingToRead(f"{names} is empty", "a run writes one JSON line per rollout", "nothing-to-read")
    why = f"no line of {names} can be read; line {first.line}: {first.reason}"
    raise Unreadable(why, "a rollouts file holds one JSON object per line, in UTF-8", "no-readable-rows")

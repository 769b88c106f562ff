"""Turn paths into indexed runs, each with everything that was found beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace as replace_found
from pathlib import Path

import msgspec
from msgspec.structs import replace

from blade import formats
from blade.agent import judgements
from blade.errors import NothingToRead, Unreadable
from blade.formats import assemble, find, mapped, opened, sidecars
from blade.formats.rows import Rows
from blade.model import Artifact, Benchmark, Gap, Judgement, ReportedNumber, Skipped, Source
from blade.model.rows import MAPPED
from blade.tables import cache
from blade.tables import index as store
from blade.tables.cache import Stamp
from blade.tables.index import Watcher
from blade.tables.parts import Index

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


def load(
    specs: Sequence[str],
    watcher: Watcher,
    notes: Path | None = None,
    mapping: Mapping[str, str] | None = None,
) -> list[Loaded]:
    """Find, index and assemble the runs that `specs` name; what is passed over becomes a gap.

    `mapping` names the fields of rows that are not NeMo Gym's.
    """
    told: list[str] = []

    def notice(text: str) -> None:
        told.append(text)
        watcher.notice(text)

    runs = find.runs(specs, notice)
    loaded: list[Loaded] = []
    for found in runs:
        read = _mapped(found, mapping) if mapping else found
        if not mapping:
            loaded += _loaded(read, watcher, notice, notes)
            continue
        given = str(found.paths[0])
        fields = ",".join(f"{target}={path}" for target, path in mapping.items())
        loaded += [
            replace(run, given=given, settings={**run.settings, MAPPED: f"{given} --map {fields}"})
            for run in _loaded(read, watcher, notice, notes)
        ]
    if not loaded:
        raise NothingToRead(
            "nothing to read", "give a rollouts file, a folder, or a glob of shards", "nothing-to-read"
        )
    gaps = tuple(Gap("read in part", text) for text in dict.fromkeys(told))
    return [replace(loaded[0], gaps=gaps), *loaded[1:]]


def _mapped(found: find.Found, mapping: Mapping[str, str]) -> find.Found:
    """The run with copies of its files whose rows are NeMo Gym's."""
    folder = Path(cache.scratch()) / found.name
    copies = (mapped.mapped_copy(path, mapping, folder) for path in found.paths)
    return replace_found(found, paths=tuple(copies))


def _loaded(
    found: find.Found, watcher: Watcher, notice: Callable[[str], None], notes: Path | None
) -> list[Loaded]:
    artifacts = sidecars.artifacts(found)
    stamps = cache.stamps_of(artifact.path for artifact in artifacts if artifact.present)
    benchmark = sidecars.benchmark(artifacts)
    main = [store.open_index(path, formats.FORMATS["nemo_gym"], watcher) for path in found.paths]
    _refuse_empty(found, main)
    inputs, failures = (_indexed(artifacts, kind, watcher) for kind in ("materialized_inputs", "failures"))
    beside = (Rows(list(inputs)) if inputs else None, Rows(list(failures)) if failures else None)
    runs = assemble.assemble(found.name, Rows(list(main)), *beside, benchmark, notice)
    reported = sidecars.reported(found.name, artifacts, notice)
    settings = sidecars.settings(artifacts, notice)
    judged_in = sidecars.judgements(found)
    told = _judgements(judged_in, notice)
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
            judged_in=judged_in,
            judgements=tuple(one for one in told if len(runs) == 1 or one.agent == run.agent),
            stamps=stamps,
        )
        for run in runs
    ]


def _judgements(path: Path | None, notice: Callable[[str], None]) -> tuple[Judgement, ...]:
    """What was judged of a run; a file that cannot be read must not cost the diagnosis."""
    if path is None:
        return ()
    try:
        found, bad = judgements.read(path)
    except Unreadable as error:
        notice(f"{error.message}; no judgement counts")
        return ()
    if bad:
        notice(f"{bad} line(s) of {path} are no judgements; passed over")
    return found


def _indexed(artifacts: list[Artifact], kind: str, watcher: Watcher) -> list[Index]:
    paths = [path for path in sidecars.of_kind(artifacts, kind) if path.stat().st_size]
    return [store.open_index(path, formats.FORMATS["nemo_gym"], watcher) for path in paths]


def _source(index: Index) -> Source:
    return Source(str(index.path), None, index.manifest.size, index.n_rows)


def _refuse_empty(found: find.Found, main: list[Index]) -> None:
    names = ", ".join(str(path) for path in found.paths[:3])
    if any(index.n_rows for index in main):
        if not any(opened.holds_rollouts(index) for index in main):
            raise NothingToRead(
                f"no row of {names} has a response, a request or a reward",
                mapped.proposal(found.paths[0]) or "give the file that `eval run` wrote with --output",
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

"""Take runs from paths to a report in a list of stages: find files, read rows, index, tables, measure, diagnose, trust, report."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from blade.errors import NothingToRead, UsageError
from blade.formats import find
from blade.model import Gap, Report, Side
from blade.pipeline import report_pages
from blade.pipeline.load import Loaded, RunFiles, assembled, indexed, refuse_changed
from blade.tables import index as store

if TYPE_CHECKING:
    from blade.diagnose import Diagnosis
    from blade.measure import Scoring
    from blade.pipeline.trace_reading import Read, Reading

Made = TypeVar("Made")


class Clock:
    """Seconds by stage; what workers spend is added up over all of them."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def timed(self, stage: str, work: Callable[[], Made]) -> Made:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds[stage] += time.perf_counter() - start


@dataclass
class Work:
    """Runs on their way to a report: what the user asked for, and what the stages made of it so far."""

    watcher: store.Watcher
    command: str = ""
    specs: Sequence[str] = ()
    notes: Path | None = None
    mapping: Mapping[str, str] | None = None  # fields of rows that are not NeMo Gym's
    clock: Clock = field(default_factory=Clock)

    found: list[find.Found] = field(default_factory=list)
    files: list[RunFiles] = field(default_factory=list)
    loaded: list[Loaded] = field(default_factory=list)
    scored: Sequence[Scoring] = ()
    pages: list[Report] = field(default_factory=list)
    read: list[Read] = field(default_factory=list)
    diagnoses: list[Diagnosis] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)
    report: Report = field(default_factory=lambda: Report(made_by={}, runs=()))
    noticed: list[str] = field(default_factory=list)  # what was passed over

    def notice(self, text: str) -> None:
        self.noticed.append(text)
        self.watcher.notice(text)


Stage = Callable[[Work], None]


# -- paths to runs --------------------------------------------------------------------------------


def find_files(work: Work) -> None:
    """What the user typed -> runs: names and rollouts files."""
    work.found = find.runs(work.specs, work.notice)


def read_rows_into_an_index(work: Work) -> None:
    """Rollouts files and row sidecars -> an index of each: columns and offsets, read once and kept."""
    work.files = [indexed(run, work.mapping, work.watcher) for run in work.found]


def lay_out_tables(work: Work) -> None:
    """Columns -> rows by task and repeat, attempts and duplicates settled, and what was expected of the run."""
    for files in work.files:
        work.loaded += assembled(files, work.mapping, work.notice, work.notes)
    if not work.loaded:
        raise NothingToRead("nothing to read", "give a rollouts file, a folder, or a glob of shards", "nothing-to-read")
    gaps = tuple(Gap("read in part", text) for text in dict.fromkeys(work.noticed))
    work.loaded[0] = replace(work.loaded[0], gaps=gaps)


# -- runs to a report -----------------------------------------------------------------------------


def measure(work: Work) -> None:
    """Columns -> a page of each run: scores with intervals, tasks, slices."""
    pairs = list(zip(work.loaded, work.scored, strict=True))
    work.pages = work.clock.timed(
        "measure", lambda: [report_pages.measured(entry, scoring) for entry, scoring in pairs]
    )


def read_traces(work: Work) -> None:
    """Rows -> evidence of each rollout; the only stage that opens every row, and it opens each once."""
    from blade.pipeline import trace_reading

    pairs = zip(work.loaded, work.scored, strict=True)
    work.read = [trace_reading.traces(entry, scoring, work.watcher, work.clock) for entry, scoring in pairs]
    work.watcher.start("drawing conclusions", 0)


def diagnose_failures(work: Work) -> None:
    """Evidence -> groups of failures, by the ladder."""
    from blade.pipeline import trace_reading

    work.diagnoses = [trace_reading.climbed(read, work.clock) for read in work.read]


def trust(work: Work) -> None:
    """What may bend the score: tripwires on tasks, grading and data."""
    from blade.pipeline import trace_reading

    work.diagnoses = [trace_reading.doubted(*pair) for pair in zip(work.read, work.diagnoses, strict=True)]


def conclude(work: Work) -> None:
    """Groups -> a label for every lost point, quotations, and what to do first."""
    from blade.pipeline import trace_reading

    pairs = list(zip(work.read, work.diagnoses, strict=True))
    work.readings = work.clock.timed("conclusions", lambda: [trace_reading.concluded(*pair) for pair in pairs])


def refuse_changed_files(work: Work) -> None:
    """Everything was read: the rows must still be those that were counted."""
    for entry in work.loaded:
        refuse_changed(entry)


def report(work: Work) -> None:
    """Pages and conclusions -> one report of all runs."""
    work.report = report_pages.joined(work.loaded, work.pages, work.readings, work.command)
    if len(work.loaded) > 1:
        work.report = report_pages.with_matrix(work.report, work.read, work.readings)


def compare(work: Work) -> None:
    """Several runs -> the sides of comparisons, lost points booked under the same groups."""
    from blade.pipeline import comparison_sides

    if len(work.loaded) > 1:
        work.sides = work.clock.timed(
            "compare", lambda: comparison_sides.read_sides(work.read, work.readings, work.scored)
        )


LOADING: tuple[Stage, ...] = (find_files, read_rows_into_an_index, lay_out_tables)
DIAGNOSING: tuple[Stage, ...] = (measure, read_traces, diagnose_failures, trust, conclude, refuse_changed_files, report, compare)
STAGES = (*LOADING, *DIAGNOSING)


# -- the two halves, for those who ask ------------------------------------------------------------


def load(
    specs: Sequence[str], watcher: store.Watcher, notes: Path | None = None, mapping: Mapping[str, str] | None = None
) -> list[Loaded]:
    """Find, index and assemble the runs that `specs` name; what is passed over becomes a gap."""
    work = Work(watcher, specs=specs, notes=notes, mapping=mapping)
    for stage in LOADING:
        stage(work)
    return work.loaded


def diagnose(
    loaded: Sequence[Loaded], command: str, threshold: float | None = None, watcher: store.Watcher | None = None,
    clock: Clock | None = None, baseline: str | None = None,
) -> Report:
    """Everything that is known of the runs: what is counted, what the traces say, and why scores differ."""
    loaded = baseline_first(loaded, baseline)
    scored = [report_pages.scoring_of(entry, threshold) for entry in loaded]
    report, sides = diagnosed(loaded, scored, command, watcher, clock)
    if len(sides) < 2:  # a single run loads nothing that compares
        return report
    from blade.pipeline import comparing

    return comparing.with_comparisons(report, sides)


def baseline_first(loaded: Sequence[Loaded], baseline: str | None) -> list[Loaded]:
    """The runs with the one that the others are compared with in front; a part of a run is named by its value too."""
    if baseline is None:
        return list(loaded)
    names = [entry.name for entry in loaded]
    values = [name.rpartition("=")[2].removesuffix("]") if name.endswith("]") else name for name in names]
    if baseline not in (*names, *values):
        raise UsageError(f"there is no run {baseline}", f"the runs are: {', '.join(names[:8])}", "no-such-run")
    first = next(i for i, name in enumerate(names) if baseline in (name, values[i]))
    return [loaded[first], *loaded[:first], *loaded[first + 1 :]]


def diagnosed(
    loaded: Sequence[Loaded], scored: Sequence[Scoring], command: str, watcher: store.Watcher | None = None, clock: Clock | None = None
) -> tuple[Report, list[Side]]:
    """Each run by itself, and as a side of comparisons where there are several."""
    work = Work(watcher or store.Silent(), command, clock=clock or Clock(), loaded=list(loaded), scored=scored)
    for stage in DIAGNOSING:
        stage(work)
    return work.report, work.sides

"""Read the traces of a run and diagnose it: evidence of every row, the ladder, tripwires, and what is concluded."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from blade import diagnose, measure
from blade.agent import judgements
from blade.diagnose import conclusions, outputs, tripwires
from blade.formats import opened
from blade.model import Agreement, Gap, Health, Judged, Judgement, TaskTraces
from blade.pipeline.judging import standing
from blade.pipeline.load import Loaded
from blade.pipeline.walk import Walker
from blade.tables import cache

if TYPE_CHECKING:
    from blade.tables.index import Watcher

T = TypeVar("T")
WHOLE = 1 - 1e-9  # a reward from which a row is fully right, where no threshold is given


class Clock:
    """Seconds by stage; what workers spend is added up over all of them."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds[stage] += time.perf_counter() - start


class Seen(msgspec.Struct):
    """What the traces of one task hold, on its way from a worker."""

    rows: list[diagnose.RowEvidence]
    ended: list[outputs.Ended]
    failed: dict[str, str]  # stage -> what it failed with
    seconds: dict[str, float]


class Read(msgspec.Struct):
    """A run whose traces have been read."""

    loaded: Loaded
    scoring: measure.Scoring
    judged: Judged
    walker: Walker
    rows: list[diagnose.RowEvidence]
    grains: array[int]  # four numbers a row: its position, then what it ended with in each grain
    gaps: list[Gap]
    judgements: Mapping[str, tuple[Judgement, ...]]  # task -> the last word of each author


class Reading(msgspec.Struct, frozen=True):
    """What the traces of one run say."""

    judged: Judged
    diagnosis: diagnose.Diagnosis
    concluded: conclusions.Concluded
    health: tuple[Health, ...]  # counts about the evaluation, from the columns
    gaps: tuple[Gap, ...]
    judgements: tuple[Judgement, ...] = ()  # those that stand, and hold in the rows
    agreements: tuple[Agreement, ...] = ()


def traces(one: Loaded, scoring: measure.Scoring, watcher: Watcher, clock: Clock) -> Read:
    """The traces of a run, each opened once."""
    judged = judged_of(one, scoring)
    walker = Walker(one.run, judged, one.benchmark.tools)
    rows: list[diagnose.RowEvidence] = []
    grains = array("Q")
    failed: defaultdict[tuple[str, str], int] = defaultdict(int)
    start = time.perf_counter()
    for seen in walker.walk(walker.spans(), _seen, "reading the traces", watcher):
        rows += seen.rows
        for position, _, *hashes in seen.ended:
            grains.extend((position, *hashes))
        for stage, why in seen.failed.items():
            failed[stage, why] += 1
        for stage, seconds in seen.seconds.items():
            clock.seconds[f"{stage} (in workers)"] += seconds
    clock.seconds["read the traces (wall)"] += time.perf_counter() - start
    stand, fallen = standing(one, judged, scoring.is_bounded)
    gaps = [
        Gap(f"{stage} on {n:,} task{'s' if n > 1 else ''} of {one.name}", f"it failed: {why}")
        for (stage, why), n in sorted(failed.items())
    ]
    return Read(one, scoring, judged, walker, rows, grains, [*fallen, *gaps], stand)


def _seen(task: TaskTraces) -> Seen:
    """One task; what cannot be read is named, and the rest goes on."""
    failed: dict[str, str] = {}
    seconds: dict[str, float] = {}

    def tried(stage: str, work: Callable[[], list[T]]) -> list[T]:
        start = time.perf_counter()
        try:
            return work()
        except Exception as error:  # rows are hostile: a fault must not cost the report
            failed[stage] = f"{type(error).__name__}: {error}"[:200]
            return []
        finally:
            seconds[stage] = time.perf_counter() - start

    faults = [episode.fault for episode in task.episodes if episode.fault]
    if faults:
        failed["reading rows"] = faults[0]
    rows = tried("evidence", lambda: diagnose.observe(task))
    if len(rows) < len(task.episodes):
        rows = [diagnose.nothing_of(episode.position) for episode in task.episodes]
    return Seen(rows, tried("outputs", lambda: outputs.observe(task)), failed, seconds)


def judged_of(one: Loaded, scoring: measure.Scoring) -> Judged:
    """The rows that count."""
    import numpy as np

    rollouts, rows = one.run.rollouts, scoring.rows
    return Judged(
        run=one.name,
        task_keys=rollouts.task_keys,
        rows=rows,
        task=rollouts.task[rows].astype(np.int64),
        repeat=rollouts.repeat[rows],
        passed=scoring.row_passed,
        score=scoring.row_score,
        judged=scoring.has_pass_rate,
        unscored=scoring.unscored,
    )


def population(read: Read) -> diagnose.Population:
    """The evidence of a run with what became of its rows."""
    import numpy as np

    judged, bounded = read.judged, read.scoring.is_bounded
    passed = judged.passed.copy() if judged.judged else judged.score >= WHOLE
    tasks, counts = np.unique(judged.task, return_counts=True)
    size = dict(zip(tasks.tolist(), counts.tolist(), strict=True))
    weight = np.array([1 / size[code] / max(len(size), 1) for code in judged.task.tolist()], float)
    lost = (1.0 - judged.score) * weight if bounded else np.zeros(judged.rows.size)
    return diagnose.Population(
        judged.run,
        read.rows,
        passed,
        np.maximum(lost, 0.0),
        judged.task.copy(),
        judged.repeat,
        list(judged.task_keys),
    )


def climbed(read: Read, clock: Clock) -> diagnose.Diagnosis:
    """Climb the ladder: the groups of failures that one reason explains."""
    people = population(read)
    if read.scoring.is_unscored:
        return diagnose.nothing_to_explain(people)
    diagnosis = diagnose.climb(people, read.loaded.benchmark.codes)
    for rung, seconds in diagnosis.seconds.items():
        clock.seconds[f"ladder: {rung}"] += seconds
    return diagnosis


def doubted(read: Read, diagnosis: diagnose.Diagnosis) -> diagnose.Diagnosis:
    """The diagnosis with what may bend the score: tripwires on tasks, grading and data."""
    return tripwires.checked(diagnosis, read.scoring.score, read.scoring.row_reward, read.scoring.pass_field)


def concluded(read: Read, diagnosis: diagnose.Diagnosis) -> Reading:
    """Labels, quotations and recommendations, what people judged among them."""
    one = read.loaded
    conclusion = conclusions.conclude(
        diagnosis, read.judged.task.tolist(), read.walker.opener, read.judgements
    )
    path = one.sources[0].path
    if len(one.sources) == 1 and path in one.stamps:  # for `blade show`, which diagnoses nothing itself
        cache.keep_rows(path, one.stamps[path], dict(conclusion.blamed))
    quote = opened.quoter(one.run, read.walker.row)
    proposed = {each.task: each.proposed for each in conclusion.attributions if each.proposed is not None}
    return Reading(
        judged=read.judged,
        diagnosis=diagnosis,
        concluded=conclusion,
        health=tuple(measure.health.health(one.run.rollouts, one.run.coverage, read.scoring, quote)),
        gaps=tuple(read.gaps),
        judgements=tuple(each for standing in read.judgements.values() for each in standing),
        agreements=judgements.agreements(read.judged.run, read.judgements, proposed),
    )

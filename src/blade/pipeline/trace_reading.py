"""Read the traces of a run once, task by task on all cores, and diagnose it from their evidence."""

from __future__ import annotations

import gc
import os
import pickle
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from blade import diagnose, events, measure
from blade.agent import judgements
from blade.agent.judgements import Seen
from blade.diagnose import conclusions, equal_results, tripwires
from blade.formats import single_rows
from blade.formats.assemble import Assembled
from blade.model import Agreement, Cause, Episode, Gap, Health, Judged, Judgement, TaskTraces
from blade.pipeline import report_pages
from blade.pipeline.load import Loaded
from blade.pipeline.stages import Clock
from blade.tables import cache, workers
from blade.tables.index import Watcher

Made = TypeVar("Made")
Span = tuple[int, int]  # from, to: places in `Judged.rows`

WHOLE = 1 - 1e-9  # a reward from which a row is fully right, where no threshold is given
_MOST_FALLEN = 3  # of those that fell, named
_PIECE_ROWS = 128  # that travel together
_KEPT_BYTES = 16 << 20
_PARALLEL_ROWS = 64  # below this a second process costs more than it brings


class Walker:
    """Opens the tasks of one run; `tools` says what tools do where a person said so."""

    def __init__(self, run: Assembled, judged: Judged, tools: Mapping[str, str]) -> None:
        self._run, self._judged, self._tools = run, judged, tools
        self._place = {int(position): place for place, position in enumerate(judged.rows)}
        self._inputs = single_rows.input_rows(run)
        self._kept: dict[int, Episode] = {}  # of a run so small that no second process reads it

    def opener(self, position: int) -> Episode:
        """The row at a position of `Rollouts`, read as events: for the few rows that are quoted."""
        place = self._place[position]
        return self._kept[place] if place in self._kept else self._episode(place)

    def row(self, position: int) -> dict[str, Any]:
        """The row at a position of `Rollouts`, whether it counts or not."""
        episode = self._kept.get(self._place.get(position, -1))
        return dict(episode.trace.row) if episode is not None else single_rows.row(self._run, position)

    def _episode(self, place: int) -> Episode:
        judged = self._judged
        position = int(judged.rows[place])
        passed = bool(judged.passed[place]) if judged.judged else None
        trace = single_rows.traced(self._run, position)
        score = float(judged.score[place])
        try:
            return events.episode(trace, position, score, passed, self._tools)
        except Exception as error:  # rows are hostile: one must not cost the report
            fault = f"{type(error).__name__}: {error}"[:200]
            return Episode(trace, position, score, passed, (), "", None, {}, False, fault)

    def task(self, span: Span) -> TaskTraces:
        """All counted rollouts of one task."""
        episodes = tuple(self._episode(place) for place in range(*span))
        first = episodes[0].trace
        task_input = single_rows.given(self._run, self._inputs.get(first.rollout.task))
        gold = events.gold(first.row)  # what the task expects, from the first row that says so: some are cut short
        for row in (*(episode.trace.row for episode in episodes[1:]), task_input):
            if gold.answer is not None or gold.actions:
                break
            gold = events.gold(row)
        run, task, name = first.rollout.run, first.rollout.task, first.rollout.task_name
        return TaskTraces(run, task, name, episodes, gold, task_input)

    def spans(self) -> list[Span]:
        """The rows of each task."""
        task = self._judged.task
        if not task.size:
            return []
        edges = np.flatnonzero(np.r_[True, task[1:] != task[:-1], True]).tolist()
        return list(pairwise(edges))

    def walk(
        self, spans: list[Span], work: Callable[[TaskTraces], Made], what: str, watcher: Watcher
    ) -> Iterator[Made]:
        """What `work` makes of each task, in the order of the tasks, on all cores."""
        total = sum(end - start for start, end in spans)
        watcher.start(what, total, "rows")
        if total < _PARALLEL_ROWS or (os.cpu_count() or 1) < 2:
            # rows of a run so small stay in memory, so that none is opened again for a quotation
            rows = self._run.rollouts.row_id[self._judged.rows]
            keeps = self._run.rows.numbers("length")[rows].sum() <= _KEPT_BYTES
            for span in spans:
                task = self.task(span)
                if keeps:
                    self._kept.update(zip(range(*span), task.episodes, strict=True))
                yield work(task)
                watcher.advance(span[1] - span[0])
            return
        yield work(self.task(spans[0]))  # what it imports and compiles, every process then has
        watcher.advance(spans[0][1] - spans[0][0])
        yield from self._in_parallel(_pieces(spans[1:]), work, watcher)

    def _in_parallel(
        self, pieces: list[tuple[Span, ...]], work: Callable[[TaskTraces], Made], watcher: Watcher
    ) -> Iterator[Made]:
        def of_piece(piece: tuple[Span, ...]) -> bytes:
            return pickle.dumps([work(self.task(span)) for span in piece], pickle.HIGHEST_PROTOCOL)

        def in_worker(piece: tuple[Span, ...]) -> bytes:
            gc.disable()  # a pass over what the parent holds would copy all of its pages
            return of_piece(piece)

        done: dict[tuple[Span, ...], bytes] = {}
        waiting = iter(pieces)
        wanted = next(waiting, None)
        for piece, packed in workers.streamed(in_worker, pieces, os.cpu_count() or 1):
            # a process that failed met a fault: meet it here, where it can be told
            done[piece] = packed if packed is not None else of_piece(piece)
            watcher.advance(sum(end - start for start, end in piece))
            while wanted is not None and wanted in done:
                seen: list[Any] = pickle.loads(done.pop(wanted))
                yield from seen
                wanted = next(waiting, None)


def _pieces(spans: list[Span]) -> list[tuple[Span, ...]]:
    pieces: list[list[Span]] = []
    rows = _PIECE_ROWS
    for start, end in spans:
        if rows >= _PIECE_ROWS:
            pieces.append([])
            rows = 0
        pieces[-1].append((start, end))
        rows += end - start
    return [tuple(piece) for piece in pieces]


# ---- Judgements checked against the rows -----------------------------------------------------------


class Bench:
    """The tasks of a run, against which judgements are checked; without bounds to rewards nothing is lost."""

    def __init__(self, entry: Loaded, threshold: float | None, scoring: measure.Scoring | None = None) -> None:
        scoring = scoring or report_pages.scoring_of(entry, threshold)
        self._entry, self._judged, self._is_bounded = entry, judged_of(entry, scoring), scoring.is_bounded

    def seen(self, task: str, proposed: Cause | None = None) -> Seen:
        places = single_rows.positions(self._entry.run, task, None)
        rows, score = self._judged.rows, self._judged.score
        losing = []
        for position in places:
            place = int(rows.searchsorted(position))
            counts = place < rows.size and int(rows[place]) == position
            losing.append(self._is_bounded and counts and bool(score[place] < 1))
        traces = [single_rows.traced(self._entry.run, position) for position in places]
        return Seen(self._entry.run.agent, task, traces, losing, proposed)

    def losing(self) -> dict[str, frozenset[int]]:
        """Task -> its repeats that lose points, from the columns alone."""
        judged, failing = self._judged, defaultdict(set)
        for place in (judged.score < 1).nonzero()[0].tolist() if self._is_bounded else ():
            failing[judged.task_keys[int(judged.task[place])]].add(int(judged.repeat[place]))
        return {task: frozenset(repeats) for task, repeats in failing.items()}


def standing(entry: Loaded, bench: Bench) -> tuple[dict[str, tuple[Judgement, ...]], list[Gap]]:
    """Task -> the last word of each author that holds; and what fell because the rows are others now."""
    holds: list[Judgement] = []
    fallen: list[str] = []
    for judgement in entry.judgements:
        problems = judgements.again(judgement, bench.seen(judgement.task))
        if problems:
            fallen.append(f"task {judgement.task} by {judgement.by}: {problems[0]}")
        else:
            holds.append(judgement)
    gaps = []
    if fallen:
        more = f" and {len(fallen) - _MOST_FALLEN} more" if len(fallen) > _MOST_FALLEN else ""
        why = f"{len(fallen)} of {len(entry.judgements)} hold no longer: {'; '.join(fallen[:_MOST_FALLEN])}{more}"
        gaps.append(Gap(f"judgements of {entry.name}", why))
    return judgements.standing(holds), gaps


# ---- From traces to conclusions --------------------------------------------------------------------


class TaskEvidence(NamedTuple):
    """What the traces of one task hold, on its way from a worker."""

    rows: list[diagnose.RowEvidence]
    ended: list[equal_results.Ended]
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


def traces(entry: Loaded, scoring: measure.Scoring, watcher: Watcher, clock: Clock) -> Read:
    """The traces of a run, each opened once."""
    judged = judged_of(entry, scoring)
    walker = Walker(entry.run, judged, entry.benchmark.tools)
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
    stand, fallen = standing(entry, Bench(entry, None, scoring))
    gaps = [
        Gap(f"{stage} on {n:,} task{'s' if n > 1 else ''} of {entry.name}", f"it failed: {why}")
        for (stage, why), n in sorted(failed.items())
    ]
    return Read(entry, scoring, judged, walker, rows, grains, [*fallen, *gaps], stand)


def _seen(task: TaskTraces) -> TaskEvidence:
    """One task; what cannot be read is named, and the rest goes on."""
    clock = Clock()
    faults = [episode.fault for episode in task.episodes if episode.fault]
    failed = {"reading rows": faults[0]} if faults else {}

    def tried(stage: str, work: Callable[[TaskTraces], list[Made]]) -> list[Made]:
        try:
            return clock.timed(stage, lambda: work(task))
        except Exception as error:  # rows are hostile: a fault must not cost the report
            failed[stage] = f"{type(error).__name__}: {error}"[:200]
            return []

    rows = tried("evidence", diagnose.observe)
    if len(rows) < len(task.episodes):
        rows = [diagnose.nothing_of(episode.position) for episode in task.episodes]
    return TaskEvidence(rows, tried("outputs", equal_results.observe), failed, dict(clock.seconds))


def judged_of(entry: Loaded, scoring: measure.Scoring) -> Judged:
    """The rows that count."""
    rollouts, rows = entry.run.rollouts, scoring.rows
    return Judged(
        run=entry.name, task_keys=rollouts.task_keys, rows=rows, task=rollouts.task[rows].astype(np.int64),
        repeat=rollouts.repeat[rows], passed=scoring.row_passed, score=scoring.row_score,
        judged=scoring.has_pass_rate, unscored=scoring.unscored,
    )


def population(read: Read) -> diagnose.Population:
    """The evidence of a run with what became of its rows."""
    judged, bounded = read.judged, read.scoring.is_bounded
    passed = judged.passed.copy() if judged.judged else judged.score >= WHOLE
    _, place, size = np.unique(judged.task, return_inverse=True, return_counts=True)
    weight = 1 / size[place] / max(size.size, 1)
    lost = (1.0 - judged.score) * weight if bounded else np.zeros(judged.rows.size)
    lost = np.maximum(lost, 0.0)
    return diagnose.Population(
        judged.run, read.rows, passed, lost, judged.task.copy(), judged.repeat, list(judged.task_keys)
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
    entry = read.loaded
    conclusion = conclusions.conclude(diagnosis, read.judged.task.tolist(), read.walker.opener, read.judgements)
    path = entry.sources[0].path
    if len(entry.sources) == 1 and path in entry.stamps:  # for `blade show`, which diagnoses nothing itself
        cache.keep_rows(path, entry.stamps, dict(conclusion.blamed))
    quote = single_rows.quoter(entry.run, read.walker.row)
    proposed = {each.task: each.proposed for each in conclusion.attributions if each.proposed is not None}
    return Reading(
        judged=read.judged, diagnosis=diagnosis, concluded=conclusion,
        health=tuple(measure.health.health(entry.run.rollouts, entry.run.coverage, read.scoring, quote)),
        gaps=tuple(read.gaps),
        judgements=tuple(each for standing in read.judgements.values() for each in standing),
        agreements=judgements.agreements(read.judged.run, read.judgements, proposed),
    )

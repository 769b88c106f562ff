"""Turn the traces of one run into what they say: findings, signatures, mechanisms, causes, advice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from blade import attribute, contrast, detect, events, measure, recommend, signatures
from blade.detect import survey, weigh
from blade.measure import meanings, slices, soundness
from blade.model import (
    Agreement,
    Behaviour,
    Cause,
    Confidence,
    Contrast,
    Divergence,
    Episode,
    Finding,
    Found,
    Gap,
    Health,
    Judged,
    Judgement,
    Meaning,
    Mechanism,
    Rule,
    RunFacts,
    Signature,
)
from blade.pipeline.gather import Clock, Gathered, seen
from blade.pipeline.judging import standing
from blade.pipeline.load import Loaded
from blade.pipeline.walk import Span, Walker

if TYPE_CHECKING:
    from blade.store.index import Watcher

MAX_BORROWED = 20  # tasks of a run that never pass and are held against another run
MAX_PASSERS = 4  # passes that are borrowed for one of them
SURVEYED = 4000  # rows that are read for the facts of a run
RULES: Mapping[str, Rule] = {name: module.RULE for name, module in detect.DETECTORS.items()}


class Read(msgspec.Struct):
    """A run whose traces have been read and nothing concluded yet."""

    loaded: Loaded
    scoring: measure.Scoring
    judged: Judged
    walker: Walker
    facts: RunFacts
    gathered: Gathered
    meant: list[Meaning]
    codes: Mapping[int, Meaning]
    slices: Mapping[str, tuple[Any, Sequence[str]]]  # a field that describes tasks: its code by row, labels
    gaps: list[Gap]
    judgements: Mapping[str, tuple[Judgement, ...]]  # task -> the last word of each author


class Reading(msgspec.Struct, frozen=True):
    """What the traces of one run say."""

    judged: Judged
    facts: RunFacts
    found: tuple[Found, ...]
    behaviours: tuple[Behaviour, ...]
    signatures: tuple[Signature, ...]
    meanings: tuple[Meaning, ...]
    mechanisms: tuple[Mechanism, ...]
    contrasts: tuple[Contrast, ...]
    divergences: tuple[Divergence, ...]
    health: tuple[Health, ...]  # of the columns and of the traces
    artifacts: tuple[Finding, ...]  # of the data: rows that disagree on what their task is
    known: attribute.Known  # the grounds of every row, for those who book its loss anew
    attributed: attribute.Attributed
    recommended: recommend.Recommended
    gaps: tuple[Gap, ...]
    judgements: tuple[Judgement, ...] = ()  # those that stand, and hold in the rows
    agreements: tuple[Agreement, ...] = ()


def read_all(
    loaded: Sequence[Loaded], scored: Sequence[measure.Scoring], watcher: Watcher, clock: Clock
) -> list[Reading]:
    """Everything the traces of some runs say, each by itself and of one another."""
    return read_runs(loaded, scored, watcher, clock)[1]


def read_runs(
    loaded: Sequence[Loaded], scored: Sequence[measure.Scoring], watcher: Watcher, clock: Clock
) -> tuple[list[Read], list[Reading]]:
    """The same, with what was seen on the way: a comparison books losses anew from it."""
    from blade.pipeline.conclude import concluded

    read = [traces(one, scoring, watcher, clock) for one, scoring in zip(loaded, scored, strict=True)]
    shared = clock.timed("runs together", lambda: _shared_doubts(read))
    watcher.start("drawing conclusions", 0)
    told = [concluded(one, shared.suspects, clock) for one in read]
    return read, clock.timed("runs together", lambda: _together(read, told, shared.health))


def traces(one: Loaded, scoring: measure.Scoring, watcher: Watcher, clock: Clock) -> Read:
    """The traces of a run through every stage that observes them."""
    judged = judged_of(one, scoring)
    walker = Walker(one.run, judged, one.benchmark.tools)
    spans = walker.spans()
    facts = clock.timed("survey", lambda: _survey(one.name, walker, spans, watcher))
    gathered = Gathered()
    start = time.perf_counter()
    for told in walker.walk(spans, lambda task: seen(task, facts), "reading the traces", watcher):
        gathered.add(told)
    clock.seconds["read the traces (wall)"] += time.perf_counter() - start
    for stage, seconds in gathered.seconds.items():
        clock.seconds[f"{stage} (in workers)"] += seconds
    stand, fallen = standing(one, judged, scoring.is_bounded)
    read = Read(one, scoring, judged, walker, facts, gathered, [], {}, {}, fallen, stand)
    return _settled(read, clock)


def _settled(read: Read, clock: Clock) -> Read:
    """With what the verifier's codes mean and which rows infrastructure spoiled: all else rests on it."""
    rollouts, one = read.loaded.run.rollouts, read.loaded
    try:
        read.slices = slices.by_row(rollouts, read.scoring, one.benchmark)
        read.meant = clock.timed("meanings", lambda: meanings.meanings(rollouts, read.scoring, one.benchmark))
        read.codes = meanings.row_codes(rollouts, read.scoring, read.meant)
    except Exception as error:  # a fault must not cost the report
        read.gaps.append(Gap(f"meanings of {one.name}", f"it failed: {type(error).__name__}: {error}"[:300]))
    blaming = [x for x in read.gathered.found if x.finding.cause is Cause.INFRASTRUCTURE]
    fired: dict[str, list[int]] = {}
    for each in blaming:
        if each.finding.severity >= attribute.GRAVE:
            fired.setdefault(each.finding.detector, []).append(each.position)
    common = {b.detector for b in weigh.behaviours(read.judged, fired) if b.standing == "style"}
    sure = [
        x for x in blaming if x.finding.confidence is Confidence.PROVED or x.finding.detector not in common
    ]
    read.judged = replace(read.judged, broken=attribute.broken_rows(read.judged, sure, read.codes))
    return read


def judged_of(one: Loaded, scoring: measure.Scoring) -> Judged:
    """The rows that count; which of them infrastructure spoiled is not known yet."""
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
        broken=np.zeros(rows.size, np.bool_),
    )


def _survey(run: str, walker: Walker, spans: list[Span], watcher: Watcher) -> RunFacts:
    """The facts of a run, from whole tasks spread evenly over it if it is large."""
    rows = sum(end - start for start, end in spans)
    every = max(1, -(-rows // SURVEYED))
    return survey.facts(run, list(walker.walk(spans[::every], survey.partial, "surveying", watcher)))


# ---- Runs beside one another -------------------------------------------------------------------


def _shared_doubts(read: Sequence[Read]) -> Any:
    """What several runs together show of their tasks."""
    if len(read) < 2:
        return soundness.Sound()
    judged = {one.judged.run: one.judged for one in read}
    return soundness.items(judged, {one.judged.run: one.gathered.soundings for one in read})


def _together(read: Sequence[Read], told: list[Reading], health: tuple[Health, ...]) -> list[Reading]:
    if len(told) < 2:
        return told
    shared = signatures.across([one.signatures for one in told])
    found = [replace(one, signatures=tuple(signed)) for one, signed in zip(told, shared, strict=True)]
    found[0] = replace(found[0], health=(*found[0].health, *health))
    for at, one in enumerate(found):
        lent = list(_borrowed(read, at))
        contrasts = (told for told, _ in lent if told is not None)
        parted = (min(some, key=lambda d: (d.distance, d.repeat)) for _, some in lent if some)
        found[at] = replace(
            one, contrasts=(*one.contrasts, *contrasts), divergences=(*one.divergences, *parted)
        )
    return found


def _borrowed(read: Sequence[Read], at: int) -> Iterator[tuple[Contrast | None, Sequence[Divergence]]]:
    """For tasks that never pass, what tells them from the passes of another run, and where they part."""
    one = read[at]
    if not one.judged.judged:
        return
    for task, span in islice(_never(one.judged, one.walker), MAX_BORROWED):
        for other in (*read[:at], *read[at + 1 :]):
            passers = _passers(other.judged, task)
            if passers:
                lent = [other.walker.opener(position) for position in passers]
                mine = one.walker.task(span)
                if not _is_same(mine.episodes[0], lent[0]):
                    continue
                yield (
                    contrast.borrowed(mine, lent, other.judged.run),
                    contrast.borrowed_divergences(mine, lent),
                )
                break


def _is_same(mine: Episode, theirs: Episode) -> bool:
    """Whether two rollouts of different runs are of one task: an index alone does not say so."""
    first, second = (events.gold(episode.trace.row) for episode in (mine, theirs))
    if (first.answer or first.actions) and (second.answer or second.actions):
        return (first.answer, first.actions) == (second.answer, second.actions)
    said = events.prompt(mine.trace.row)
    return bool(said) and said == events.prompt(theirs.trace.row)


def _never(judged: Judged, walker: Walker) -> Iterator[tuple[str, Span]]:
    for start, end in walker.spans():
        if not judged.passed[start:end].any() and not judged.broken[start:end].all():
            yield judged.task_keys[int(judged.task[start])], (start, end)


def _passers(judged: Judged, task: str) -> list[int]:
    if not judged.judged or task not in judged.task_keys:
        return []
    rows = judged.rows[(judged.task == judged.task_keys.index(task)) & judged.passed]
    return [int(position) for position in rows[:MAX_PASSERS]]


__all__ = ["RULES", "Clock", "Read", "Reading", "judged_of", "read_all", "read_runs", "traces"]

"""Assign each failed task to a cause, with its grounds, and every lost point to one cause and mode."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from blade import stats
from blade.attribute import overruled
from blade.attribute.contents import observe
from blade.attribute.grounds import CONFIDENCE, EXCLUDED_FIRST, GRAVE, SUSPECT, Known, grounds
from blade.attribute.runs import run_causes
from blade.attribute.tasks import Decision, Row, decide
from blade.model import (
    Attribution,
    Behaviour,
    Blame,
    Cause,
    Evidence,
    Found,
    Health,
    Judged,
    Located,
    Loss,
    Meaning,
    Measure,
    Mechanism,
    Rule,
    RunCause,
    Suspicion,
)

if TYPE_CHECKING:
    from blade.model import Bools

MAX_STEPS = 3
__all__ = ["GRAVE", "Attributed", "Known", "attribute", "booked", "broken_rows", "known_of", "observe"]


class Attributed(msgspec.Struct, frozen=True):
    """What became of every lost point of a run."""

    attributions: tuple[Attribution, ...]
    losses: tuple[Loss, ...]
    run_causes: tuple[RunCause, ...]
    modes: Mapping[int, tuple[Cause, str]]  # position of each row that loses points -> cause and mode
    steps: Mapping[int, tuple[int | None, tuple[Blame, ...]]]  # of each such row: where it went wrong
    clean: Measure


def broken_rows(judged: Judged, found: Iterable[Found], codes: Mapping[int, Meaning]) -> Bools:
    """Rows that infrastructure spoiled, whatever their reward, and rows that have no usable reward."""
    positions = {at for at, meaning in codes.items() if meaning.cause is Cause.INFRASTRUCTURE}
    for one in found:
        if one.finding.cause is Cause.INFRASTRUCTURE and one.finding.severity >= GRAVE:
            positions.add(one.position)
    broken = np.isin(judged.rows, sorted(positions))
    return broken if judged.unscored is None else broken | judged.unscored


def known_of(
    judged: Judged,
    found: Iterable[Found],
    codes: Mapping[int, Meaning],
    mechanisms: Iterable[Mechanism],
    behaviours: Iterable[Behaviour],
    rules: Mapping[str, Rule],
    suspects: Iterable[Suspicion],
    checks: Mapping[int, tuple[str, Evidence]],
) -> Known:
    """The evidence of a run, by row and by task."""
    by_row: defaultdict[int, list[Found]] = defaultdict(list)
    for one in found:
        by_row[one.position].append(one)
    by_task: defaultdict[str, list[Suspicion]] = defaultdict(list)
    for suspicion in suspects:
        by_task[suspicion.task].append(suspicion)
    places = defaultdict(list)
    for at in range(judged.rows.size):
        key = judged.task_keys[int(judged.task[at])], int(judged.repeat[at])
        places[key].append(int(judged.rows[at]))
    covered: defaultdict[int, list[Mechanism]] = defaultdict(list)
    for mechanism in mechanisms:
        if mechanism.standing == "mechanism" and mechanism.explains:
            for place in mechanism.rollouts:
                for position in places[place]:
                    covered[position].append(mechanism)
    named = {behaviour.detector: behaviour for behaviour in behaviours}
    unscored = frozenset(() if judged.unscored is None else judged.rows[judged.unscored].tolist())
    return Known(by_row, codes, covered, named, rules, by_task, unscored, checks)


def attribute(
    judged: Judged,
    known: Known,
    contents: Mapping[int, str],
    located: Mapping[int, Located],
    health: Sequence[Health],
    quote: Callable[[int], tuple[Evidence, ...]],
    judgements: overruled.Judged | None = None,
) -> Attributed:
    """One cause per task that loses points; `quote` finds evidence in a row that has none yet."""
    told_of = judgements or {}
    prior = _prior(judged)
    attributions: list[Attribution] = []
    modes: dict[int, tuple[Cause, str]] = {}
    lost: dict[int, float] = {}
    steps: dict[int, tuple[int | None, tuple[Blame, ...]]] = {}
    spoiled: defaultdict[str, list[int]] = defaultdict(list)  # mode -> rows that infrastructure spoiled
    n_tasks = len(np.unique(judged.task))
    for code, start, end in _spans(judged):
        rows = [_row(judged, at, known, contents) for at in range(start, end)]
        for row in rows:
            lost[row.position] = row.lost / len(rows) / n_tasks
            if row.grounds and row.grounds[0].cause is Cause.INFRASTRUCTURE:
                spoiled[row.grounds[0].mode].append(row.position)
        if not any(row.lost > 0 for row in rows):
            continue
        decision, task = decide(rows, _p_never(prior, rows)), judged.task_keys[code]
        for row in rows:
            if row.lost > 0:
                steps[row.position] = blamed(row, decision, _believed(located.get(row.position), known))
        points = math.fsum(lost[row.position] for row in rows)
        proposed = _attribution(judged.run, task, decision, located, steps, quote, points)
        if task in told_of:
            modes.update(overruled.modes(decision, rows, told_of[task]))
            proposed = overruled.attribution(proposed, decision, told_of[task])
        else:
            modes.update(decision.modes)
        attributions.append(proposed)
    grouped: defaultdict[tuple[Cause, str], list[float]] = defaultdict(list)
    for position, key in modes.items():
        grouped[key].append(lost[position])
    losses = [Loss(judged.run, cause, mode, math.fsum(values)) for (cause, mode), values in grouped.items()]
    losses.sort(key=lambda loss: (-loss.lost, loss.cause, loss.mode))

    def told(position: int) -> tuple[str, tuple[Evidence, ...]]:
        task = judged.task_keys[int(judged.task[int(np.searchsorted(judged.rows, position))])]
        cause, mode = modes[position]
        for ground in grounds(position, task, known):
            if (ground.cause, ground.mode) == (cause, mode):
                return ground.text, ground.evidence or quote(position)
        said = told_of[task][-1] if task in told_of else None
        if said is not None and said.cause is cause:
            return said.mechanism, said.shown(judged.run) or quote(position)
        return mode, quote(position)

    clean = _clean(judged, known, attributions)
    causes = run_causes(judged, modes, lost, health, _Gone(judged, known, spoiled, attributions), told)
    return Attributed(tuple(attributions), tuple(losses), tuple(causes), modes, steps, clean)


def booked(
    judged: Judged, known: Known, contents: Mapping[int, str], judgements: overruled.Judged
) -> dict[int, tuple[Cause, str]]:
    """The cause and mode of every row that loses points, without the rest of an attribution."""
    prior = _prior(judged)
    modes: dict[int, tuple[Cause, str]] = {}
    for code, start, end in _spans(judged):
        rows = [_row(judged, at, known, contents) for at in range(start, end)]
        if any(row.lost > 0 for row in rows):
            decision = decide(rows, _p_never(prior, rows))
            told = judgements.get(judged.task_keys[code])
            modes.update(overruled.modes(decision, rows, told) if told else decision.modes)
    return modes


def _spans(judged: Judged) -> Iterable[tuple[int, int, int]]:
    task = judged.task
    if not task.size:
        return
    starts = np.flatnonzero(np.r_[True, task[1:] != task[:-1]])
    for start, end in zip(starts, np.r_[starts[1:], task.size], strict=True):
        yield int(task[start]), int(start), int(end)


def _row(judged: Judged, at: int, known: Known, contents: Mapping[int, str]) -> Row:
    position = int(judged.rows[at])
    task = judged.task_keys[int(judged.task[at])]
    lost = 1.0 - float(judged.score[at])
    return Row(
        position=position,
        repeat=int(judged.repeat[at]),
        passed=bool(judged.passed[at]),
        lost=max(lost, 0.0),
        grounds=grounds(position, task, known),
        content=contents.get(position, ""),
    )


def _prior(judged: Judged) -> stats.BetaPrior | None:
    n = np.bincount(judged.task, minlength=len(judged.task_keys))
    c = np.bincount(judged.task, weights=judged.passed, minlength=len(judged.task_keys)).astype(np.int64)
    return stats.fit_beta_binomial(n[n > 0], c[n > 0]) if judged.judged and n.any() else None


def _p_never(prior: stats.BetaPrior | None, rows: Sequence[Row]) -> float | None:
    """How probable it is that a task practically never passes, given that none of its repeats did."""
    if prior is None or any(row.passed for row in rows):
        return None
    return float(stats.p_bucket([len(rows)], [0], prior)[0])


def _believed(place: Located | None, known: Known) -> Located | None:
    """The candidates without those that rest on a behaviour as common among passes: no cause, no step."""
    if place is None:
        return None
    style = {name for name, one in known.behaviours.items() if one.standing == "style"}
    kept = tuple(one for one in place.steps if one.reason.partition(":")[0] not in style)
    if len(kept) == len(place.steps):
        return place
    first = kept[0].step if kept and place.step is not None else None
    return replace(place, steps=kept, step=place.step if any(b.step == place.step for b in kept) else first)


def blamed(row: Row, decision: Decision, place: Located | None) -> tuple[int | None, tuple[Blame, ...]]:
    """Where a row went wrong: at the step that shows its mode, else where the localisers agree."""
    cause, mode = decision.modes[row.position]
    shown = [g for g in row.grounds if (g.mode, g.step is not None) == (mode, True)]
    others = place.steps if place is not None else ()
    if not shown:
        abstains = place is None or cause in (Cause.INFRASTRUCTURE, Cause.DATA_ARTIFACT)
        return (None if abstains or place is None else place.step), others
    # the localisers name the call where a finding cites its result
    own = next((one.step for one in others if one.reason.startswith(f"{mode}:")), shown[0].step)
    first = Blame(own or 0, CONFIDENCE[shown[0].kind], f"{mode}: {shown[0].text}")
    rest = [
        Blame(one.step, round(one.weight * (1 - first.weight), 3), one.reason)
        for one in others
        if one.step != first.step
    ]
    return first.step, (first, *rest)[:MAX_STEPS]


def _attribution(
    run: str,
    task: str,
    decision: Decision,
    located: Mapping[int, Located],
    steps: Mapping[int, tuple[int | None, tuple[Blame, ...]]],
    quote: Callable[[int], tuple[Evidence, ...]],
    points: float,
) -> Attribution:
    row, ground = decision.row, decision.ground
    evidence = ground.evidence if ground is not None else ()
    step, ranked = steps[row.position] if row is not None else (None, ())
    if not evidence and row is not None:
        place = located.get(row.position)
        evidence = (place.evidence if place is not None else ()) or quote(row.position)
    return Attribution(
        id=f"cause:{task}",
        run=run,
        task=task,
        cause=decision.cause,
        confidence=round(decision.confidence, 3),
        mode=decision.mode,
        mechanism=decision.text,
        repeat=row.repeat if row is not None else None,
        step=step,
        steps=ranked,
        grounds=decision.grounds,
        against=decision.against,
        evidence=evidence,
        lost=points,
    )


class _Gone:
    """Which rows go when a cause is taken out of a run, whatever they scored."""

    def __init__(
        self,
        judged: Judged,
        known: Known,
        spoiled: Mapping[str, Sequence[int]],
        attributions: Sequence[Attribution],
    ) -> None:
        self._judged, self._known, self._spoiled = judged, known, spoiled
        self._tasks: defaultdict[tuple[Cause, str], set[str]] = defaultdict(set)
        for one in attributions:
            self._tasks[one.cause, one.mode].add(one.task)

    def rows(self, cause: Cause, mode: str, positions: Sequence[int]) -> Bools:
        """The rows that infrastructure spoiled this way; all rows of tasks that are broken this way."""
        if cause is Cause.INFRASTRUCTURE:
            return np.isin(self._judged.rows, sorted({*positions, *self._spoiled.get(mode, ())}))
        if cause in EXCLUDED_FIRST:
            return np.isin(self._judged.rows, positions) | self.of_tasks(self._tasks[cause, mode])
        return np.isin(self._judged.rows, positions)

    def of_tasks(self, tasks: Iterable[str]) -> Bools:
        wanted = set(tasks)
        codes = [code for code, key in enumerate(self._judged.task_keys) if key in wanted]
        return np.isin(self._judged.task, codes)

    def flagged(self, flag: str) -> int:
        """How many rows the tasks have that a flag speaks against."""
        held = self._known.suspects.items()
        return int(self.of_tasks(task for task, doubts in held if any(d.flag == flag for d in doubts)).sum())


def _clean(judged: Judged, known: Known, attributions: Sequence[Attribution]) -> Measure:
    """The pass rate without rows that infrastructure spoiled and without tasks that are broken themselves,
    whether they pass or fail."""
    out = {a.task for a in attributions if a.cause in (Cause.TASK_OR_VERIFIER, Cause.DATA_ARTIFACT)}
    doubted = {t for t, doubts in known.suspects.items() if sum(d.points for d in doubts) >= SUSPECT}
    out |= doubted - {a.task for a in attributions if a.judged_by}  # read, and held to be sound
    codes = [code for code, key in enumerate(judged.task_keys) if key in out]
    broken = {a.task for a in attributions if a.judged_by and a.cause is Cause.INFRASTRUCTURE}
    spoiled = [code for code, key in enumerate(judged.task_keys) if key in broken]
    kept = ~(judged.broken | (np.isin(judged.task, spoiled) & ~judged.passed)) & ~np.isin(judged.task, codes)
    if not kept.any():
        return Measure(judged.run, "clean_pass_at_1", None, 0, method="no row is left")
    task, passed = judged.task[kept], judged.passed[kept].astype(np.float64)
    starts = np.flatnonzero(np.r_[True, task[1:] != task[:-1]])
    n = np.diff(np.r_[starts, task.size])
    means = np.add.reduceat(passed, starts) / n
    spread = stats.variance_components(passed, starts, n)
    told = stats.score_interval(means, n, spread, binary_rows=True) or (None, None, "no interval: one task")
    return Measure(judged.run, "clean_pass_at_1", float(means.mean()), means.size, "tasks", None, None, *told)

"""Fit the trend of checkpoints in order: the first that differs, tasks learned and forgotten."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade import stats
from blade.compare.change_verdict import ALPHA
from blade.compare.flips import LEVEL, p_better, sure_flips
from blade.compare.several_runs import Shared, shared
from blade.compare.task_pairs import Paired, paired
from blade.model import Alignment, Checkpoint, Comparison, Series, Side

if TYPE_CHECKING:
    from blade.model import Floats, Ints

LISTED = 50

Listed = tuple[tuple[str, float], ...]


def series(sides: Sequence[Side], comparisons: Mapping[tuple[str, str], Comparison] | None = None) -> Series:
    """The runs in the order given, over the tasks all of them have; comparisons spare aligning them again."""
    runs = shared(sides, comparisons)
    trend = stats.mean_change(_slopes(runs.mean), _slope_step(runs.n)) if len(sides) > 1 else None
    checkpoints = _checkpoints(runs)
    different = (point.run for point in checkpoints if _is_different(point))
    moved = _moved(runs)
    return Series(
        runs=tuple(side.run for side in sides),
        n_tasks=len(runs.keys),
        slope=trend.estimate if trend else None,
        low=trend.low if trend else None,
        high=trend.high if trend else None,
        p=trend.p if trend else None,
        checkpoints=checkpoints,
        first_different=next(different, None),
        learned=moved.learned,
        forgotten=moved.forgotten,
        n_learned=moved.n_learned,
        n_forgotten=moved.n_forgotten,
        null_learned=moved.null_learned,
        null_forgotten=moved.null_forgotten,
        notes=tuple(_notes(runs, moved)),
    )


def _is_different(point: Checkpoint) -> bool:
    """A change is claimed only where the test and the interval agree on it."""
    if point.p_adjusted is None or point.low is None or point.high is None:
        return False
    return point.p_adjusted <= ALPHA and not point.low <= 0 <= point.high


def _weights(n_runs: int) -> Floats:
    """What each checkpoint adds to a least-squares slope over the positions 0, 1, 2, ..."""
    centred = np.arange(n_runs, dtype=np.float64) - (n_runs - 1) / 2
    weights: Floats = centred / (centred @ centred)
    return weights


def _slopes(mean: Floats) -> Floats:
    """The slope of every task, in points of score a checkpoint."""
    slopes: Floats = _weights(mean.shape[0]) @ mean
    return slopes


def _slope_step(n: Ints) -> float:
    """What one rollout that goes the other way changes the slope of its task by, on average."""
    return float((np.abs(_weights(n.shape[0]))[:, None] / n).mean()) if n.size else 1.0


def _checkpoints(runs: Shared) -> tuple[Checkpoint, ...]:
    """Every run against the first, adjusted by Holm over them all."""
    if not runs.keys:
        return ()
    changes = [
        stats.mean_change(mean - runs.mean[0], float((1 / n + 1 / runs.n[0]).mean() / 2))
        for mean, n in zip(runs.mean[1:], runs.n[1:], strict=True)
    ]
    ps = stats.holm([change.p if change else None for change in changes])
    scores = [math.fsum(row) / len(row) for row in runs.mean.tolist()]
    points = [Checkpoint(runs.sides[0].run, scores[0], None, None, None, None)]
    for side, score, change, p in zip(runs.sides[1:], scores[1:], changes, ps, strict=True):
        if change is None:
            points.append(Checkpoint(side.run, score, score - scores[0], None, None, None))
        else:
            points.append(Checkpoint(side.run, score, change.estimate, change.low, change.high, p))
    return tuple(points)


# ---- Learned and forgotten ------------------------------------------------------------------------


class _Moved(NamedTuple):
    learned: Listed = ()
    forgotten: Listed = ()
    n_learned: int = 0
    n_forgotten: int = 0
    null_learned: float | None = None  # what chance alone would show; None: nothing is told
    null_forgotten: float | None = None


def _moved(runs: Shared) -> _Moved:
    """Tasks that the last run surely does better, or worse, than the first."""
    if not runs.keys or len(runs.sides) < 2:
        return _Moved()
    pair = _ends(runs)
    p, sure = p_better(pair), sure_flips(pair)
    if p is None or sure is None:
        return _Moved()
    up = _listed(runs.keys, np.where(pair.d > 0, p, 0.0))
    down = _listed(runs.keys, np.where(pair.d < 0, 1 - p, 0.0))
    return _Moved(up, down, sure.up, sure.down, sure.null_up, sure.null_down)


def _ends(runs: Shared) -> Paired:
    """The first run and the last, over the tasks that all have."""
    last = runs.sides[-1]
    names = tuple(last.judged.task_keys[code] for code in runs.codes[-1].tolist())
    return paired(runs.sides[0], last, Alignment("as shared", runs.keys, common_candidate=names))


def _listed(keys: tuple[str, ...], probability: Floats) -> Listed:
    """Tasks with their probability, surest first."""
    sure = np.flatnonzero(probability >= LEVEL - 1e-9)
    order = sure[np.lexsort((sure, -np.round(probability[sure], 9)))]
    return tuple((keys[i], float(probability[i])) for i in order[:LISTED].tolist())


def _notes(runs: Shared, moved: _Moved) -> Iterator[str]:
    if not runs.keys:
        yield "No task has a counted row in every run."
        return
    if len(runs.sides) < 3:
        yield "A trend needs three checkpoints; with two the slope is the change between them."
    if moved.null_learned is None or moved.null_forgotten is None:
        yield "Tasks learned and forgotten are unknown: nothing shows how repeats of a task vary."
        return
    if not moved.n_learned and not moved.n_forgotten:
        yield f"No single task is surely learned or forgotten from the first to the last ({LEVEL:.0%} each)."
        return
    learned = _beside(moved.n_learned, moved.null_learned, "learned")
    forgotten = _beside(moved.n_forgotten, moved.null_forgotten, "forgotten")
    yield (
        f"From the first to the last, with {LEVEL:.0%} each: {learned}; {forgotten}. Chance is what dealing "
        "the rollouts of each task anew to the two would show."
    )


def _beside(n: int, null: float, done: str) -> str:
    """A count beside what chance alone would count."""
    tasks = f"{n:,} task{'' if n == 1 else 's'} {done}"
    if not n:
        return tasks
    if n <= null + 2 * math.sqrt(null):
        return f"{tasks}, no more than chance shows ({null:.1f})"
    return f"{tasks} where chance shows {null:.1f}"

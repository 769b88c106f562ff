"""Shuffle the outcomes of runs and count what is found where there is nothing to find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec.structs import replace

from blade import contrast, measure, pipeline, stats
from blade.model import Judged
from blade.pipeline import reading
from blade.pipeline.conclude import mechanisms_of
from blade.planted import write_run
from blade.store.index import Silent


@dataclass
class Nothing:
    """What was found in runs whose outcomes mean nothing."""

    n_runs: int = 0
    with_mechanism: int = 0
    n_within: int = 0  # runs shuffled within tasks: contrasts are of tasks that pass and fail
    with_contrast: int = 0
    n_tasks: int = 0  # of these that pass and fail
    tasks_with_contrast: int = 0


def shuffled(n_runs: int, n_tasks: int = 40, repeats: int = 4, bases: int = 4) -> Nothing:
    """Runs of simulated rollouts whose outcomes are shuffled, within tasks and across them by turns."""
    told = Nothing()
    for base in range(bases):
        with TemporaryDirectory() as folder:
            run = write_run(Path(folder), n_tasks=n_tasks, repeats=repeats, seed=1000 + base)
            one = pipeline.load([str(run.path)], Silent())[0]
            scoring = measure.scoring.scoring(one.run.rollouts, None)
            read = reading.traces(one, scoring, Silent(), reading.Clock())
            meant = read.meant
            for number in range(-(-n_runs // bases)):
                judged = _relabelled(read.judged, number, f"{base}/{number}")
                told.n_runs += 1
                found = mechanisms_of(judged, read, meant)
                told.with_mechanism += any(one.standing == "mechanism" for one in found)
                if number % 2 == 0:
                    _add_contrasts(told, read, judged)
    return told


def _relabelled(judged: Judged, number: int, seed: str) -> Judged:
    rng = stats.seeded_rng("shuffled labels", seed)
    if number % 2:
        order = rng.permutation(judged.rows.size)
    else:
        order = np.lexsort((rng.random(judged.rows.size), judged.task))
    return replace(judged, passed=judged.passed[order], score=judged.score[order])


def _add_contrasts(told: Nothing, read: reading.Read, judged: Judged) -> None:
    told.n_within += 1
    contrasts = contrast.conclude(judged, read.gathered.tokens, read.walker.opener)
    told.with_contrast += any(one.task is None for one in contrasts)
    n = np.bincount(judged.task, minlength=len(judged.task_keys))
    c = np.bincount(judged.task, weights=judged.passed, minlength=len(judged.task_keys))
    told.n_tasks += int(((c > 0) & (c < n)).sum())
    told.tasks_with_contrast += len({one.task for one in contrasts if one.task is not None})

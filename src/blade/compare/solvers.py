"""Turn the passes of several runs into the tasks that one alone, none, or all of them solve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from blade.compare.shared import Shared
from blade.model import Alone
from blade.stats.quantiles import special

if TYPE_CHECKING:
    from blade.model import Bools, Floats

LISTED = 50  # tasks of each run that are given with their counts


def solved(runs: Shared) -> Bools:
    """At least one pass: by run and task. Nothing is solved where no threshold says what passes."""
    found: Bools = runs.passes > 0
    return found


def solved_by(runs: Shared, n_runs: int) -> tuple[str, ...]:
    """The tasks that so many of the runs solve."""
    if not runs.is_judged:
        return ()
    return _keys(runs, solved(runs).sum(0) == n_runs)


def only_one(runs: Shared) -> dict[str, tuple[str, ...]]:
    """For each run the tasks that it alone solves."""
    own = _own(runs)
    return {side.run: _keys(runs, own[i]) for i, side in enumerate(runs.sides)}


def alone(runs: Shared) -> tuple[Alone, ...]:
    """The tasks of `only_one` with their counts: what chance explains least first, LISTED of each run."""
    own = _own(runs)
    chance = np.minimum(_chances(runs).sum(0), 1.0)
    total = runs.n.sum(0)
    found = []
    for i, side in enumerate(runs.sides):
        places = np.flatnonzero(own[i])
        order = places[np.lexsort((places, -runs.passes[i, places], np.round(chance[places], 12)))]
        for task in order[:LISTED].tolist():
            n = int(runs.n[i, task])
            found.append(
                Alone(
                    run=side.run,
                    task=runs.keys[task],
                    task_name=runs.names[task],
                    passes=int(runs.passes[i, task]),
                    repeats=n,
                    others=int(total[task]) - n,
                    p_chance=float(chance[task]),
                )
            )
    return tuple(found)


def expected_alone(runs: Shared) -> dict[str, float]:
    """How many tasks each run alone would solve if the passes of a task fell to the runs at random."""
    if not runs.is_judged or len(runs.sides) < 2:
        return {}
    chances = _chances(runs).tolist()
    return {side.run: math.fsum(row) for side, row in zip(runs.sides, chances, strict=True)}


def notes(runs: Shared) -> list[str]:
    """What a reader must know before trusting these lists."""
    if not runs.keys:
        return ["No task has a counted row in every run."]
    if not runs.is_judged:
        return ["Which tasks a run solves is unknown: no threshold says what passes."]
    by = solved(runs).sum(0)
    single, none = int((by == 1).sum()), by == 0
    found = []
    if single and len(runs.sides) > 1:
        expected = math.fsum(expected_alone(runs).values())
        found.append(
            f"{_tasks(single)} solved by one run alone; {expected:.1f} would be so if passes fell to "
            "the runs at random. A single pass always falls to one run and proves nothing; the tasks that "
            "chance explains least are listed first."
        )
    if none.any():
        least = int(runs.n.sum(0)[none].min())
        repeats = f"{least:,} repeats" if least > 1 else "one repeat"
        found.append(
            f"{_tasks(int(none.sum()))} solved by no run; the one with the fewest has {repeats} of all runs "
            f"together, where a pass rate of up to {1 - 0.05 ** (1 / least):.0%} can stay unseen (95% bound)."
        )
    return found


def _own(runs: Shared) -> Bools:
    """By run and task: this run solves it, and no other does."""
    passed = solved(runs)
    counts = runs.is_judged and len(runs.sides) > 1
    found: Bools = passed & (passed.sum(0) == 1) & counts
    return found


def _chances(runs: Shared) -> Floats:
    """That the passes of a task all fall to one run, if they were dealt to the rows of all runs at random.

    By run and task: C(n_r, c) / C(N, c); 0 where nobody passes, or where the run has fewer rows than that.
    """
    log = special().gammaln
    n, c = runs.n.astype(np.float64), runs.passes.sum(0).astype(np.float64)
    rows = n.sum(0)
    fits = (c > 0) & (n >= c)
    rest = np.where(fits, n - c, 0.0)
    chance = np.exp(log(n + 1) - log(rest + 1) - log(rows + 1) + log(rows - c + 1))
    found: Floats = np.where(fits, chance, 0.0)
    return found


def _keys(runs: Shared, chosen: Bools) -> tuple[str, ...]:
    return tuple(runs.keys[i] for i in np.flatnonzero(chosen).tolist())


def _tasks(n: int) -> str:
    return f"{n:,} task is" if n == 1 else f"{n:,} tasks are"

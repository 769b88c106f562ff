"""Ask whether repeats are exchangeable, and whether tasks still tell models apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from blade.measure.soundness.rows import Rows, answers_openly, count
from blade.measure.soundness.sounding import Heard
from blade.measure.soundness.verdicts import NOTHING, Found
from blade.model import Judged, Level

ALPHA = 1e-6  # chance at which an order is no accident
ENOUGH = 5  # tasks that can show an order


def sorted_repeats(rows: Rows) -> Found:
    """Whether equal outcomes, or equal answers, stand side by side far more often than chance has it."""
    repeat = rows.rollouts.repeat
    tests: list[tuple[str, int, list[float], float, list[str]]] = []
    for what in ("answers", "outcomes"):
        chances, together = [], []
        for task in rows.tasks:
            heard = sorted(rows.heard(task), key=lambda one: (int(repeat[one.position]), one.position))
            if len({int(repeat[one.position]) for one in heard}) < len(heard):
                continue  # repeats that share an index have no order
            values = _values(rows, heard, what)
            if values is None or not 1 < len(set(values)) < len(values):
                continue
            chances.append(_chance(values))
            if _blocks(values) == len(set(values)):
                together.append(task.task)
        tests.append((what, len(chances), chances, tail(chances, len(together)), together))
    what, n, chances, p, together = min(tests, key=lambda test: test[3])
    if n < ENOUGH or p > ALPHA:
        return NOTHING
    text = (
        f"Repeats are sorted: in {len(together):,} of {count(n, 'task')} whose {what} differ, equal "
        f"{what} stand side "
        f"by side in the order of the repeat index; chance would give {sum(chances):.1f} (exact p "
        f"{_small(p)}). "
        "They are not exchangeable: do not split them by index."
    )
    first = [(task, one) for task in rows.tasks if task.task == together[0] for one in task.heard]
    health = rows.flag("sorted_repeats", Level.WARNING, text, len(together), n, rows.cited(first))
    return health, {}


def _values(rows: Rows, heard: Sequence[Heard], what: str) -> list[object] | None:
    if what == "answers":
        return [one.spelled for one in heard] if all(map(answers_openly, heard)) else None
    return (
        [rows.passed(one) for one in heard] if rows.judged else [round(rows.score(one), 9) for one in heard]
    )


def _blocks(values: Sequence[object]) -> int:
    """Runs of equal values."""
    return 1 + sum(one != other for one, other in pairwise(values))


def _chance(values: Sequence[object]) -> float:
    """How probably a random order puts all equal values side by side: d! Π m! / n!."""
    sizes = Counter(values).values()
    ways = math.lgamma(len(sizes) + 1) + sum(math.lgamma(size + 1) for size in sizes)
    return min(1.0, math.exp(ways - math.lgamma(len(values) + 1)))


def tail(chances: Sequence[float], seen: int) -> float:
    """P(at least `seen` of independent events with these chances) (the Poisson binomial, exact)."""
    if seen <= 0:
        return 1.0
    known = np.zeros(len(chances) + 1)
    known[0] = 1.0
    for n, chance in enumerate(chances, 1):
        known[1 : n + 1] = known[1 : n + 1] * (1 - chance) + known[:n] * chance
        known[0] *= 1 - chance
    return min(1.0, float(known[seen:].sum()))


def _small(p: float) -> str:
    return "below 1e-12" if p < 1e-12 else f"{p:.1g}"


def saturation(rows: Rows, judged: Judged) -> Found:
    """How many tasks are at 0 or 1 in every repeat, and so add nothing to a comparison."""
    if not judged.judged:
        return NOTHING
    n = np.bincount(judged.task, minlength=len(judged.task_keys))
    c = np.bincount(judged.task, weights=judged.passed, minlength=len(judged.task_keys))
    several = n > 1
    n_tasks = int(several.sum())
    if not n_tasks:
        return NOTHING  # one repeat is always at 0 or 1
    full, none = int((several & (c == n)).sum()), int((several & (c == 0)).sum())
    left = n_tasks - full - none
    text = (
        f"Of {count(n_tasks, 'task')} with several repeats {full:,} always pass and {none:,} never do; "
        "the effective "
        f"number of tasks that can show a small change is {left:,}."
    )
    return rows.flag("saturation", Level.INFO, text, full + none, n_tasks), {}

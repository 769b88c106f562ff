"""Turn candidates into test values, each against the largest that shuffled outcomes reach."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from blade import stats
from blade.discover import gather, grammar
from blade.discover.candidates import Candidates
from blade.discover.gather import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Bools, Floats, Ints

ENOUGH = 10  # the rarer outcome in tasks that do both, from which tasks are compared with themselves
DRAWS = 999
BLOCK = 500_000  # random numbers at once
CHUNK = 128  # candidates at once
WORK = 6_000_000  # draws x units: beyond, fewer draws
# Of the risk of a false mechanism: for what was done, and for wording and chosen values. They leave a tenth
# unused, for the choice among conditions that comes after.
SHARES = (0.72, 0.18)


@dataclass(frozen=True)
class Design:
    """What is compared: units whose outcomes are exchangeable within their group if nothing matters."""

    within_task: bool
    rows: Ints  # rows in use, sorted by group
    unit: Ints  # of each of these rows
    group: Ints  # of each unit, ascending
    fails: Floats  # of each unit: share of its rows that fail
    control: str
    firm: bool = True  # difficulty is held fixed: without, nothing is more than a lead


@dataclass(frozen=True)
class Tested:
    """One entry for each pair of `Candidates`."""

    z: Floats  # nan: nothing to compare; above 0: goes with failing
    effect: Floats  # difference in failing within groups
    p: Floats
    p_adjusted: Floats
    n_draws: int


def design(rows: Rows, strata: Ints, alike: str) -> Design:
    """Repeats of the same task where enough tasks do both, else like tasks."""
    sizes = gather.sizes(rows)
    passes = np.add.reduceat(rows.passed.astype(np.int64), rows.starts)
    rarer = np.minimum(passes, sizes - passes)
    if rarer.sum() >= ENOUGH:
        mine = np.flatnonzero(np.repeat(rarer > 0, sizes))
        group = np.unique(rows.task[mine], return_inverse=True)[1].astype(np.int64)
        told = f"compared only within the {int((rarer > 0).sum()):,} tasks that both pass and fail"
        return Design(True, mine, np.arange(mine.size), group, (~rows.passed[mine]).astype(np.float64), told)
    held = bool(np.ptp(strata)) if strata.size else False  # one group of all tasks holds nothing fixed
    return replace(_across(rows, strata), control=f"compared across {alike}", firm=held)


def _across(rows: Rows, strata: Ints) -> Design:
    sizes = gather.sizes(rows)
    passes = np.add.reduceat(rows.passed.astype(np.int64), rows.starts)
    order = np.argsort(strata, kind="stable")  # tasks by stratum
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    unit = np.repeat(place, sizes)
    mine = np.argsort(unit, kind="stable")
    group = np.unique(strata[order], return_inverse=True)[1].astype(np.int64)
    return Design(False, mine, unit[mine], group, (1 - passes / sizes)[order], "")


def unstratified(rows: Rows) -> Design:
    """All tasks as one group: for runs in which no group of like tasks does both."""
    told = "compared across all tasks, whose kind goes with the outcome and is not held fixed"
    found = _across(rows, np.zeros(rows.starts.size, np.int64))
    return replace(found, control=told, firm=False)


def test(found: Candidates, layout: Design) -> Tested:
    """Score statistics of all candidates, and their place among the maxima of shuffled outcomes."""
    n = len(found.pairs)
    z, effect = np.full(n, np.nan), np.full(n, np.nan)
    shuffled = _shuffled(layout)
    is_word = np.asarray([grammar.is_word(found.features[at]) for at, _ in found.pairs], bool)
    most = np.zeros((2, shuffled.shape[1]))
    spread = _spread(layout)
    by_condition: dict[int, list[int]] = {}
    for at, (_, condition) in enumerate(found.pairs):
        by_condition.setdefault(condition, []).append(at)
    fails = layout.fails.astype(np.float32)
    for condition, places in by_condition.items():
        for start in range(0, len(places), CHUNK):
            some = np.asarray(places[start : start + CHUNK])
            columns = found.matrix[np.ix_(layout.rows, [found.pairs[at][0] for at in some])]
            centred = _centred(columns, found.held[condition][layout.rows], layout)
            squares = _by_group(centred**2, layout.group)
            variance, total = spread @ squares, squares.sum(0)
            known = variance > 1e-9
            scale = np.sqrt(np.where(known, variance, 1))
            told = centred.T @ fails
            z[some] = np.where(known, told / scale, np.nan)
            effect[some] = np.where(known, told / np.where(total > 0, total, 1), np.nan)
            reached = np.where(known[:, None], np.abs(centred.T @ shuffled) / scale[:, None], 0)
            for tier in (0, 1):
                mine = reached[is_word[some] == bool(tier)]
                if mine.size:
                    np.maximum(most[tier], mine.max(0), out=most[tier])
    return _adjusted(z, effect, most, is_word)


def _adjusted(z: Floats, effect: Floats, most: Floats, is_word: Bools) -> Tested:
    told = np.nan_to_num(np.abs(z))
    p = np.asarray([math.erfc(value / math.sqrt(2)) for value in told])
    bh = np.asarray([value if value is not None else 1.0 for value in stats.benjamini_hochberg(p.tolist())])
    draws = most.shape[1]
    family = np.ones(z.size)
    one_tier = is_word.all() or not is_word.any()
    for tier, share in enumerate((sum(SHARES),) * 2 if one_tier else SHARES):
        mine = is_word == bool(tier)
        ranked = np.sort(most[tier])
        above = draws - np.searchsorted(ranked, told[mine] * (1 - 1e-6), side="left")
        family[mine] = np.minimum(1, (1 + above) / (1 + draws) / share)
    family[np.isnan(z)] = 1
    return Tested(z, effect, p, np.maximum(family, bh), draws)


def _shuffled(layout: Design) -> NDArray[np.float32]:
    """Outcomes shuffled within their groups: units x draws."""
    n = layout.group.size
    draws = int(np.clip(WORK // max(1, n), 200, DRAWS))
    rng = stats.seeded_rng("discover", "shuffled outcomes")
    found = np.empty((n, draws), np.float32)
    block = max(1, BLOCK // max(1, n))
    for start in range(0, draws, block):
        some = min(block, draws - start)
        order = np.argsort(layout.group + rng.random((some, n)), axis=1)
        found[:, start : start + some] = layout.fails[order].T
    return found


def _spread(layout: Design) -> NDArray[np.float32]:
    """Of each group the variance of its outcomes, over n - 1."""
    n = np.bincount(layout.group)
    mean = np.bincount(layout.group, layout.fails) / n
    squares = np.bincount(layout.group, (layout.fails - mean[layout.group]) ** 2)
    found: NDArray[np.float32] = (squares / np.maximum(n - 1, 1)).astype(np.float32)
    return found


def _by_group(values: Any, codes: Ints) -> Any:
    """Sums over runs of equal codes, which are ascending and leave none out."""
    return np.add.reduceat(values, np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]]), axis=0)


def _centred(columns: NDArray[np.uint8], held: Bools, layout: Design) -> NDArray[np.float32]:
    """Values of the units less the mean of their group, 0 outside the condition."""
    inside = held.astype(np.float32)[:, None]
    values = columns.astype(np.float32) * inside
    if not layout.within_task:
        shown, known = _by_group(values, layout.unit), _by_group(inside, layout.unit)
        inside = (known > 0).astype(np.float32)
        values = shown / np.maximum(known, 1)
    counts = _by_group(inside, layout.group)
    means = _by_group(values, layout.group) / np.maximum(counts, 1)
    found: NDArray[np.float32] = (values - means[layout.group]) * inside
    return found


def single(column: NDArray[np.uint8], held: Bools, layout: Design) -> float:
    """The test value of one column within a condition; 0 where nothing can be compared."""
    centred = _centred(column[layout.rows][:, None], held[layout.rows], layout)[:, 0]
    variance = float(_spread(layout) @ _by_group(centred**2, layout.group))
    return float(centred @ layout.fails) / math.sqrt(variance) if variance > 1e-9 else 0.0

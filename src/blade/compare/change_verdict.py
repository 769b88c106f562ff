"""Decide whether a change is real: on these tasks, and on new tasks like them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from blade import stats
from blade.compare.task_pairs import Paired, counts, means, rows_of
from blade.model import Bools, Floats, Power, Side, Tested

ALPHA = 0.05
IMPROVED, REGRESSED, EQUIVALENT, INCONCLUSIVE = "improved", "regressed", "equivalent", "inconclusive"
THESE, NEW = "these tasks", "new tasks"
MAX_REPEATS = 1024  # beyond, more repeats are no advice
SMALL = 0.03  # changes below it are within what harness and hardware alone have been seen to do


class Judgement(NamedTuple):
    tests: tuple[Tested, ...]
    verdict: str
    verdict_new_tasks: str
    power: Power


def judgement(pair: Paired, margin: float) -> Judgement:
    """Is the change real: for exactly these tasks, and for tasks like them."""
    these, new = answers(rows_of(pair), pair.d)
    tests = [*_tested(THESE, these, margin), *_tested(NEW, new, margin)]
    if pair.is_binary and (pair.n_a == 1).all() and (pair.n_b == 1).all():
        up, down = int((pair.d > 0).sum()), int((pair.d < 0).sum())
        name = f"McNemar exact, {up} up and {down} down"
        tests.append(Tested(THESE, name, stats.mcnemar(up, down), None, None, None))
    return Judgement(tuple(tests), verdict(these, margin), verdict(new, margin), power(pair, these, new, margin))


def answers(rows: stats.Rows, d: Floats) -> tuple[stats.Change | None, stats.Change | None]:
    """The change on these tasks, and as a guess on new ones.

    What repeats alone could do to these tasks is no change on others either. Where the runs have different
    numbers of rows the differences of tasks are skewed and can look surer than that, so the exchange of rows
    has to agree.
    """
    step = float((1 / rows.n_a + 1 / rows.n_b).mean() / 2) if d.size else 1.0
    these, new = stats.within_change(rows, step), stats.mean_change(d, step)
    if new is None or new.p is None or these is None or these.p is None or not stats.is_lopsided(rows):
        return these, new
    se = max(new.se, stats.exchange_se(rows))
    half = stats.t_quantile(0.975, new.df) * se
    centre = (new.low + new.high) / 2
    return these, new._replace(se=se, low=centre - half, high=centre + half, p=max(new.p, these.p))


def is_claimed(p: float | None, low: float | None, high: float | None) -> bool:
    """A change is claimed only where the test and the interval agree on it."""
    return p is not None and low is not None and high is not None and p <= ALPHA and not low <= 0 <= high


def verdict(change: stats.Change | None, margin: float) -> str:
    """One word for a change and how sure it is."""
    if change is None or change.p is None:
        return INCONCLUSIVE
    if is_claimed(change.p, change.low, change.high):
        return IMPROVED if change.estimate > 0 else REGRESSED
    low, high = change.interval(1 - 2 * ALPHA)
    return EQUIVALENT if -margin < low and high < margin else INCONCLUSIVE


def _tested(question: str, change: stats.Change | None, margin: float) -> list[Tested]:
    if change is None:
        return [Tested(question, "none: too few tasks", None, None, None, None)]
    low, high = change.interval(1 - 2 * ALPHA)
    centre = (change.low + change.high) / 2
    p = stats.tost(centre, change.se, change.df, margin)
    name = f"equivalence within {100 * margin:g} points (two one-sided t)"
    return [
        Tested(question, change.method, change.p, change.estimate, change.low, change.high, low, high),
        Tested(question, name, p, change.estimate, low, high, low, high),
    ]


def power(pair: Paired, these: stats.Change | None, new: stats.Change | None, margin: float) -> Power:
    """The smallest change this design sees, where its spread comes from, and what would resolve it."""
    n = pair.d.size
    noise_a, noise_b = _within(pair.a)[pair.code_a], _within(pair.b)[pair.code_b]
    both = ~np.isnan(noise_a) & ~np.isnan(noise_b)
    design = p = repeats = tasks = None
    if n >= 2 and both.sum() >= max(2, n / 2):
        design, p = _design(pair, noise_a, noise_b, both)
    target = max(margin, abs(new.estimate)) if new is not None else None
    if design is not None and target:
        k = stats.repeats_needed(design, n, target)
        now = max(float(pair.n_a.mean()), float(pair.n_b.mean()))
        repeats = math.ceil(k) if k is not None and now < k <= MAX_REPEATS else None
    if new is not None and target and new.se > 0:
        spread = stats.Design(new.se**2 * n, 0.0, 0.0)
        wanted = math.ceil(stats.tasks_needed(spread, 1, 1, target)) - n
        tasks = wanted if wanted > 0 else None
    # five tasks that differ cannot reject anything, however much they do
    can_tell = new is not None and int(np.count_nonzero(pair.d)) >= stats.paired_changes.LEAST
    omega2, sigma2_a, sigma2_b = (None, None, None) if design is None else design
    return Power(
        se=new.se if new is not None else None,
        mde=stats.detectable(new.se) if new is not None and can_tell else None,
        mde_these=stats.detectable(these.se) if these is not None else None, omega2=omega2, sigma2_a=sigma2_a,
        sigma2_b=sigma2_b, p_heterogeneity=p, target=target, repeats_needed=repeats, tasks_needed=tasks,
    )


def _within(side: Side) -> Floats:
    """Variance between the rows of each task; nan below two rows."""
    n = counts(side).astype(np.float64)
    mean = means(side, side.judged.score)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.maximum(means(side, side.judged.score**2) - mean * mean, 0.0)
        variance: Floats = np.where(n > 1, spread * n / (n - 1), np.nan)
    return variance


def _design(pair: Paired, noise_a: Floats, noise_b: Floats, both: Bools) -> tuple[stats.Design, float | None]:
    """Where the spread of the differences comes from, and p that none of it is between tasks."""
    d, n_a, n_b = pair.d[both], pair.n_a[both], pair.n_b[both]
    apart = (d - d.mean()) ** 2 * d.size / max(d.size - 1, 1) - (noise_a[both] / n_a + noise_b[both] / n_b)
    omega2, p = float(apart.mean()), None
    change = stats.mean_change(apart) if d.size >= stats.paired_changes.ENOUGH else None
    if change is not None and change.p is not None:
        p = change.p / 2 if omega2 > 0 else 1 - change.p / 2
    return stats.Design(max(0.0, omega2), float(noise_a[both].mean()), float(noise_b[both].mean())), p

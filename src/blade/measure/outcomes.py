"""Turn scored rows into pass rates, mean rewards, their spread and their missing-row bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from blade import stats
from blade.measure.scoring import Scoring
from blade.model import Coverage, Measure, RewardKind, Rollouts

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

DENSE_K = 1024  # every k up to here, beyond it powers of two and the largest
NO_ROWS = "no scored row"
NEEDS_TWO = "no task has two scored rows"
NO_BOUNDS = "rewards that leave [0, 1] have no worst and best value"

# Measure -> field of `stats.Variance`.
VARIANCES = {
    "icc": "icc",
    "between_task_variance": "between",
    "within_task_variance": "within",
    "design_effect": "deff",
    "effective_n": "n_eff",
}
# What compares the tries of a task, and means nothing where rows of several tasks lie under one index.
OF_TRIES = frozenset(
    "solved pass_at_k pass_hat_k consistency self_agreement expected_flip_rate retry_value best_of_k worst_of_k majority_at_k".split()
) | set(VARIANCES)


def measures(run: str, rollouts: Rollouts, coverage: Coverage, scoring: Scoring) -> Iterator[Measure]:
    """Every number about outcomes; tasks are the unit, and a task without a scored row is in no mean."""
    variance = stats.variance_components(scoring.row_score, scoring.starts, scoring.n)
    yield from _pass_rates(run, scoring, coverage, variance)
    yield from _rewards(run, scoring, variance)
    yield from _variance(run, scoring, variance)
    yield from _missing(run, coverage, scoring)


def oracle(scoring: Scoring) -> float | None:
    """The score if the best repeat of every task were taken."""
    if not scoring.n.size:
        return None
    return float(np.maximum.reduceat(scoring.row_score, scoring.starts).mean())


def ks_up_to(most: int, dense: int = DENSE_K) -> list[int]:
    """The k worth a number when the largest task has `most` rows."""
    powers = {1 << bit for bit in range(most.bit_length())}
    return sorted(set(range(1, min(most, dense) + 1)) | powers | ({most} if most else set()))


def modal_repeats(coverage: Coverage, n: Ints) -> int:
    """Repeats of the usual task; where missing rows leave no such task, the usual number of scored rows."""
    most = int(n.max(initial=0))
    if 0 < coverage.repeats <= most:
        return coverage.repeats
    # Ties go to the larger number.
    return most - int(np.argmax(np.bincount(n)[::-1])) if n.size else 0


def task_mean(run: str, name: str, values: Floats, k: int | None = None, empty: str = NO_ROWS) -> Measure:
    """The mean over tasks of a value in [0, 1], nan where a task has none, with its interval."""
    values = values[~np.isnan(values)]
    if not values.size:
        return Measure(run, name, None, 0, k=k, method=empty)
    return _measure(run, name, values, stats.mean_interval(values), k)


def _measure(
    run: str, name: str, values: Floats, interval: stats.Interval | None, k: int | None = None
) -> Measure:
    value = float(values.mean())
    if interval is None:
        why = "no interval: one task" if values.size == 1 else "no interval: all tasks have the same value"
        return Measure(run, name, value, values.size, k=k, method=why)
    return Measure(run, name, value, values.size, "tasks", k, None, *interval)


def _pass_rates(
    run: str, scoring: Scoring, coverage: Coverage, variance: stats.Variance | None
) -> Iterator[Measure]:
    n, c = scoring.n, scoring.c
    covered = coverage.scored / coverage.expected if coverage.expected else None
    if not scoring.has_pass_rate or not n.size:
        yield Measure(run, "pass_at_1", None, 0, method=_why_no_rate(scoring))
        yield Measure(run, "coverage", covered, coverage.expected, "rows")
        return
    if scoring.score_name != "pass_at_1":
        variance = stats.variance_components(scoring.row_passed.astype(np.float64), scoring.starts, n)
    rates = c / n
    yield _measure(run, "pass_at_1", rates, stats.score_interval(rates, n, variance, binary_rows=True))
    yield _micro(run, "pass_at_1", int(c.sum()) / int(n.sum()), int(n.sum()))
    if scoring.score_name == "pass_at_1":
        yield from _weighting(run, scoring)
    yield task_mean(run, "solved", (c > 0).astype(np.float64))
    ks = ks_up_to(int(n.max()))
    for k in ks:
        yield task_mean(run, "pass_at_k", stats.pass_at_k(n, c, k), k)
    for k in ks:
        yield task_mean(run, "pass_hat_k", stats.pass_hat_k(n, c, k), k)
    yield task_mean(run, "consistency", (c == n).astype(np.float64))
    yield task_mean(run, "self_agreement", stats.self_agreement(n, c), empty=NEEDS_TWO)
    yield task_mean(run, "expected_flip_rate", stats.flip_rate(n, c), empty=NEEDS_TWO)
    repeats = modal_repeats(coverage, n)
    gain = stats.pass_at_k(n, c, repeats) - rates if repeats > 1 else np.full(n.size, np.nan)
    yield task_mean(run, "retry_value", gain, repeats, empty=NEEDS_TWO)
    yield Measure(run, "coverage", covered, coverage.expected, "rows")


def of_tries(run: str, task: Ints, passed: Bools, part: str) -> Iterator[Measure]:
    """What the tries of tasks say where tasks are known otherwise than by the index; `part` names by what."""
    n, c = np.bincount(task), np.bincount(task, weights=passed).astype(np.int64)
    n, c = n[n > 0], c[n > 0]
    for k in ks_up_to(int(n.max(initial=0))):
        yield replace(task_mean(run, "pass_at_k", stats.pass_at_k(n, c, k), k), slice=part)
        yield replace(task_mean(run, "pass_hat_k", stats.pass_hat_k(n, c, k), k), slice=part)
    yield replace(task_mean(run, "solved", (c > 0).astype(np.float64)), slice=part)
    yield replace(task_mean(run, "consistency", (c == n).astype(np.float64)), slice=part)


def _why_no_rate(scoring: Scoring) -> str:
    if scoring.has_pass_rate:
        return NO_ROWS
    if scoring.reward_kind is RewardKind.UNBOUNDED:
        return "rewards leave [0, 1] and no pass threshold was given"
    return "all rows carry one and the same reward, neither 0 nor 1, and no pass threshold was given"


def _rewards(run: str, scoring: Scoring, variance: stats.Variance | None) -> Iterator[Measure]:
    rewards, n = scoring.task_rewards, scoring.n
    if not n.size:
        yield Measure(run, "mean_reward", None, 0, method=NO_ROWS)
        return
    is_score = scoring.score_name == "mean_reward"
    if not is_score and not np.array_equal(scoring.row_reward, scoring.row_score):
        variance = stats.variance_components(scoring.row_reward, scoring.starts, n)
    has_binary_rows = bool(np.all((scoring.row_reward == 0) | (scoring.row_reward == 1)))
    yield _measure(run, "mean_reward", rewards, stats.score_interval(rewards, n, variance, has_binary_rows))
    yield _micro(run, "mean_reward", float(scoring.row_reward.mean()), int(n.sum()))
    if is_score:
        yield from _weighting(run, scoring)
    if scoring.reward_kind in (RewardKind.ORDINAL, RewardKind.CONTINUOUS):
        rising = sorted_within_tasks(scoring)
        ks = ks_up_to(int(n.max()))
        for k in ks:
            yield task_mean(run, "best_of_k", stats.best_of_k_by_task(rising, scoring.starts, n, k), k)
        for k in ks:
            yield task_mean(run, "worst_of_k", stats.worst_of_k_by_task(rising, scoring.starts, n, k), k)


def _micro(run: str, name: str, value: float, n_rows: int) -> Measure:
    why = f"rows are not independent; see {name}"
    return Measure(run, f"{name}_micro", value, n_rows, "rows", method=why)


def _weighting(run: str, scoring: Scoring) -> Iterator[Measure]:
    """What the tasks with more rows than others do to the mean over rows."""
    if scoring.n.min() != scoring.n.max():
        effect = float(scoring.row_score.mean()) - float(scoring.task_means.mean())
        how = f"exact: {scoring.score_name}_micro minus {scoring.score_name}"
        yield Measure(run, "weighting_effect", effect, scoring.n.size, method=how)


def sorted_within_tasks(scoring: Scoring) -> Floats:
    """The rewards, rising within each task."""
    width = int(scoring.n[0])
    if np.all(scoring.n == width):
        return np.sort(scoring.row_reward.reshape(-1, width), axis=1).ravel()
    task = np.repeat(np.arange(scoring.n.size), scoring.n)
    return scoring.row_reward[np.lexsort((scoring.row_reward, task))]


def _variance(run: str, scoring: Scoring, variance: stats.Variance | None) -> Iterator[Measure]:
    for name, field in VARIANCES.items():
        value = None if variance is None else getattr(variance, field)
        how = f"one-way ANOVA of {scoring.score_name} by task"
        if variance is None:
            how = NEEDS_TWO if scoring.n.size != 1 else "one task has no spread between tasks"
        elif value is None:
            how = "no reward differs from another"
        yield Measure(run, name, value, 0 if variance is None else scoring.n.size, method=how)


def _missing(run: str, coverage: Coverage, scoring: Scoring) -> Iterator[Measure]:
    """What the score would be, had the missing rows failed or passed."""
    if not coverage.missing_per_task.any():
        return
    names = ("missing_as_fail", "bound_low", "bound_high")
    if not scoring.is_bounded:
        for name in names:
            yield Measure(run, name, None, 0, method=NO_BOUNDS)
        return
    low, high = missing_bounds(coverage, scoring)
    yield task_mean(run, "missing_as_fail", low)
    for name, values in zip(names[1:], (low, high), strict=True):
        how = f"a bound: every missing row scored {int(values is high)}"
        yield Measure(run, name, float(values.mean()), values.size, method=how)


def missing_bounds(coverage: Coverage, scoring: Scoring) -> tuple[Floats, Floats]:
    """Task means with every missing row scored 0, and scored 1, over all tasks with a row or a gap.

    The denominator is the scored rows plus the missing keys, which is the expected rows unless a key
    has several rows.
    """
    missing = coverage.missing_per_task
    n, total = np.zeros(missing.size, np.int64), np.zeros(missing.size)
    n[scoring.tasks] = scoring.n
    total[scoring.tasks] = scoring.task_means * scoring.n
    rows = n + missing
    seen = rows > 0
    return total[seen] / rows[seen], (total[seen] + missing[seen]) / rows[seen]

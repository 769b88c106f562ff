"""Compute pass rates, mean rewards, their spread and missing-row bounds, the majority vote of k, and effort by outcome."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from blade import stats
from blade.measure.scoring import CODE, Scoring, begins
from blade.measure.slices import BOOL, TEXT
from blade.model import Benchmark, Coverage, Measure, Outcome, RewardKind, Rollouts
from blade.model.run_rows import Bools, Floats, Hashes, Ints

DENSE_K = 1024  # every k up to here, beyond it powers of two and the largest
NO_ROWS = "no scored row"
NEEDS_TWO = "no task has two scored rows"
NO_BOUNDS = "rewards that leave [0, 1] have no worst and best value"

VARIANCES = {  # measure -> field of `stats.Variance`
    "icc": "icc", "between_task_variance": "between", "within_task_variance": "within", "design_effect": "deff", "effective_n": "n_eff",
}  # fmt: skip
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
    return float(np.maximum.reduceat(scoring.row_score, scoring.starts).mean()) if scoring.n.size else None


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
            yield task_mean(run, "worst_of_k", stats.best_of_k_by_task(rising, scoring.starts, n, k, worst=True), k)


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
    if not scoring.is_bounded:
        for name in ("missing_as_fail", "bound_low", "bound_high"):
            yield Measure(run, name, None, 0, method=NO_BOUNDS)
        return
    low, high = missing_bounds(coverage, scoring)
    yield task_mean(run, "missing_as_fail", low)
    for name, reward, values in (("bound_low", 0, low), ("bound_high", 1, high)):
        how = f"a bound: every missing row scored {reward}"
        yield Measure(run, name, float(values.mean()), values.size, method=how)


def missing_bounds(coverage: Coverage, scoring: Scoring) -> tuple[Floats, Floats]:
    """Task means with every missing row scored 0, and scored 1, over the scored rows plus the missing keys of each task that has any."""
    missing = coverage.missing_per_task
    n, total = np.zeros(missing.size, np.int64), np.zeros(missing.size)
    n[scoring.tasks] = scoring.n
    total[scoring.tasks] = scoring.task_means * scoring.n
    rows = n + missing
    seen = rows > 0
    return total[seen] / rows[seen], (total[seen] + missing[seen]) / rows[seen]


DENSE_VOTES = 16
DEFAULT_FIELD = "extracted_answer"
MOST_STEPS = 400_000  # of counting votes, each some microseconds: a few seconds for a run
CELLS = 10_000  # of an array that cost about as much as a step
TOO_MANY = "not computed: so many votes of so many rows would take minutes"


def majority(rollouts: Rollouts, scoring: Scoring, benchmark: Benchmark) -> Iterator[Measure]:
    """maj@k over the answer field; nothing where the rows have none or no row passes or fails."""
    column = rollouts.fields.get(benchmark.answer or DEFAULT_FIELD)
    if column is None or not scoring.has_pass_rate:
        return
    blank = [code for code, text in enumerate(column.texts) if not text.strip()]
    # null, absent and blank text never vote
    votes = ((column.kind >= BOOL) & (column.kind <= TEXT) & ~np.isin(column.code, blank))[scoring.rows]
    if not votes.any():
        return
    election = _election(column.hash[scoring.rows], votes, scoring)
    stood = Counter(ballot for ballot, _ in election.candidates)
    left = MOST_STEPS
    for k in ks_up_to(int(scoring.n.max()), DENSE_VOTES):
        steps = sum(n * _steps(*election.ballots[ballot], k) for ballot, n in stood.items())
        if steps > left:
            yield Measure(rollouts.run, "majority_at_k", None, 0, k=k, method=TOO_MANY)
        else:
            left -= steps
            yield task_mean(rollouts.run, "majority_at_k", _won(election, scoring, k), k)


@dataclass(frozen=True)
class Election:
    """The answers that score anything, and the distinct ballots among which they stand.

    A ballot is how many rows gave each answer of a task, and how many gave none. An answer scores what
    its rows score on average: a verifier that wavers does not split the vote.
    """

    ballots: list[tuple[list[int], int]]
    task: Ints  # of each answer
    score: Floats
    candidates: list[tuple[int, int]]  # distinct (ballot, rows) of these answers
    candidate: Ints  # which of them each answer is


def _election(answer: Hashes, votes: Bools, scoring: Scoring) -> Election:
    n_tasks = scoring.n.size
    voter = np.repeat(np.arange(n_tasks), scoring.n)[votes]
    n_none = scoring.n - np.bincount(voter, minlength=n_tasks)
    task, count, score = _answers(voter, answer[votes], scoring.row_score[votes])
    # The wrapped sum of hashes names a multiset in any order, so equal ballots are counted out once.
    sums = np.r_[np.uint64(0), np.cumsum(_scrambled(count.astype(np.uint64)))]
    bounds = np.searchsorted(task, np.arange(n_tasks + 1))
    name = sums[bounds[1:]] - sums[bounds[:-1]] + _scrambled(n_none.astype(np.uint64) << np.uint64(32))
    _, first, ballot = np.unique(name, return_index=True, return_inverse=True)
    ballots = [(count[bounds[i] : bounds[i + 1]].tolist(), int(n_none[i])) for i in first]
    scores = score != 0
    task, count, score = task[scores], count[scores], score[scores]
    width = int(scoring.n.max()) + 1
    pairs, candidate = np.unique(ballot[task] * width + count, return_inverse=True)
    return Election(ballots, task, score, [divmod(pair, width) for pair in pairs.tolist()], candidate)


def _answers(task: Ints, answer: Hashes, score: Floats) -> tuple[Ints, Ints, Floats]:
    """Of every distinct answer of a task: the task, its rows and their mean score."""
    order = np.lexsort((answer, task))
    task, answer, score = task[order], answer[order], score[order]
    starts = np.flatnonzero(begins(task, answer))
    count = np.diff(np.r_[starts, task.size])
    return task[starts], count, np.add.reduceat(score, starts) / count


def _won(election: Election, scoring: Scoring, k: int) -> Floats:
    """The expected score of every task, nan below k rows; linear in the scores of the answers, so each needs only its chance to win."""
    chances = np.array([_chance(*election.ballots[ballot], rows, k) for ballot, rows in election.candidates])
    weights = chances[election.candidate] * election.score if chances.size else election.score
    won = np.bincount(election.task, weights, minlength=scoring.n.size)
    # A certain win comes out as 0.9999999999999999, and 100% is printed only where it is exact.
    return np.where(scoring.n >= k, np.round(won, 12), np.nan)


def _steps(counts: list[int], n_none: int, k: int) -> int:
    """How many steps `stats.majority_at_k` takes, roughly: its array operations, and what large arrays add to them."""
    if k in (1, sum(counts) + n_none):
        return 0
    most = min(k, max(counts))
    cells = 2 * k * k * sum(min(count, most) * (1 + math.log(max(1.0, most / count))) for count in counts)
    return sum(min(k, count) ** 2 for count in counts) + len(counts) * most + int(cells / CELLS)


def _chance(counts: list[int], n_none: int, rows: int, k: int) -> float:
    """How probably one answer with so many `rows` wins a vote of k, ties shared."""
    n = sum(counts) + n_none
    if k > n:
        return 0.0  # the task is not counted
    if k == 1:
        return rows / n
    if k == n:
        return (rows == max(counts)) / counts.count(max(counts))
    others = list(counts)
    others.remove(rows)
    return stats.majority_at_k([(rows, 1.0), *((count, 0.0) for count in others)], n_none, k)


def _scrambled(value: Hashes) -> Hashes:
    """SplitMix64 (Steele et al. 2014): neighbours in, unrelated numbers out."""
    z = value + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# Measure -> column of `Rollouts`, in the order of print.
EFFORTS = {name: name for name in ("input_tokens", "output_tokens", "reasoning_tokens", "total_tokens")} | {
    "turns": "n_turns", "tool_calls": "n_calls", "items": "n_items", "wall_s": "wall_s", "cost_usd": "cost_usd",
}  # fmt: skip
ALWAYS_SHOWN = (Outcome.PASSED, Outcome.FAILED)
IF_PRESENT = (Outcome.ERRORED, Outcome.TIMED_OUT)


def effort(rollouts: Rollouts, scoring: Scoring) -> Iterator[Measure]:
    """Mean and median of each effort over the rows that report it; nothing where no row does."""
    codes = scoring.outcome[scoring.rows]
    by_outcome = {outcome: codes == CODE[outcome] for outcome in (*ALWAYS_SHOWN, *IF_PRESENT)}
    slices = {"all": np.ones(codes.size, np.bool_)} | {
        outcome.value: rows for outcome, rows in by_outcome.items()
        if (scoring.has_pass_rate if outcome in ALWAYS_SHOWN else rows.any())
    }  # fmt: skip
    for name, column in EFFORTS.items():
        values = np.asarray(getattr(rollouts, column))[scoring.rows].astype(np.float64)
        is_reported = values >= 0  # false for nan
        # Counts are 0 where a format has no such thing, so a column of zeros reports nothing.
        if not is_reported.any() or (column.startswith("n_") and not (values > 0).any()):
            continue
        for label, rows in slices.items():
            part = values[is_reported & rows]
            for suffix, middle in (("", np.mean), ("_median", np.median)):
                value = float(middle(part)) if part.size else None
                how = f"{'median' if suffix else 'mean'} over rows that report it"
                yield Measure(rollouts.run, name + suffix, value, part.size, "rows", slice=label, method=how)

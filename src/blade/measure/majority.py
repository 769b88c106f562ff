"""Turn the answers of repeated rollouts into what a majority vote of k would score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.measure.outcomes import ks_up_to, task_mean
from blade.measure.scoring import Scoring
from blade.model import Benchmark, Column, Measure, Rollouts

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Hashes, Ints

DENSE_K = 16
DEFAULT_FIELD = "extracted_answer"
BOOL, TEXT = 2, 4
MOST_STEPS = 400_000  # of counting votes, each some microseconds: a few seconds for a run
CELLS = 10_000  # of an array that cost about as much as a step
TOO_MANY = "not computed: so many votes of so many rows would take minutes"


def measures(rollouts: Rollouts, scoring: Scoring, benchmark: Benchmark) -> Iterator[Measure]:
    """maj@k over the answer field; nothing where the rows have none or no row passes or fails."""
    column = rollouts.fields.get(benchmark.answer or DEFAULT_FIELD)
    if column is None or not scoring.has_pass_rate:
        return
    votes = _is_vote(column)[scoring.rows]
    if not votes.any():
        return
    election = _election(column.hash[scoring.rows], votes, scoring)
    stood = Counter(ballot for ballot, _ in election.candidates)
    left = MOST_STEPS
    for k in ks_up_to(int(scoring.n.max()), DENSE_K):
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


def _is_vote(column: Column) -> Bools:
    """Where a row answers: null, absent and blank text never vote."""
    blank = [code for code, text in enumerate(column.texts) if not text.strip()]
    answers: Bools = (column.kind >= BOOL) & (column.kind <= TEXT)
    return answers & ~np.isin(column.code, blank) if blank else answers


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
    starts = np.flatnonzero(np.r_[True, (task[1:] != task[:-1]) | (answer[1:] != answer[:-1])])
    count = np.diff(np.r_[starts, task.size])
    return task[starts], count, np.add.reduceat(score, starts) / count


def _won(election: Election, scoring: Scoring, k: int) -> Floats:
    """The expected score of every task, nan below k rows.

    It is linear in the scores of the answers, so each answer needs only its chance to win.
    """
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

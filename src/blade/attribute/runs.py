"""Turn the causes of rows into causes of the run: what spoiled so much that it must be told first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import TYPE_CHECKING, Protocol

import numpy as np

from blade.model import Cause, Evidence, Health, Judged, RunCause

if TYPE_CHECKING:
    from blade.model import Bools, Floats

MANY = 0.05  # share of rows from which a fault outside the model concerns the run
MOST = 0.5  # share of rows from which a fault of the model's ways does
LEAST = 3  # rows
QUOTES = 3
# Ways to fail that end a rollout from outside or make its answer unreadable: where they hit most rows, the
# run measures them and not the tasks.
_TERMINAL = {
    "turn_limit": "the limit on turns cuts the rollouts short",
    "truncated": "the token limit cuts the rollouts short",
    "context_overflow": "the context window is too small for the rollouts",
    "empty_output": "responses are empty",
    "format_mismatch": "answers are rejected for their format",
    "timeout": "the time limit cuts the rollouts short",
    "malformed_args": "the arguments of the calls cannot be parsed",
    "unknown_tool": "the model calls tools that do not exist",
}
# Flags about the evaluation that distort the score without taking rows from it.
_DISTORT = {
    "misaligned_tasks": Cause.DATA_ARTIFACT,
    "do_nothing_passes": Cause.TASK_OR_VERIFIER,
    "passes_without_output": Cause.TASK_OR_VERIFIER,
    "nondeterministic_verifier": Cause.TASK_OR_VERIFIER,
    "batch_copied_reward": Cause.TASK_OR_VERIFIER,
    "tests_touched": Cause.TASK_OR_VERIFIER,
}


class Gone(Protocol):
    """Which rows go when a cause is taken out."""

    def rows(self, cause: Cause, mode: str, positions: Sequence[int]) -> Bools: ...
    def flagged(self, flag: str) -> int: ...


Modes = Mapping[int, tuple[Cause, str]]  # position of each row that loses points


def run_causes(
    judged: Judged,
    modes: Modes,
    lost: Mapping[int, float],
    health: Sequence[Health],
    gone: Gone,
    told: Callable[[int], tuple[str, tuple[Evidence, ...]]],
) -> list[RunCause]:
    """The causes that concern the run as a whole, the largest loss first; `told` explains a row."""
    rows: defaultdict[tuple[Cause, str], list[int]] = defaultdict(list)
    for position, key in modes.items():
        rows[key].append(position)
    found = []
    for (cause, mode), positions in rows.items():
        if _concerns_run(cause, mode, len(positions), judged):
            found.append(_cause(judged, cause, mode, sorted(positions), lost, gone, told))
    found += _distortions(judged, health, gone, {one.mode for one in found})
    return sorted(found, key=lambda one: (-one.lost, -one.n_rollouts, one.mode))


def _concerns_run(cause: Cause, mode: str, n: int, judged: Judged) -> bool:
    total = judged.rows.size
    if cause in (Cause.INFRASTRUCTURE, Cause.TASK_OR_VERIFIER, Cause.DATA_ARTIFACT):
        return n >= min(LEAST, total) and n >= MANY * total
    return mode in _TERMINAL and n >= MOST * total


def _cause(
    judged: Judged,
    cause: Cause,
    mode: str,
    positions: list[int],
    lost: Mapping[int, float],
    gone: Gone,
    told: Callable[[int], tuple[str, tuple[Evidence, ...]]],
) -> RunCause:
    rows = gone.rows(cause, mode, positions)
    n, total = int(rows.sum()) if cause is Cause.INFRASTRUCTURE else len(positions), judged.rows.size
    said, _ = told(positions[0])
    what = _TERMINAL.get(mode, mode.replace("_", " "))
    share = f"all {n:,}" if n == total else f"{n:,} of {total:,}"
    text = f"{what[:1].upper()}{what[1:]} in {share} rollouts: {said}"
    tasks = judged.task[np.searchsorted(judged.rows, positions)]
    spread = [positions[at] for at in sorted(np.unique(tasks, return_index=True)[1])[:QUOTES]]
    evidence = [quote for position in spread for quote in told(position)[1][:1]]
    score, left = score_without(judged, rows)
    points = fsum(lost[position] for position in positions)
    return RunCause(judged.run, cause, mode, text, n, points, score, left, tuple(evidence))


def _distortions(judged: Judged, health: Sequence[Health], gone: Gone, known: set[str]) -> list[RunCause]:
    """Flags that bend the score; which rewards would stand without them, nobody can say."""
    found = []
    for flag in health:
        cause = _DISTORT.get(flag.flag)
        if cause is not None and flag.task is None and flag.level != "info" and flag.flag not in known:
            whole = flag.flag == "misaligned_tasks"
            n = judged.rows.size if whole else gone.flagged(flag.flag) or round((flag.value or 0.0) * flag.n)
            n = min(n, judged.rows.size)
            found.append(RunCause(judged.run, cause, flag.flag, flag.text, n, 0.0, None, 0, flag.evidence))
    return found


def score_without(judged: Judged, gone: Bools) -> tuple[float | None, int]:
    """The score over the rows that stay, as a mean over the tasks that keep one, and how many do."""
    means = task_means(judged, ~gone)
    return (float(means.mean()), int(means.size)) if means.size else (None, 0)


def task_means(judged: Judged, kept: Bools) -> Floats:
    """The mean score of every task that keeps a row."""
    n_tasks = len(judged.task_keys)
    n = np.bincount(judged.task[kept], minlength=n_tasks)
    total = np.bincount(judged.task[kept], weights=judged.score[kept], minlength=n_tasks)
    return np.asarray(total[n > 0] / n[n > 0])

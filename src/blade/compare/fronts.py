"""Turn scores and costs of several runs into who is beaten by none: the Pareto fronts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blade.compare.shared import Shared
from blade.model import Placed, Side

if TYPE_CHECKING:
    from blade.model import Floats, Ints


def placed(runs: Shared) -> tuple[tuple[Placed, ...], list[str]]:
    """Score, dollars and output tokens of every run over the tasks all have, and what limits them."""
    has_tasks = bool(runs.keys)
    scores = [math.fsum(row) / len(row) if has_tasks else None for row in runs.mean.tolist()]
    cost, cost_notes = _effort(runs, "cost_usd")
    tokens, token_notes = _effort(runs, "output_tokens")
    by_cost, by_tokens = front(scores, cost), front(scores, tokens)
    found = tuple(
        Placed(side.run, scores[i], cost[i], tokens[i], by_cost[i], by_tokens[i])
        for i, side in enumerate(runs.sides)
    )
    notes = [*cost_notes, *token_notes]
    if any(known is not None for known in (*by_cost, *by_tokens)):
        notes.append("A front goes by the values as measured; the matrix says which scores truly differ.")
    return found, notes


def front(scores: Sequence[float | None], costs: Sequence[float | None]) -> list[bool | None]:
    """Which runs no other beats: none scores as much for less, none more for as much. Ties stay on it."""

    def is_beaten(score: float, cost: float) -> bool:
        return any(
            s >= score and c <= cost and (s > score or c < cost)
            for s, c in zip(scores, costs, strict=True)
            if s is not None and c is not None
        )

    return [
        None if score is None or cost is None else not is_beaten(score, cost)
        for score, cost in zip(scores, costs, strict=True)
    ]


def _effort(runs: Shared, name: str) -> tuple[list[float | None], list[str]]:
    """The mean of a rollout, over the tasks for which every run that reports it at all does so."""
    columns = [_reported(side, name, code) for side, code in zip(runs.sides, runs.codes, strict=True)]
    told = [column for column in columns if column is not None]
    if not told:
        return [None] * len(columns), []
    is_told = np.isfinite(np.stack(told)).all(0)
    n = int(is_told.sum())
    if not n:
        return [None] * len(columns), [f"{name}: for no task do all runs that report it do so."]
    notes = [] if n == is_told.size else [f"{name}: over the {n:,} of {is_told.size:,} tasks that report it."]
    return [None if column is None else math.fsum(column[is_told].tolist()) / n for column in columns], notes


def _reported(side: Side, name: str, codes: Ints) -> Floats | None:
    """The mean of every shared task over the rows that report it; None where no row does."""
    values = side.effort.get(name)
    if values is None:
        return None
    told = np.isfinite(values)
    size = len(side.judged.task_keys)
    n = np.bincount(side.judged.task[told], minlength=size)
    sums = np.bincount(side.judged.task[told], weights=values[told], minlength=size)
    with np.errstate(invalid="ignore"):
        found: Floats = (sums / n)[codes]
    return found if np.isfinite(found).any() else None

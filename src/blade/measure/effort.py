"""Turn tokens, turns, calls, seconds and dollars into what a rollout costs, by outcome."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from blade.measure.scoring import CODE, Scoring
from blade.model import Measure, Outcome, Rollouts

if TYPE_CHECKING:
    from blade.model import Bools

# Measure -> column of `Rollouts`, in the order of print.
EFFORTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_tokens",
    "total_tokens": "total_tokens",
    "turns": "n_turns",
    "tool_calls": "n_calls",
    "items": "n_items",
    "wall_s": "wall_s",
    "cost_usd": "cost_usd",
}
ALWAYS_SHOWN = (Outcome.PASSED, Outcome.FAILED)
IF_PRESENT = (Outcome.ERRORED, Outcome.TIMED_OUT)


def measures(rollouts: Rollouts, scoring: Scoring) -> Iterator[Measure]:
    """Mean and median of each effort over the rows that report it; nothing where no row does."""
    slices = dict(_slices(scoring))
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


def _slices(scoring: Scoring) -> Iterator[tuple[str, Bools]]:
    codes = scoring.outcome[scoring.rows]
    yield "all", np.ones(codes.size, np.bool_)
    if scoring.has_pass_rate:
        for outcome in ALWAYS_SHOWN:
            yield outcome.value, codes == CODE[outcome]
    for outcome in IF_PRESENT:
        rows = codes == CODE[outcome]
        if rows.any():
            yield outcome.value, rows

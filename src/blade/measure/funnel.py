"""Count how many rollouts reached each stage of the workflow, declared or inferred."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blade.measure.scoring import Scoring, begins
from blade.measure.slices import ABSENT, NULL, NUMBER, TEXT
from blade.model import LAST_KINDS, Benchmark, Bools, Column, Coverage, Funnel, FunnelStage, Rollouts, Stage

MESSAGE, USER, RESULT = (LAST_KINDS.index(kind) for kind in ("message", "user", "result"))

# What a stage of `blade.toml` may name besides the fields of the rows.
ATTRIBUTES = (
    "reward", "masked", "n_items", "n_calls", "n_turns", "last_kind", "truncated", "errored", "timed_out",
    "input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "cost_usd", "wall_s",
)  # fmt: skip


def funnel(rollouts: Rollouts, coverage: Coverage, scoring: Scoring, benchmark: Benchmark) -> Funnel:
    """Count each stage on its own over all expected rollouts: no stage presumes the one before it."""
    source = "blade.toml" if benchmark.stages else "inferred"
    columns = [(stage, _column(rollouts, stage.field)) for stage in benchmark.stages]
    unknown = [stage.field for stage, column in columns if column is None]
    if unknown:
        source += f" (no row has: {', '.join(unknown)})"
    declared = [(stage.name, _holds(column, stage)) for stage, column in columns if column is not None]
    reached = declared if benchmark.stages else _inferred(rollouts, scoring)
    # (task, repeat) keys: surplus rows of a key count once
    keys = ((name, begins(rollouts.task[rows], rollouts.repeat[rows])) for name, rows in reached)
    stages = tuple(FunnelStage(name, int(distinct.sum()), coverage.expected) for name, distinct in keys)
    return Funnel(rollouts.run, source, stages)


def _inferred(rollouts: Rollouts, scoring: Scoring) -> Iterator[tuple[str, Bools]]:
    yield "started", np.ones(rollouts.task.size, np.bool_)
    yield "produced output", rollouts.n_items > 0
    calls = rollouts.n_calls > 0
    if calls.any():
        yield "called a tool", calls
    passed = np.zeros(rollouts.task.size, np.bool_)
    passed[scoring.rows] = scoring.row_passed
    is_cut = rollouts.truncated | rollouts.errored | rollouts.timed_out
    best = passed if scoring.has_pass_rate else rollouts.reward >= np.nanmax(rollouts.reward, initial=-np.inf)
    # the model's answer or the word of a simulated user after it, and a tool result where submitting is a call
    endings = [MESSAGE, USER, *[RESULT] * bool(np.any(rollouts.last_kind[best] == RESULT))]
    yield "finished", np.isin(rollouts.last_kind, endings) & ~is_cut
    broke_off = rollouts.errored & (rollouts.n_items <= 0)  # a reward there is made up by the harness
    yield "reached the verifier", rollouts.has_reward & ~broke_off
    yield "scored", np.isfinite(rollouts.reward) & ~rollouts.masked
    if scoring.has_pass_rate:
        yield "passed", passed


def _holds(column: Column, stage: Stage) -> Bools:
    """Where the field is what the stage asks for; a stage that asks for nothing asks for presence."""
    there = column.kind > NULL
    holds = there if stage.present is None or stage.present else ~there
    if stage.at_least is not None:
        holds = holds & (column.number >= stage.at_least)  # nan compares false
    if isinstance(stage.equals, str):
        code = column.texts.index(stage.equals) if stage.equals in column.texts else -2
        holds = holds & (column.kind == TEXT) & (column.code == code)
    elif isinstance(stage.equals, int | float):
        holds = holds & (column.number == stage.equals)
    elif stage.equals is not None:
        holds = np.zeros_like(holds)  # lists and tables have no column to compare with
    return holds


def _column(rollouts: Rollouts, name: str) -> Column | None:
    """What a stage is about: a field of the rows, else one of ATTRIBUTES."""
    if name in rollouts.fields or name not in ATTRIBUTES:
        return rollouts.fields.get(name)
    values = np.asarray(getattr(rollouts, name))
    n = values.size
    hashes = np.zeros(n, np.uint64)
    if name == "last_kind":
        return Column(np.full(n, TEXT, np.uint8), np.full(n, np.nan), values.astype(np.int32), LAST_KINDS, hashes)
    number = values.astype(np.float64)
    kind = np.where(np.isnan(number), ABSENT, NUMBER).astype(np.uint8)
    return Column(kind, number, np.full(n, -1, np.int32), (), hashes)

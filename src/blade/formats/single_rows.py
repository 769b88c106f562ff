"""Open single rows of a run: as traces to read, and as quotations to cite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from blade.formats.assemble import Assembled, task_keys
from blade.formats.field_columns import ERRORS
from blade.formats.joined_rows import Rows
from blade.formats.rollout_steps import NOTHING, parsed, quotable, steps_of, value_at
from blade.model import Evidence, Rollout, Step, Trace

_DECODER = msgspec.json.Decoder(dict[str, Any])  # twice as quick as the standard library
_QUOTE = 200  # characters of a quotation


def steps_of_row(row: Mapping[str, Any]) -> tuple[list[Step], str]:
    """The steps of a row and the field they were read from."""
    plain, source = steps_of(row)
    return [Step(**step) for step in plain], source


def row(run: Assembled, position: int) -> dict[str, Any]:
    """The row at a position of `Rollouts`, as parsed JSON."""
    line = run.rows.row_bytes(int(run.rollouts.row_id[position])).removeprefix(b"\xef\xbb\xbf")
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError):  # NaN, lone surrogates and the like
        return parsed(line)[0] or {}


def input_rows(run: Assembled) -> dict[str, int]:
    """The first materialised input of each task, by the key of the task."""
    if run.inputs is None:
        return {}
    keys = task_keys(run.inputs, None)
    return {keys.keys[code]: row for row, code in reversed(list(enumerate(keys.code.tolist())))}


def given(run: Assembled, row: int | None) -> dict[str, Any]:
    """A materialised input as parsed JSON; empty where there is none."""
    return {} if run.inputs is None or row is None else parsed(run.inputs.row_bytes(row))[0] or {}


def quoter(
    run: Assembled, row_at: Callable[[int], dict[str, Any]] | None = None
) -> Callable[[int, str], Evidence | None]:
    """A function that quotes a field of the row at a position; None if the row has no such field."""

    def quote(position: int, field: str) -> Evidence | None:
        data = row_at(position) if row_at is not None else row(run, position)
        # an error goes by many names; a row without the field still has its index to be found by
        candidates = (field, *ERRORS, "response.error") if field == "error" else (field, "_ng_task_index")
        present = [name for name in candidates if value_at(data, name) not in (NOTHING, None, "")]
        field = present[0] if present and value_at(data, field) is NOTHING else field
        value = value_at(data, field)
        text = quotable(value)[:_QUOTE] if value is not NOTHING else ""
        key = run.rollouts.task_keys[int(run.rollouts.task[position])]
        repeat = int(run.rollouts.repeat[position])
        return Evidence(run.rollouts.run, key, repeat, field=field, quote=text) if text else None

    return quote


def positions(run: Assembled, task: str, repeat: int | None) -> list[int]:
    """The rows of a task, given by key or by name, or of one of its repeats."""
    rollouts = run.rollouts
    names = rollouts.task_keys if task in rollouts.task_keys else rollouts.task_names
    chosen = rollouts.task == (names.index(task) if task in names else -1)
    if repeat is not None:
        chosen &= rollouts.repeat == repeat
    return [int(position) for position in np.flatnonzero(chosen)]


def traced(run: Assembled, position: int) -> Trace:
    """The rollout at a position with its steps."""
    rollouts = run.rollouts
    data = row(run, position)
    steps, source = steps_of_row(data)
    index, local = run.rows.place(int(rollouts.row_id[position]))
    task, reward = int(rollouts.task[position]), float(rollouts.reward[position])
    rollout = Rollout(
        rollouts.run, rollouts.task_keys[task], rollouts.task_names[task], int(rollouts.repeat[position]),
        None if np.isnan(reward) else reward, str(index.path), int(index.lines[local]),
    )  # fmt: skip
    return Trace(rollout, tuple(steps), source, data)


def holds_rollouts(rows: Rows) -> bool:
    """Does any row have a request, a response or a reward."""
    return any((rows.numbers(name) > 0).any() for name in ("reward_kind", "n_items", "prompt_hash"))

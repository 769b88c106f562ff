"""Small runs as columns, built from rewards by task."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from blade.model import LAST_KINDS, Column, Coverage, Rollouts
from tests.compare import builders as compared
from tests.compare.builders import key_order, named

Rewards = Mapping[str, Sequence[float | None]]

F1_A = {task: [float(digit) for digit in row] for task, row in named(compared.F1_A).items()}


TAU_PASSES = [0] * 14 + [1] * 12 + [2] * 10 + [3] * 4 + [4] * 10  # of 4 tries, task by task
TAU_AIRLINE = {str(i): [1.0] * c + [0.0] * (4 - c) for i, c in enumerate(TAU_PASSES)}


def make_column(values: Sequence[Any]) -> Column:
    """A field over all rows; `...` stands for a row without it."""
    texts = tuple(dict.fromkeys(value for value in values if isinstance(value, str) and len(value) <= 64))
    codes_of = {type(...): 0, type(None): 1, bool: 2, int: 3, float: 3, str: 4, list: 5, dict: 6}
    kinds = [codes_of[type(value)] for value in values]
    numbers = [float(value) if kind in (2, 3) else np.nan for value, kind in zip(values, kinds, strict=True)]
    codes = [texts.index(value) if isinstance(value, str) and value in texts else -1 for value in values]
    hashes = [0 if value is ... else zlib.crc32(repr(value).encode()) for value in values]
    return Column(
        np.array(kinds, np.uint8), np.array(numbers), np.array(codes, np.int32), texts, np.array(hashes, np.uint64)
    )


def make_rollouts(
    rewards: Rewards | Iterable[tuple[str, int, float | None]],
    *,
    tasks: Iterable[str] = (),
    fields: Mapping[str, Mapping[str, Any] | Sequence[Any]] | None = None,
    input_fields: Iterable[str] = (),
    **columns: Sequence[Any],
) -> Rollouts:
    """The columns of a run.

    `rewards` lists the rewards of each task, or the rows as (task, repeat, reward); `columns` give one
    value a row, in that order; `fields` likewise, or one value a task. `tasks` adds tasks without a row.
    """
    if isinstance(rewards, Mapping):
        rows = [(key, i, value) for key, values in rewards.items() for i, value in enumerate(values)]
    else:
        rows = list(rewards)
    keys = tuple(sorted({*(key for key, _, _ in rows), *tasks}, key=key_order))
    code = {key: i for i, key in enumerate(keys)}
    reward = [np.nan if value is None else value for _, _, value in rows]
    order = sorted(range(len(rows)), key=lambda i: (code[rows[i][0]], rows[i][1], np.nan_to_num(reward[i])))

    def column(name: str, default: Any, kind: Any) -> Any:
        values = columns.pop(name, [default] * len(rows))
        return np.array([values[i] for i in order], kind)

    last = [LAST_KINDS.index(kind) for kind in columns.pop("last_kind", ["message"] * len(rows))]
    made = {name: column(name, 0, np.int64) for name in ("n_calls",)}
    made |= {name: column(name, 1, np.int64) for name in ("n_items", "n_turns")}
    made |= {name: column(name, False, np.bool_) for name in ("masked", "truncated", "errored", "timed_out")}
    made["has_reward"] = column("has_reward", True, np.bool_)
    made |= {name: column(name, np.nan, np.float64) for name in (
        "input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "cost_usd", "wall_s")}
    assert not columns, f"no such columns: {sorted(columns)}"
    by_row = {
        name: [values[rows[i][0]] for i in order] if isinstance(values, Mapping) else [values[i] for i in order]
        for name, values in (fields or {}).items()
    }
    return Rollouts(
        run="run",
        task_keys=keys,
        task_names=tuple(f"task {key}" for key in keys),
        task=np.array([code[rows[i][0]] for i in order], np.int32),
        repeat=np.array([rows[i][1] for i in order], np.int64),
        reward=np.array([reward[i] for i in order], np.float64),
        row_id=np.arange(len(rows)),
        grouped_by="_ng_task_index",
        copies=np.zeros(len(rows), np.int64),
        last_kind=np.array([last[i] for i in order], np.uint8),
        fields={name: make_column(values) for name, values in by_row.items()},
        input_fields=frozenset(input_fields),
        **made,
    )


def make_coverage(
    rollouts: Rollouts, *, failed: Sequence[tuple[str, int]] = (), lost: Sequence[tuple[str, int]] = (), **others: Any
) -> Coverage:
    """What was expected: the keys of the rows, and the failed and lost ones."""
    keys = [rollouts.task_keys[code] for code in rollouts.task]
    row_keys = list(zip(keys, rollouts.repeat.tolist(), strict=True))
    scored = {key for key, masked in zip(row_keys, rollouts.masked.tolist(), strict=True) if not masked}
    masked = sorted(set(row_keys) - scored)
    missing = Counter(key for key, _ in (*failed, *lost, *masked))
    expected = Counter(key for key, _ in {*row_keys, *failed, *lost})
    repeats = Counter(expected.values()).most_common(1)
    duplicates = len(row_keys) - len(set(row_keys))
    by_task = {name: np.array([n[key] for key in rollouts.task_keys], np.int64) for name, n in (("expected", expected), ("missing", missing))}
    counts = {"identical_duplicates": 0, "superseded": 0, "unnumbered_copies": 0, "unexpected": 0}
    return Coverage(**{
        "expected_from": "materialized inputs", "expected": sum(expected.values()), "scored": len(scored), "failed": len(failed),
        "masked": len(masked), "lost": len(lost), "duplicates": duplicates, "repeats": repeats[0][0] if repeats else 0, **counts,
        **{f"{name}_per_task": column for name, column in by_task.items()},
        "failed_keys": tuple(failed), "failed_classes": ("judge_failed",) * len(failed), "lost_keys": tuple(lost),
        "masked_keys": tuple(masked), "duplicate_keys": tuple(sorted(key for key, n in Counter(row_keys).items() if n > 1)), **others,
    })  # fmt: skip

"""Turn a table of result rows into the entries of the profile files: tasks, agents, repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from blade_eval.profile import repeats, statistics
from blade_eval.profile.joining import ids
from blade_eval.profile.numbers import TASK
from blade_eval.profile.table import Column, Ints, Table

Entry = dict[str, Any]


class Rows(NamedTuple):
    """Rows of a table that are reported, masked ones among them, and whose they are."""

    table: Table
    rows: Ints
    agent: Ints  # of every row of the table
    names: Sequence[str]  # of the agents

    def measured(self) -> Ints:
        """Those whose reward is a measurement."""
        measured: Ints = self.rows[~self._is_masked()]
        return measured

    def masked(self) -> Ints:
        """Those whose reward is none."""
        masked: Ints = self.rows[self._is_masked()]
        return masked

    def _is_masked(self) -> NDArray[np.bool_]:
        return np.frombuffer(self.table.masked, np.bool_)[self.rows]

    def agents(self) -> list[int]:
        """The codes of those that have rows, by name."""
        found: list[int] = np.flatnonzero(np.bincount(self.agent[self.rows])).tolist()
        return sorted(found, key=self.names.__getitem__)

    def rank(self) -> Ints:
        """The place by name of every row's agent."""
        place = np.zeros(len(self.names), np.int64)
        place[sorted(range(len(self.names)), key=self.names.__getitem__)] = np.arange(len(self.names))
        ranked: Ints = place[self.agent]
        return ranked


class Group(NamedTuple):
    """The measured rows of one task, or of one task and agent."""

    task: int
    agent: int
    rows: Ints  # by repeat
    values: dict[str, float]


def groups(told: Rows) -> Iterator[Group]:
    """By rising task, then agent by name."""
    rows = told.measured()
    keys = told.table.keys
    task, repeat, agent, rank = keys.task, keys.repeat, told.agent, told.rank()
    rows = rows[np.lexsort((repeat[rows], rank[rows], task[rows]))]
    group = ids(task[rows], rank[rows])
    counts = np.bincount(group) if group.size else np.zeros(0, np.int64)
    ends = np.cumsum(counts)
    in_order = in_key_order(told)
    place = np.zeros(len(keys), np.int64)
    place[rows] = np.arange(rows.size)
    columns = [
        Column(column.name, *_moved(place[in_order[column.positions]], column.values))
        for column in told.table.columns(in_order)
    ]
    for end, count, values in zip(ends, counts, statistics.described(columns, counts), strict=True):
        chosen = rows[end - count : end]
        yield Group(int(task[chosen[0]]), int(agent[chosen[0]]), chosen, values)


def _moved(positions: Ints, values: Any) -> tuple[Ints, Any]:
    rising = np.argsort(positions, kind="stable")
    return positions[rising], values[rising]


def in_key_order(told: Rows) -> Ints:
    """The measured rows by task and repeat, the order in which columns are met."""
    rows, keys = told.measured(), told.table.keys
    return rows[np.lexsort((told.rank()[rows], keys.repeat[rows], keys.task[rows]))]


def completion(told: Rows, rows: Ints, n_expected: int) -> Entry:
    """How many rollouts of a task came, and what is known of each."""
    pieces = [told.table.infos[row] for row in rows.tolist()]
    return {
        "num_rollouts": len(pieces),
        "expected_num_rollouts": n_expected,
        "missing_num_rollouts": max(0, n_expected - len(pieces)),
        "reward_profile_completion_pct": 100.0 * len(pieces) / n_expected,
        "rollout_infos": msgspec.Raw(b"[" + b",".join(pieces) + b"]"),
    }


def task_entry(group: Group, sample: Any, told: Rows, n_expected: int) -> Entry:
    """One line of the profile, or one entry of `group_level_metrics`."""
    return {TASK: group.task, **group.values, "sample": sample, **completion(told, group.rows, n_expected)}


class Agent(NamedTuple):
    """What is said of all rows of one agent."""

    name: str
    values: dict[str, float]
    by_repeat: list[Entry]  # empty unless it has several repeats
    across: dict[str, float]
    coverage: dict[str, int]  # empty unless something was masked
    n_repeats: int


def agents(told: Rows, expected: Mapping[int, Mapping[int, int]] | None = None) -> Iterator[Agent]:
    """By name. `expected` counts the inputs of each agent and repeat, masked ones left out."""
    mine, names = told.agent[told.rows], list(told.names)
    in_order = in_key_order(told)
    shared = [column.name for column in told.table.columns(in_order)]
    for code in told.agents():
        rows = in_order[told.agent[in_order] == code]
        columns = {column.name: column for column in told.table.columns(rows)}
        ordered = [columns[name] for name in shared if name in columns]
        values = next(statistics.described(ordered, np.array([rows.size])), {}) if rows.size else {}
        n_repeats, entries = _repeats(told, rows, (expected or {}).get(code))
        covered = coverage(told, told.rows[mine == code])
        yield Agent(names[code], values, entries, repeats.across(entries), covered, n_repeats)


def _repeats(told: Rows, rows: Ints, expected: Mapping[int, int] | None) -> tuple[int, list[Entry]]:
    keys = told.table.keys
    repeat, task = keys.repeat[rows], keys.task[rows]
    rows = rows[np.lexsort((task, repeat))]
    found, counts = np.unique(repeat, return_counts=True)
    if found.size < 2:
        return int(found.size), []
    return int(found.size), list(repeats.by_repeat(told.table.columns(rows), found, counts, expected))


def coverage(told: Rows, rows: Ints) -> dict[str, int]:
    """How much of what came is a measurement; nothing is said where all of it is."""
    masked = np.frombuffer(told.table.masked, np.uint8)[rows] != 0
    if not masked.any():
        return {}
    task = told.table.keys.task[rows]
    measured = np.unique(task[~masked])
    return {
        "coverage/measured_rollouts": int((~masked).sum()),
        "coverage/masked_rollouts": int(masked.sum()),
        "coverage/measured_tasks": int(measured.size),
        "coverage/fully_masked_tasks": int(np.unique(task).size - measured.size),
    }

"""Count what became of every rollout a run was to make: expected = scored + failed + masked + lost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from blade_eval.profile.joining import ids
from blade_eval.profile.table import Ints, Keys


class Whole(NamedTuple):
    """The rollouts of one agent."""

    agent: str
    expected: int
    scored: int
    failed: int  # not among the rollouts, but among the failures
    masked: int
    lost: int  # without any trace
    missing: list[tuple[int, int, str]]  # failed and lost: task, repeat, and the file that expected it
    unexpected: int  # rollouts that no input asked for
    missing_shards: tuple[str, ...] = ()  # whose inputs nobody gave: `expected` is without them

    @property
    def is_complete(self) -> bool:
        return not (self.failed or self.lost or self.unexpected or self.missing_shards)

    def as_json(self) -> dict[str, Any]:
        told = self._asdict()
        told["missing"] = [
            {"task": task, "repeat": repeat, "of": path} for task, repeat, path in self.missing
        ]
        told["missing_shards"] = list(self.missing_shards)
        return told


class Side(NamedTuple):
    """Some rows: their keys, the rows that count, and whose each of all rows is."""

    keys: Keys
    rows: Ints
    agent: Ints


def counted(
    inputs: Side, results: Side, failures: Side, masked: Ints, names: Sequence[str], paths: Sequence[Path]
) -> list[Whole]:
    """One for each agent that anything was expected or came of, by name; `masked` says so of every result."""
    sides = (inputs, results, failures)
    task = np.concatenate([side.keys.task[side.rows] for side in sides])
    repeat = np.concatenate([side.keys.repeat[side.rows] for side in sides])
    agent = np.concatenate([side.agent[side.rows] for side in sides])
    parts = np.split(ids(task, repeat, agent), np.cumsum([side.rows.size for side in sides])[:-1])
    asked, came, broke = parts
    has_come, has_failed = np.isin(asked, came), np.isin(asked, broke)
    is_masked = np.isin(asked, came[masked[results.rows] != 0])
    extra = ~np.isin(came, asked)
    whose, came_from = inputs.agent[inputs.rows], results.agent[results.rows]
    found = []
    asked_task, asked_repeat = inputs.keys.task, inputs.keys.repeat
    for code in sorted(np.unique(np.r_[whose, came_from]).tolist(), key=lambda code: names[code]):
        mine = whose == code
        gone = inputs.rows[mine & ~has_come]
        missing = [(int(asked_task[row]), int(asked_repeat[row]), str(paths[inputs.keys.place(int(row))[0]]))
                   for row in gone]  # fmt: skip
        found.append(
            Whole(
                names[code],
                int(mine.sum()),
                int((mine & has_come & ~is_masked).sum()),
                int((mine & ~has_come & has_failed).sum()),
                int((mine & is_masked).sum()),
                int((mine & ~has_come & ~has_failed).sum()),
                missing,
                int((extra & (came_from == code)).sum()),
            )
        )
    return found

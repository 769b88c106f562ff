"""Rows taken through the checks of soundness: what a run of them is said to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from blade.measure import soundness
from blade.measure.soundness import Sound, Sounding
from blade.model import Evidence, Finding, Health, Judged, Rollouts
from tests.builders import Row
from tests.measure.builders import make_rollouts
from tests.traces import make_task


def by_task(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each task, in the order of the tasks."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row["_ng_task_index"]), []).append(row)
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def make_soundings(rows: Sequence[Row]) -> list[Sounding]:
    """What is heard of each task."""
    found, start = [], 0
    for of_task in by_task(rows).values():
        found.append(soundness.observe(make_task(*of_task, start=start)))
        start += len(of_task)
    return found


def make_judged(rollouts: Rollouts, broken: Sequence[int] = ()) -> Judged:
    """All rows count; they pass at 1."""
    n = rollouts.task.size
    passed = rollouts.reward >= 1
    return Judged(
        run=rollouts.run, task_keys=rollouts.task_keys, rows=np.arange(n), task=rollouts.task.astype(np.int64),
        repeat=rollouts.repeat, passed=passed, score=passed.astype(np.float64), judged=True,
        broken=np.isin(np.arange(n), broken),
    )  # fmt: skip


def columns(rows: Sequence[Row], fields: Mapping[str, Any] | None = None) -> Rollouts:
    """The columns of the rows; `fields` gives the values of verifier fields, one a row."""
    told = [row for of_task in by_task(rows).values() for row in of_task]
    keys = [(str(row["_ng_task_index"]), at) for of_task in by_task(rows).values() for at, row in enumerate(of_task)]
    listed = [(task, repeat, row["reward"]) for (task, repeat), row in zip(keys, told, strict=True)]
    return make_rollouts(listed, fields=fields)


def quote(rows: Sequence[Row]) -> Any:
    """A function that quotes a top-level field, as rows are opened for evidence."""
    told = [row for of_task in by_task(rows).values() for row in of_task]

    def quoted(position: int, field: str) -> Evidence | None:
        value = told[position].get(field)
        text = str(value)[:200] if value is not None else ""
        task = str(told[position]["_ng_task_index"])
        return Evidence("run", task, 0, field=field, quote=text) if text else None

    return quoted


def sounded(
    rows: Sequence[Row],
    fields: Mapping[str, Any] | None = None,
    broken: Sequence[int] = (),
    exploits: Mapping[int, Finding] | None = None,
) -> Sound:
    """The flags of a run of these rows."""
    rollouts = columns(rows, fields)
    return soundness.flags(make_judged(rollouts, broken), make_soundings(rows), rollouts, quote(rows), exploits)


def flag(sound: Sound, name: str) -> Health | None:
    """The flag of this name, if it was raised."""
    return next((one for one in sound.health if one.flag == name), None)


def raised(sound: Sound, name: str) -> Health:
    found = flag(sound, name)
    assert found is not None, f"{name} is not among {[one.flag for one in sound.health]}"
    return found

"""Sum up the rollouts of a run in `_aggregate_metrics.json`, read in the order of their tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from blade_eval.environment import Environment, Row
from blade_eval.runner import encode
from blade_eval.runner.places import Places


class _Ref(msgspec.Struct):
    name: Any = None


class _Head(msgspec.Struct):
    task: int = msgspec.field(name="_ng_task_index")
    repeat: int = msgspec.field(name="_ng_rollout_index")
    agent: _Ref | None = msgspec.field(name="agent_ref", default=None)


def written(places: Places, environment_of: Callable[[str], Environment | None]) -> Path | None:
    """Write the metrics of every agent; None where there is no rollout to sum up."""
    from blade_eval import aggregate

    order = _ordered(places.rollouts)
    if not order:
        return None
    entries: list[Row] = []
    for name, offsets in order.items():
        rows = _rows(places.rollouts, offsets)
        entries += aggregate.aggregate_metrics(rows, environment_of(name))
    draft = places.aggregate.with_name(places.aggregate.name + ".tmp")
    try:
        draft.write_bytes(aggregate.content(entries))
        os.replace(draft, places.aggregate)
    finally:
        draft.unlink(missing_ok=True)
    return places.aggregate


def _ordered(path: Path) -> dict[str, list[int]]:
    """Where the rows of each agent begin, by task and repeat; agents as they first appear."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    decoder = msgspec.json.Decoder(_Head)
    offset = 0
    with path.open("rb") as file:
        for line in file:
            try:
                head: _Head | None = decoder.decode(line)
            except encode.NOT_JSON:
                head = _careful(line)
            if head is not None:
                name = head.agent.name if head.agent is not None else None
                found.setdefault(str(name or ""), []).append((head.task, head.repeat, offset))
            offset += len(line)
    return {name: [offset for _, _, offset in sorted(heads)] for name, heads in found.items()}


def _careful(line: bytes) -> _Head | None:
    """The same of a line that another tool spelled; None if it is no row with indices."""
    row = encode.any_row(line) or {}
    task, repeat, ref = row.get("_ng_task_index"), row.get("_ng_rollout_index"), row.get("agent_ref")
    if type(task) is not int or type(repeat) is not int:
        return None
    return _Head(task, repeat, _Ref(ref.get("name")) if isinstance(ref, dict) else None)


def _rows(path: Path, offsets: list[int]) -> Iterator[Row]:
    with path.open("rb") as file:
        for offset in offsets:
            file.seek(offset)
            row = encode.any_row(file.readline())
            if row is not None:
                yield row

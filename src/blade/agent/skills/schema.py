"""Turn the rows of runs into their schema: every field with its types, presence and role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from blade.model import ID_FIELDS

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline.load import Loaded

SAMPLE = 400  # rows looked at in each run, spread over all of them
_WIDE = 40  # keys up to which an object is a record and not a map
_NESTED = frozenset("response responses_create_params agent_ref verifier_metadata metadata".split())
_REPEATS = frozenset("_ng_rollout_index _rollout_index rollout_index rollout_id".split())
_TYPES = {
    bool: "true or false", int: "whole number", float: "number", str: "text", list: "list", dict: "object",
    type(None): "null",
}  # fmt: skip

TASK_ID = "task id"
ROLLOUT_ID = "rollout id"
REWARD = "reward"
REQUEST = "request"
OUTPUT = "output"
VERIFIER = "verifier"
SLICE = "slice"
TASK = "task"
OTHER = "bookkeeping"
ROLES = (TASK_ID, ROLLOUT_ID, REWARD, OUTPUT, VERIFIER, SLICE, TASK, REQUEST, OTHER)


class Field(msgspec.Struct, frozen=True):
    """One field of the rows."""

    name: str
    role: str
    types: tuple[str, ...]  # the commonest first
    present: int  # rows that have it
    of: int  # rows looked at


def schema(loaded: Sequence[Loaded], reports: Sequence[Report]) -> list[Field]:
    """The fields of a sample of the rows, by role and name."""
    types: dict[str, dict[str, int]] = {}
    rows = 0
    for row in _sampled(loaded):
        rows += 1
        for name, value in _members(row):
            told = types.setdefault(name, {})
            kind = _TYPES.get(type(value), "other")
            told[kind] = told.get(kind, 0) + 1
    roles = _Roles(loaded, reports)
    found = [
        Field(
            name,
            roles.of(name),
            tuple(sorted(told, key=lambda kind: (-told[kind], kind))),
            sum(told.values()),
            rows,
        )
        for name, told in types.items()
    ]
    return sorted(found, key=lambda one: (ROLES.index(one.role), one.name))


def _sampled(loaded: Sequence[Loaded]) -> Iterator[Mapping[str, Any]]:
    from blade.formats import opened

    for one in loaded:
        n = len(one.run.rollouts.task)
        for at in range(min(n, SAMPLE)):
            yield opened.row(one.run, at * n // min(n, SAMPLE))


def _members(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The top-level fields; of objects that are records, theirs as well."""
    for name, value in row.items():
        if isinstance(value, dict) and 0 < len(value) <= _WIDE and name in _NESTED:
            for below, inner in value.items():
                yield f"{name}.{below}", inner
        else:
            yield name, value


class _Roles:
    """What each field is for, by its name and by what was learned from its values."""

    def __init__(self, loaded: Sequence[Loaded], reports: Sequence[Report]) -> None:
        self._slices = {one.field for report in reports for one in report.slices}
        self._codes = {code.field for one in loaded for code in one.benchmark.codes}
        self._stages = {stage.field for one in loaded for stage in one.benchmark.stages}
        self._inputs = {name for one in loaded for name in one.run.rollouts.input_fields}
        declared = {one.benchmark.task_id for one in loaded if one.benchmark.task_id}
        self._ids = {"_ng_task_index", "_task_index", "task_index", *ID_FIELDS, *declared} - {
            "id",
            "uuid",
            "name",
        }

    def of(self, name: str) -> str:
        from blade.formats.names import is_task_field

        first = name.partition(".")[0]
        if name in ("reward", "score"):
            return REWARD
        if name in _REPEATS:
            return ROLLOUT_ID
        if name in self._ids:
            return TASK_ID
        if first == "response":
            return OUTPUT
        if first == "responses_create_params":
            return REQUEST
        if name in self._slices:
            return SLICE
        if name in self._codes or name in self._stages:
            return VERIFIER
        if first.startswith("_ng") or first == "agent_ref":
            return OTHER
        if name in self._inputs or is_task_field(first):
            return TASK
        return VERIFIER

"""Turn the task fields of a run into one hash a task, to know a task again in another run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xxhash import xxh3_64_intdigest

from blade.formats import opened
from blade.formats.assemble import Assembled
from blade.formats.fields import LIST, NULL, TEXT
from blade.formats.items import NOTHING, value_at
from blade.formats.names import is_task_field
from blade.model import ID_FIELDS, PROMPT, Column, Rollouts

if TYPE_CHECKING:
    from blade.model import Bools, Hashes, Ints

MAX_FIELDS = 8  # a column of texts takes a tenth of a second for a million rows
MAX_TASKS = 5_000  # beyond it no row is opened, and fields of lists and objects are left out
MAX_OPENED = 2 * MAX_TASKS
MAX_OPENED_BYTES = 256 << 20  # half a second
_STEADY = 0.95  # share of the tasks with repeats within which a field must not vary


def fingerprints(run: Assembled) -> dict[str, Hashes]:
    """The hash of each identity field by task code; 0 where it varies within the task or is not told.

    An identity field comes with the task, holds still over its repeats and tells tasks apart. The hash is of
    the value, however its JSON is spelled.
    """
    rollouts = run.rollouts
    found: dict[str, Hashes] = {}
    if not len(rollouts.task):
        return found
    codes, starts = np.unique(rollouts.task, return_index=True)
    names = _ranked(rollouts)
    by_value = _by_value(run, names, starts)
    for name in names:
        hashes = by_value.get(name)
        if hashes is None:
            column = rollouts.fields[name]
            if (column.kind >= LIST).any():  # the column knows them by their spelling alone
                continue
            hashes = _told(column)
        is_same, highest = _agreed(hashes, starts)
        if not _is_steady(hashes, starts, is_same):
            continue
        values = np.where(is_same, highest, np.uint64(0))
        known = values[values != 0]
        if known.size and (known != known[0]).any():
            found[name] = np.zeros(len(rollouts.task_keys), np.uint64)
            found[name][codes] = values
            if len(found) == MAX_FIELDS:
                break
    return found


def _ranked(rollouts: Rollouts) -> list[str]:
    """The fields of the task: ids first, then the prompt and what is named like content, then the rest."""
    order = {name: place for place, name in enumerate(ID_FIELDS)}
    names = [name for name in rollouts.input_fields if name in rollouts.fields]
    names.sort(
        key=lambda name: (
            order.get(name, len(order)),
            name != PROMPT,
            not is_task_field(name),
            "." in name,
            name,
        )
    )
    return names[: 2 * MAX_FIELDS]


def _told(column: Column) -> Hashes:
    """The hash of each row; 0 for null and an empty text, which tell nothing."""
    hashes = column.hash
    silent = column.kind == NULL
    if "" in column.texts:
        silent |= (column.kind == TEXT) & (column.code == column.texts.index(""))
    return np.where(silent, np.uint64(0), hashes) if silent.any() else hashes


def _agreed(hashes: Hashes, starts: Ints) -> tuple[Bools, Hashes]:
    """Whether the rows of each task that tell a value tell the same one, and the highest of their hashes."""
    highest = np.maximum.reduceat(hashes, starts)
    # 0 is "not told"; less 1 it is the largest number there is, and never the least that is told
    lowest = np.minimum.reduceat(hashes - np.uint64(1), starts) + np.uint64(1)
    return highest == lowest, highest


def _is_steady(hashes: Hashes, starts: Ints, is_same: Bools) -> bool:
    """Does the field hold still within nearly all tasks that tell it more than once."""
    if is_same.all():
        return True
    several = np.add.reduceat((hashes != 0).astype(np.int64), starts) > 1
    n_several = int(several.sum())
    return int((several & ~is_same).sum()) <= (1 - _STEADY) * n_several


# -- lists and objects ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Spelled:
    """A field whose column knows lists, objects or prompts by a hash of their JSON as it stands."""

    hashes: Hashes  # of all rows
    is_spelled: Bools  # of all rows: is its hash one of a spelling
    distinct: Hashes  # the spellings to open, ascending
    positions: Ints  # a row that has each of them


def _by_value(run: Assembled, names: Sequence[str], starts: Ints) -> dict[str, Hashes]:
    """The hashes of all rows by value, of each field with lists, objects or prompts; none if too costly.

    One row of each spelling is opened. Where that is too much, only those of tasks whose rows spell a value
    alike: a task that has it in several spellings then counts as one that varies.
    """
    if len(starts) > MAX_TASKS:
        return {}
    for is_thorough in (True, False):
        fields = {}
        for name in names:
            column = run.rollouts.fields[name]
            if (column.kind >= LIST).any():
                fields[name] = _spelled(column, starts, is_thorough)
        wanted: dict[int, list[str]] = {}
        for name, field in fields.items():
            for position in field.positions.tolist():
                wanted.setdefault(position, []).append(name)
        if _is_affordable(run, wanted):
            values = _opened(run, wanted)
            return {name: _respelled(field, values.get(name, {})) for name, field in fields.items()}
    return {}


def _spelled(column: Column, starts: Ints, is_thorough: bool) -> _Spelled:
    hashes, is_spelled = _told(column), column.kind >= LIST
    chosen = is_spelled
    if not is_thorough:
        is_same, _ = _agreed(hashes, starts)
        chosen = is_spelled & np.repeat(is_same, np.diff(starts, append=len(hashes)))
    rows = np.flatnonzero(chosen)
    distinct, first = np.unique(hashes[rows], return_index=True)
    return _Spelled(hashes, is_spelled, distinct, rows[first])


def _is_affordable(run: Assembled, positions: Mapping[int, list[str]]) -> bool:
    if not positions or len(positions) > MAX_OPENED:
        return not positions
    rows = run.rollouts.row_id[list(positions)]
    return float(run.rows.numbers("length")[rows].sum()) <= MAX_OPENED_BYTES


def _opened(run: Assembled, wanted: Mapping[int, list[str]]) -> dict[str, dict[int, int]]:
    """The hash of the value of each wanted field, by position of the row."""
    found: dict[str, dict[int, int]] = {}
    for position in sorted(wanted, key=run.rollouts.row_id.__getitem__):  # as they lie in the file
        row = opened.row(run, position)
        for name in wanted[position]:
            found.setdefault(name, {})[position] = _hash_of(value_at(row, name))
    return found


def _respelled(field: _Spelled, values: Mapping[int, int]) -> Hashes:
    """The hashes of all rows with those of values for those of spellings that were opened."""
    told = np.array([values[position] for position in field.positions.tolist()], np.uint64)
    rows = np.flatnonzero(field.is_spelled & np.isin(field.hashes, field.distinct))
    found = field.hashes.copy()
    found[rows] = told[field.distinct.searchsorted(field.hashes[rows])]
    return found


def _hash_of(value: Any) -> int:
    """A hash of a text, or of anything else as JSON in one spelling; 0 where it tells nothing."""
    if value is NOTHING or value is None or value == "":
        return 0
    text = value
    if not isinstance(value, str):
        text = json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def _plain(value: Any) -> Any:
    """The value with 1 for 1.0, which is the same number."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return dict(zip(value, map(_plain, value.values()), strict=True))
    return value

"""Turn the task fields of a run into one hash a task, to know a task again in another run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from blade.ingest.fields import NULL, TEXT
from blade.ingest.names import is_task_field
from blade.model import ID_FIELDS, PROMPT, Column, Rollouts

if TYPE_CHECKING:
    from blade.model import Hashes

MAX_FIELDS = 8  # a column of texts takes a tenth of a second for a million rows
_STEADY = 0.95  # share of the tasks with repeats within which a field must not vary


def fingerprints(rollouts: Rollouts) -> dict[str, Hashes]:
    """The hash of each identity field by task code; 0 where it varies within the task or is not told.

    An identity field comes with the task, holds still over its repeats and tells tasks apart.
    """
    found: dict[str, Hashes] = {}
    if not len(rollouts.task):
        return found
    codes, starts = np.unique(rollouts.task, return_index=True)
    for name in _ranked(rollouts):
        hashes = _told(rollouts.fields[name])
        highest = np.maximum.reduceat(hashes, starts)
        # 0 is "not told"; less 1 it is the largest number there is, and never the least that is told
        lowest = np.minimum.reduceat(hashes - np.uint64(1), starts) + np.uint64(1)
        is_same = highest == lowest
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


def _is_steady(hashes: Hashes, starts: np.ndarray, is_same: np.ndarray) -> bool:
    """Does the field hold still within nearly all tasks that tell it more than once."""
    if is_same.all():
        return True
    several = np.add.reduceat((hashes != 0).astype(np.int64), starts) > 1
    n_several = int(several.sum())
    return int((several & ~is_same).sum()) <= (1 - _STEADY) * n_several

"""Find where task indices and task contents disagree: the identity fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blade.model import Cause, Confidence, Evidence, Finding, Rollouts

PROMPT = "responses_create_params.input"
NAME = "task-identity"
_NAMED_IDS = (
    "task_id",
    "problem_id",
    "instance_id",
    "question_id",
    "verifier_metadata.task_id",
    "metadata.task_id",
)
_STEADY = 0.95  # share of tasks within which a field must not vary to be part of the identity
_SHOWN = 20  # findings printed one by one; the rest are counted in the last one

Quote = Callable[[int, str], Evidence | None]


def findings(rollouts: Rollouts, quote: Quote) -> Iterator[Finding]:
    """One index that covers several tasks, and one task under several indices."""
    if len(rollouts.task) == 0:
        return
    yield from _limited(list(_several_tasks_in_one(rollouts, quote)), "more task indices cover several tasks")
    yield from _limited(list(_one_task_in_several(rollouts, quote)), "more tasks stand under several indices")


def _limited(found: list[Finding], words: str) -> Iterator[Finding]:
    yield from found[:_SHOWN]
    if len(found) > _SHOWN:
        last = found[_SHOWN]
        rest = len(found) - _SHOWN
        yield Finding(
            f"{last.id}-and-more",
            last.run,
            NAME,
            last.task,
            last.repeat,
            f"{rest} {words}, this one among them",
            last.severity,
            last.confidence,
            last.evidence,
            last.cause,
        )


# -- one index, several tasks ---------------------------------------------------------------------


def _several_tasks_in_one(rollouts: Rollouts, quote: Quote) -> Iterator[Finding]:
    """Tasks whose rows carry different values of an identity field, where the evidence is clear."""
    splits: dict[int, list[str]] = {}  # task -> fields that differ within it
    for name in sorted(_identity_fields(rollouts)):
        for task in _varying(rollouts.task, rollouts.fields[name].hash).tolist():
            splits.setdefault(task, []).append(name)
    for task, fields in sorted(splits.items()):
        rows = np.flatnonzero(rollouts.task == task)
        if not _is_clear(rollouts, rows, fields):
            continue
        best = min(fields, key=lambda name: (name not in _NAMED_IDS, name == PROMPT, name))
        values, first = np.unique(rollouts.fields[best].hash[rows], return_index=True)
        told = [
            e
            for e in (quote(int(rows[place]), best) for place in sorted(first.tolist())[:3])
            if e is not None
        ]
        if told:
            key = rollouts.task_keys[task]
            named = ", ".join(sorted(fields))
            text = f"task index {key} covers {len(values)} different tasks: {named} differ between its rows"
            yield Finding(
                f"{NAME}-{rollouts.run}-{key}",
                rollouts.run,
                NAME,
                key,
                None,
                text,
                3,
                Confidence.LIKELY,
                tuple(told),
                Cause.DATA_ARTIFACT,
            )


def _identity_fields(rollouts: Rollouts) -> list[str]:
    """Task fields that hold still within tasks, or whose values nest inside the indices."""
    found = []
    for name in sorted(rollouts.input_fields):
        if name not in rollouts.fields:
            continue
        hashes = rollouts.fields[name].hash
        if len(np.unique(hashes[hashes != 0])) < 2:
            continue
        steady = _steady_share(rollouts.task, hashes)
        nests = name != PROMPT and _nests(rollouts.task, hashes)
        if (steady is not None and steady >= _STEADY) or nests:
            found.append(name)
    return found


def _steady_share(task: NDArray[Any], hashes: NDArray[Any]) -> float | None:
    """Of the tasks with several rows, the share within which the field does not vary."""
    told = hashes != 0
    counts = np.bincount(task[told], minlength=int(task.max()) + 1)
    several = int((counts > 1).sum())
    return 1.0 - len(_varying(task, hashes)) / several if several else None


def _varying(task: NDArray[Any], hashes: NDArray[Any]) -> NDArray[Any]:
    """Tasks within which the field takes more than one value."""
    told = hashes != 0
    task, hashes = task[told], hashes[told]
    order = np.lexsort((hashes, task))
    task, hashes = task[order], hashes[order]
    changes = (task[1:] == task[:-1]) & (hashes[1:] != hashes[:-1])
    return np.unique(task[1:][changes])


def _nests(task: NDArray[Any], hashes: NDArray[Any]) -> bool:
    """Do the values come back over several rows, each within one index: then they are the tasks.

    This is what two data sets merged under the same indices look like. An id of the rollout never comes back.
    """
    told = hashes != 0
    pairs = np.unique(np.stack([hashes[told], task[told].astype(np.uint64)]), axis=1)
    values, spread = np.unique(pairs[0], return_counts=True)
    n_rows = int(told.sum())
    return len(values) > 0 and bool((spread == 1).mean() >= _STEADY) and n_rows >= 2 * len(values)


def _is_clear(rollouts: Rollouts, rows: NDArray[Any], fields: list[str]) -> bool:
    """A named id, or two fields that split the rows alike; or the prompt alone if nothing else is known."""
    if any(name in _NAMED_IDS for name in fields):
        return True
    shapes = [tuple(_shape(rollouts.fields[name].hash[rows])) for name in fields]
    if any(shapes.count(shape) > 1 for shape in shapes):
        return True
    return fields == [PROMPT] and rollouts.input_fields <= {PROMPT}


def _shape(hashes: NDArray[Any]) -> list[int]:
    """Which rows share a value, whatever the value."""
    known: dict[int, int] = {}
    return [known.setdefault(value, len(known)) for value in hashes.tolist()]


# -- one task, several indices --------------------------------------------------------------------


def _one_task_in_several(rollouts: Rollouts, quote: Quote) -> Iterator[Finding]:
    """Indices whose identity fields all agree, where those fields otherwise tell tasks apart."""
    fields = _telling_fields(rollouts)
    if not fields:
        return
    first = np.unique(rollouts.task, return_index=True)[1]
    stacked = np.stack([rollouts.fields[name].hash[first] for name in fields])
    known = (stacked != 0).all(axis=0)
    groups: dict[tuple[int, ...], list[int]] = {}
    for place in np.flatnonzero(known).tolist():
        groups.setdefault(tuple(stacked[:, place].tolist()), []).append(int(first[place]))
    shared = [rows for rows in groups.values() if len(rows) > 1]
    if not shared or len(groups) < 2 or not _is_surprising(fields, groups):
        return
    best = min(fields, key=lambda name: (name not in _NAMED_IDS, name == PROMPT, name))
    for rows in shared:
        keys = [rollouts.task_keys[int(rollouts.task[row])] for row in rows]
        told = [e for e in (quote(row, best) for row in rows[:3]) if e is not None]
        if told:
            where = f"{len(keys)} indices ({', '.join(keys[:5])})"
            text = f"one task stands under {where}: {', '.join(fields)} are the same"
            yield Finding(
                f"{NAME}-{rollouts.run}-{keys[0]}-same",
                rollouts.run,
                NAME,
                keys[0],
                None,
                text,
                2,
                Confidence.LIKELY,
                tuple(told),
                Cause.DATA_ARTIFACT,
            )


def _telling_fields(rollouts: Rollouts) -> list[str]:
    """Task fields that hold still within tasks (or cannot be seen to vary) and differ between them."""
    found = []
    for name in sorted(rollouts.input_fields):
        if name not in rollouts.fields:
            continue
        hashes = rollouts.fields[name].hash
        steady = _steady_share(rollouts.task, hashes)
        varies = len(np.unique(hashes[hashes != 0])) > 1
        if varies and (steady is None or steady >= _STEADY) and (hashes != 0).mean() >= _STEADY:
            found.append(name)
    return found


def _is_surprising(fields: list[str], groups: dict[tuple[int, ...], list[int]]) -> bool:
    """Would different tasks not look alike in these fields.

    With an id or several fields, no. A lone prompt may legitimately repeat (a game with hidden seeds), unless
    repeats are the exception or every prompt comes equally often, as when repeats were numbered as tasks.
    """
    if any(name in _NAMED_IDS for name in fields) or len(fields) >= 3:
        return True
    sizes = [len(rows) for rows in groups.values()]
    is_exception = sum(size > 1 for size in sizes) < 0.5 * len(sizes)
    return PROMPT in fields and (is_exception or len(set(sizes)) == 1)

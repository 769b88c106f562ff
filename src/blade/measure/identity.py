"""Find where task indices and task contents disagree: the identity fingerprint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blade.model import ID_FIELDS, PROMPT, Cause, Confidence, Evidence, Finding, Rollouts

NAME = "task-identity"
_NAMED_IDS = ID_FIELDS[:6]  # the others may name a rollout, or not be unique
_STEADY = 0.95  # share of tasks within which a field must not vary to be part of the identity
_SHOWN = 20  # findings printed one by one; the rest are counted in the last one
_MOSTLY_UNIQUE = 0.8  # distinct values per task from which two equal ones are an exception
_NULL, _TEXT = 1, 4  # kinds of a column

Quote = Callable[[int, str], Evidence | None]
Hashes = dict[str, NDArray[Any]]  # of the task fields; 0 where a row does not tell


def findings(rollouts: Rollouts, quote: Quote) -> Iterator[Finding]:
    """One index that covers several tasks, and one task under several indices."""
    if len(rollouts.task) == 0:
        return
    hashes = _hashes(rollouts)
    yield from _several_tasks_in_one(rollouts, hashes, quote)
    yield from _one_task_in_several(rollouts, hashes, quote)


def _hashes(rollouts: Rollouts) -> Hashes:
    """The task fields that take more than one value; null and an empty text tell nothing."""
    found: Hashes = {}
    for name in sorted(rollouts.input_fields):
        if name not in rollouts.fields:
            continue
        column = rollouts.fields[name]
        hashes = np.where(column.kind == _NULL, 0, column.hash)
        if "" in column.texts:
            hashes[(column.kind == _TEXT) & (column.code == column.texts.index(""))] = 0
        if len(np.unique(hashes[hashes != 0])) > 1:
            found[name] = hashes
    return found


def _limited(rollouts: Rollouts, quote: Quote, found: list[_Found], words: str) -> Iterator[Finding]:
    """The findings with their quotations; from a number on one stands for the rest."""
    for place, one in enumerate(found[: _SHOWN + 1]):
        told = [evidence for row in one.rows[:3] if (evidence := quote(row, one.field)) is not None]
        if not told:
            continue
        rest = len(found) - place
        is_last = place == _SHOWN
        yield Finding(
            f"{NAME}-{rollouts.run}-{one.key}{one.suffix}{'-and-more' if is_last else ''}",
            rollouts.run,
            NAME,
            one.key,
            None,
            f"{rest} {words}, this one among them" if is_last else one.text,
            one.severity,
            one.confidence,
            tuple(told),
            Cause.DATA_ARTIFACT,
        )


class _Found:
    """A finding before its rows are opened."""

    __slots__ = ("confidence", "field", "key", "rows", "severity", "suffix", "text")

    def __init__(
        self, key: str, suffix: str, rows: list[int], fields: list[str], text: str, severity: int
    ) -> None:
        self.key, self.suffix, self.rows, self.text, self.severity = key, suffix, rows, text, severity
        self.field = _best(fields)
        # a prompt may hold the date, or the levels of a game with hidden seeds
        self.confidence = Confidence.SUSPECTED if self.field == PROMPT else Confidence.LIKELY


def _best(fields: list[str]) -> str:
    """The field to quote: an id if there is one, the prompt only if there is nothing else."""
    return min(fields, key=lambda name: (name not in _NAMED_IDS, name == PROMPT, name))


# -- one index, several tasks ---------------------------------------------------------------------


def _several_tasks_in_one(rollouts: Rollouts, hashes: Hashes, quote: Quote) -> Iterator[Finding]:
    """Tasks whose rows carry different values of an identity field, where the evidence is clear."""
    splits: dict[int, list[str]] = {}  # task -> fields that differ within it
    for name in _identity_fields(rollouts.task, hashes):
        for task in _varying(rollouts.task, hashes[name]).tolist():
            splits.setdefault(task, []).append(name)
    found = []
    bounds = np.searchsorted(rollouts.task, np.arange(len(rollouts.task_keys) + 1, dtype=np.int32)).tolist()
    for task, fields in sorted(splits.items()):
        first, last = bounds[task], bounds[task + 1]
        if not _is_clear(hashes, slice(first, last), fields):
            continue
        where: dict[int, int] = {}  # value -> the first row that has it
        for row, value in enumerate(hashes[_best(fields)][first:last].tolist(), first):
            where.setdefault(value, row)
        rows = [row for value, row in where.items() if value]
        key, named = rollouts.task_keys[task], ", ".join(fields)
        text = f"task index {key} covers {len(rows)} different tasks: {named} differ between its rows"
        found.append(_Found(key, "", rows, fields, text, 3))
    yield from _limited(rollouts, quote, found, "more task indices cover several tasks")


def _identity_fields(task: NDArray[Any], hashes: Hashes) -> list[str]:
    """Task fields that hold still within tasks, or whose values nest inside the indices."""
    found = []
    for name, values in hashes.items():
        steady = _steady_share(task, values)
        if (steady is not None and steady >= _STEADY) or (name != PROMPT and _nests(task, values)):
            found.append(name)
    return found


def _steady_share(task: NDArray[Any], hashes: NDArray[Any]) -> float | None:
    """Of the tasks with several rows, the share within which the field does not vary."""
    told = hashes != 0
    counts = np.bincount(task[told], minlength=int(task.max()) + 1)
    several = int((counts > 1).sum())
    return 1.0 - len(_varying(task, hashes)) / several if several else None


def _varying(task: NDArray[Any], hashes: NDArray[Any]) -> NDArray[Any]:
    """Tasks within which the field takes more than one value; the rows of a task stand together."""
    told = hashes != 0
    task, hashes = task[told], hashes[told]
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


def _is_clear(hashes: Hashes, rows: slice, fields: list[str]) -> bool:
    """A named id, or two fields that split the rows alike; or the prompt alone if nothing else is known.

    An object and its members are one field: what changes inside it changes both.
    """
    if any(name in _NAMED_IDS for name in fields):
        return True
    if fields == [PROMPT]:
        return hashes.keys() <= {PROMPT}
    others = {name: hashes[name][rows] for name in fields if name != PROMPT}
    if PROMPT in hashes:
        others[PROMPT] = hashes[PROMPT][rows]  # even one that varies too often to be identity by itself
    roots: dict[tuple[int, ...], set[str]] = {}
    for name, values in others.items():
        root = name if name == PROMPT else name.partition(".")[0]
        roots.setdefault(_shape(values), set()).add(root)
    return any(len(names) > 1 for shape, names in roots.items() if max(shape) > 0)


def _shape(hashes: NDArray[Any]) -> tuple[int, ...]:
    """Which rows share a value, whatever the value."""
    known: dict[int, int] = {}
    return tuple(known.setdefault(value, len(known)) for value in hashes.tolist())


# -- one task, several indices --------------------------------------------------------------------


def _one_task_in_several(rollouts: Rollouts, hashes: Hashes, quote: Quote) -> Iterator[Finding]:
    """Indices whose identity fields all agree, where those fields otherwise tell tasks apart."""
    fields = _telling_fields(rollouts.task, hashes)
    if not fields:
        return
    starts = np.unique(rollouts.task, return_index=True)[1]
    stacked = np.stack([hashes[name][starts] for name in fields])
    groups: dict[tuple[int, ...], list[int]] = {}
    for place in np.flatnonzero((stacked != 0).all(axis=0)).tolist():
        groups.setdefault(tuple(stacked[:, place].tolist()), []).append(int(starts[place]))
    shared = [rows for rows in groups.values() if len(rows) > 1]
    sizes = [len(rows) for rows in groups.values()]
    if not shared or not _is_surprising(fields, stacked, sizes, has_repeats=len(starts) < len(rollouts.task)):
        return
    found = []
    for rows in shared:
        keys = [rollouts.task_keys[int(rollouts.task[row])] for row in rows]
        shown = ", ".join(keys[:5]) + (", ..." if len(keys) > 5 else "")
        text = f"one task stands under {len(keys)} indices ({shown}): {', '.join(fields)} are the same"
        found.append(_Found(keys[0], "-same", rows, fields, text, 2))
    yield from _limited(rollouts, quote, found, "more tasks stand under several indices")


def _telling_fields(task: NDArray[Any], hashes: Hashes) -> list[str]:
    """Task fields that hold still within tasks (or cannot be seen to vary) and that most rows tell."""
    found = []
    for name, values in hashes.items():
        steady = _steady_share(task, values)
        if (steady is None or steady >= _STEADY) and (values != 0).mean() >= _STEADY:
            found.append(name)
    is_seen = PROMPT in found and _steady_share(task, hashes[PROMPT]) is not None
    if not is_seen and any(name in _NAMED_IDS for name in found):
        found = [name for name in found if name != PROMPT]  # it may be that of a simulated user
    return found


def _is_surprising(fields: list[str], stacked: NDArray[Any], sizes: list[int], has_repeats: bool) -> bool:
    """Would different tasks not look alike in these fields.

    They would not if the fields mostly differ from task to task: an id, the prompt, or two others (one alone
    may be the answer to a sum). Nor if every task comes equally often in a run without repeats of its own:
    then repeats were numbered as tasks. A few prompts for many tasks are the levels of a game.
    """
    needed = _MOSTLY_UNIQUE * stacked.shape[1]
    unique = [name for name, row in zip(fields, stacked, strict=True) if len(np.unique(row)) >= needed]
    names = {*_NAMED_IDS, PROMPT}
    if len(unique) > 1 or names & set(unique):
        return True
    size, n_alike = Counter(sizes).most_common(1)[0]
    counted_up = size > 1 and n_alike >= _MOSTLY_UNIQUE * len(sizes) and len(sizes) > size
    return bool(names & set(fields)) and counted_up and not has_repeats

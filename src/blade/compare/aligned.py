"""Turn two runs into the tasks they share and those they do not, by key, guarded by content."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from blade.compare.contents import (
    WEAK_IDS,
    Pairs,
    Related,
    changed_everywhere,
    changed_tasks,
    group_of,
    related,
    supporters,
    sure,
    unrelated_groups,
)
from blade.compare.pairing import counts
from blade.model import ID_FIELDS, PROMPT, Alignment, Side

if TYPE_CHECKING:
    from blade.model import Bools, Ints

_MOVED = 0.8  # share of the smaller run whose contents stand under another key: then keys are no guide
_UNIQUE = 0.95  # share of the tasks that a field must tell from all others of their run
_SHOWN = 3  # fields named in words


def align(a: Side, b: Side) -> Alignment:
    """Match tasks by key, or by content where that shows the keys of the runs to be unrelated.

    A key is `modified` only where a field that belongs to the task clearly differs: one that differs in
    nearly all tasks tells of a template or a format and of no single task.
    """
    scored_a, scored_b = counts(a) > 0, counts(b) > 0
    at = _places(a, b)
    shared = np.flatnonzero(at >= 0)
    both = shared[scored_a[shared] & scored_b[at[shared]]]
    pairs = Pairs(both, at[both])
    fields = related(a, b, pairs)
    if not supporters(fields, ("text", "gold")):
        moved = _by_content(a, b, scored_a, scored_b, ids=not supporters(fields))
        if moved is not None:
            return _aligned_by_content(a, b, scored_a, scored_b, *moved)
    changed, told = changed_tasks(a, b, pairs, fields)
    keys = a.judged.task_keys
    wanted_a, wanted_b = scored_a | (a.expected > 0), scored_b | (b.expected > 0)
    seen_by_b, scored_by_b = _other(at, wanted_b), _other(at, scored_b)
    seen_by_a, scored_by_a = _reversed(at, wanted_a, wanted_b), _reversed(at, scored_a, scored_b)
    return Alignment(
        matched_by=_words(fields),
        common=keys if len(both) == len(keys) and not changed.any() else _named(keys, both[~changed]),
        added=_named(b.judged.task_keys, np.flatnonzero(scored_b & ~seen_by_a)),
        removed=_named(keys, np.flatnonzero(scored_a & ~seen_by_b)),
        modified=_named(keys, both[changed]),
        missing_baseline=_named(b.judged.task_keys, np.flatnonzero(scored_b & seen_by_a & ~scored_by_a)),
        missing_candidate=_named(keys, np.flatnonzero(scored_a & seen_by_b & ~scored_by_b)),
        changed_fields=told,
        changed_everywhere=changed_everywhere(a, b, pairs, fields) if not changed.all() else (),
    )


def _places(a: Side, b: Side) -> Ints:
    """The code that `b` gives each task of `a`; -1 where it has no such key."""
    keys = a.judged.task_keys
    if keys == b.judged.task_keys:
        return np.arange(len(keys))
    place = {key: code for code, key in enumerate(b.judged.task_keys)}
    return np.fromiter((place.get(key, -1) for key in keys), np.int64, len(keys))


def _other(at: Ints, column: Bools) -> Bools:
    """A column of the tasks of `b` for the tasks of `a`; False where `b` has no such key."""
    found = np.zeros(len(at), bool)
    found[at >= 0] = column[at[at >= 0]]
    return found


def _reversed(at: Ints, column: Bools, like: Bools) -> Bools:
    """A column of the tasks of `a` for the tasks of `b`."""
    found = np.zeros(len(like), bool)
    found[at[at >= 0]] = column[at >= 0]
    return found


def _named(keys: tuple[str, ...], codes: Ints) -> tuple[str, ...]:
    return tuple(keys[code] for code in codes.tolist())


def _words(fields: dict[str, Related]) -> str:
    checked = supporters(fields)
    if not checked:
        return "task key; no field of the tasks confirms it"
    more = f" and {len(checked) - _SHOWN} more" if len(checked) > _SHOWN else ""
    return f"task key, confirmed by {', '.join(checked[:_SHOWN])}{more}"


# -- by content -----------------------------------------------------------------------------------


def _by_content(a: Side, b: Side, scored_a: Bools, scored_b: Bools, ids: bool) -> tuple[str, Pairs] | None:
    """The surest field by which most tasks of the smaller run are found in the other under another key."""
    smaller = min(int(scored_a.sum()), int(scored_b.sum()))
    rank_a, rank_b = _ranks(a, b)
    for name in _naming_fields(a, b):
        if group_of(name) == "id" and not ids:
            continue  # one of them says that the keys are right
        pairs = _same_values(a, b, name, scored_a, scored_b)
        n_moved = int((rank_a[pairs.a] != rank_b[pairs.b]).sum())
        if n_moved >= max(_MOVED * smaller, 1) and not _is_denied(a, b, name, pairs):
            return name, pairs
    return None


def _naming_fields(a: Side, b: Side) -> list[str]:
    """Fields whose values may name tasks, the surest first."""
    order = {name: place for place, name in enumerate(ID_FIELDS)}
    return sorted(
        (name for name in a.fingerprints if name in b.fingerprints and group_of(name)),
        key=lambda name: (
            name in WEAK_IDS,
            name == PROMPT,
            group_of(name) == "gold",
            order.get(name, len(order)),
            name,
        ),
    )


def _same_values(a: Side, b: Side, name: str, scored_a: Bools, scored_b: Bools) -> Pairs:
    """Tasks with the same value of a field; none where values stand for several tasks of a run."""
    codes, values = [], []
    for side, scored in ((a, scored_a), (b, scored_b)):
        known = np.flatnonzero(scored & (side.fingerprints[name] != 0))
        single, first, n = np.unique(side.fingerprints[name][known], return_index=True, return_counts=True)
        if int((n == 1).sum()) < _UNIQUE * len(known):
            return Pairs(known[:0], known[:0])
        codes.append(known[first[n == 1]])
        values.append(single[n == 1])
    _, at_a, at_b = np.intersect1d(values[0], values[1], assume_unique=True, return_indices=True)
    return Pairs(codes[0][at_a], codes[1][at_b])  # in the order of the values, whichever run comes first


def _is_denied(a: Side, b: Side, name: str, pairs: Pairs) -> bool:
    """Do other fields show that tasks with the same value of this one are others all the same.

    Two sets of tasks may both be counted from 0 in a field of their own. A text says itself what the task is.
    """
    fields = sure(a, b, pairs, related(a, b, pairs))
    against = unrelated_groups({other: one for other, one in fields.items() if other != name})
    if group_of(name) == "id":
        return bool(against) if name in WEAK_IDS else {"text", "gold"} <= against
    return group_of(name) == "gold" and "text" in against


def _aligned_by_content(
    a: Side, b: Side, scored_a: Bools, scored_b: Bools, name: str, pairs: Pairs
) -> Alignment:
    """Tasks matched by a field. A task without a row has no content, so that none is known to be missing."""
    fields = related(a, b, pairs)
    changed, told = changed_tasks(a, b, pairs, fields)
    rank_a, rank_b = (rank[codes] for rank, codes in zip(_ranks(a, b), (pairs.a, pairs.b), strict=True))
    n_moved = int((rank_a != rank_b).sum())
    # by the smaller of the two keys, so that the order does not tell which run is the baseline
    order = np.lexsort((np.maximum(rank_a, rank_b), np.minimum(rank_a, rank_b)))
    same, other = order[~changed[order]], order[changed[order]]
    keys_a, keys_b = a.judged.task_keys, b.judged.task_keys
    only_a, only_b = scored_a.copy(), scored_b.copy()
    only_a[pairs.a] = False
    only_b[pairs.b] = False
    return Alignment(
        matched_by=f"{name}: {n_moved} of {len(order)} tasks have another key in the other run",
        common=_named(keys_a, pairs.a[same]),
        common_candidate=_named(keys_b, pairs.b[same]),
        added=_named(keys_b, np.flatnonzero(only_b)),
        removed=_named(keys_a, np.flatnonzero(only_a)),
        modified=_named(keys_a, pairs.a[other]),
        modified_candidate=_named(keys_b, pairs.b[other]),
        changed_fields=told,
        changed_everywhere=changed_everywhere(a, b, pairs, fields) if not changed.all() else (),
    )


def _ranks(a: Side, b: Side) -> tuple[Ints, Ints]:
    """The place of each task of either run among the keys of both."""
    keys = sorted({*a.judged.task_keys, *b.judged.task_keys}, key=_key_order)
    place = {key: rank for rank, key in enumerate(keys)}
    rank_a, rank_b = (
        np.fromiter((place[key] for key in side.judged.task_keys), np.int64, len(side.judged.task_keys))
        for side in (a, b)
    )
    return rank_a, rank_b


def _key_order(key: str) -> tuple[int, int, str]:
    """Numbers by value, then texts by spelling."""
    digits = key.removeprefix("-")
    return (0, int(key), key) if digits.isascii() and digits.isdigit() else (1, 0, key)

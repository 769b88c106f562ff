"""Give every row its key (task, repeat), and settle attempts and duplicates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blade.formats.rows import Rows
from blade.formats.values import NO_INDEX
from blade.model import ID_FIELDS, PROMPT, Column

_DECLARED = ID_FIELDS[:3]  # safe to group rows by; the others may name a rollout


@dataclass(frozen=True)
class TaskKeys:
    """The task of each row as a code, and what the codes stand for."""

    code: NDArray[np.int32]
    keys: tuple[str, ...]
    grouped_by: str  # in words, for the report


@dataclass(frozen=True)
class Kept:
    """Which rows stay, in canonical order, and what was set aside."""

    order: NDArray[np.int64]  # row numbers
    repeat: NDArray[np.int64]  # aligned with `order`
    copies: NDArray[np.int64]  # identical rows set aside, aligned with `order`
    n_superseded: int
    n_identical: int
    n_differing: int  # surplus rows whose key is taken by a different row
    differing: tuple[int, ...]  # positions in `order` of the first row of such a key


def text_of(column: Column, row: int) -> str | None:
    """The value of a scalar field as the text of a key."""
    if column.code[row] >= 0:
        return column.texts[int(column.code[row])]
    number = float(column.number[row])
    if np.isnan(number):
        return None
    return str(int(number)) if number.is_integer() else repr(number)


def task_keys(rows: Rows, declared: str | None) -> TaskKeys:
    """Tasks by index, else by a declared id field, else by content."""
    index = rows.numbers("task_index").astype(np.int64)
    has_index = index != NO_INDEX
    values, code = np.unique(index, return_inverse=True)
    keys = [str(value) for value in values.tolist()]
    words = ["_ng_task_index"] if has_index.any() else []
    if has_index.all():  # in numeric order, and every one in use
        return TaskKeys(code.astype(np.int32), tuple(keys), "".join(words))
    rest = np.flatnonzero(~has_index)
    texts, more_words = _texts_for(rows, rest, declared)
    words += more_words
    known = {key: number for number, key in enumerate(keys)}  # 5 and "5" are one task
    code[rest] = [known.setdefault(text, len(known)) for text in texts]
    keys = list(known)
    return _sorted(code.astype(np.int32), keys, " and ".join(dict.fromkeys(words)))


def has_index(rows: Rows) -> bool:
    """Does any row carry a task index."""
    return bool((rows.numbers("task_index") != NO_INDEX).any() or (rows.texts("task_text")[0] >= 0).any())


def _texts_for(rows: Rows, rest: NDArray[Any], declared: str | None) -> tuple[list[str], list[str]]:
    """A key for each row whose task index is no number, and what it was made of."""
    codes, known = rows.texts("task_text")
    texts = [known[code] if code >= 0 else "" for code in codes[rest].tolist()]
    untold = np.flatnonzero(codes[rest] < 0)
    words = ["_ng_task_index"] if len(untold) < len(rest) else []
    if len(untold):
        found, word = _texts_without_index(rows, rest[untold], declared)
        words.append(word)
        for place, text in zip(untold.tolist(), found, strict=True):
            texts[place] = text
    return texts, words


def _texts_without_index(rows: Rows, rest: NDArray[Any], declared: str | None) -> tuple[list[str], str]:
    for name in (declared, *_DECLARED):
        if name is None or name not in rows.fields():
            continue
        column = rows.field(name)
        found = [text_of(column, row) for row in rest.tolist()]
        if all(text is not None for text in found):
            return [text for text in found if text is not None], name
    return [f"content-{value:016x}" for value in _fingerprints(rows, rest)], "content of the task fields"


def _fingerprints(rows: Rows, rest: NDArray[Any]) -> list[int]:
    """A hash of the prompt and of the fields that by their name belong to the task."""
    from blade.formats.names import is_task_field

    total = rows.numbers("prompt_hash")[rest].astype(np.uint64)
    for name in rows.fields():
        if is_task_field(name) and name not in ("id", "uuid"):
            total = total * np.uint64(0x100000001B3) ^ rows.field(name).hash[rest]
    return [int(value) for value in total]


def _sorted(code: NDArray[np.int32], keys: list[str], words: str) -> TaskKeys:
    """Keys in numeric, then alphabetical order, without those no row uses."""
    used = np.unique(code)
    order = sorted(used.tolist(), key=lambda c: key_order(keys[c]))
    place = np.zeros(len(keys), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return TaskKeys(place[code], tuple(keys[c] for c in order), words)


def key_order(key: str) -> tuple[int, int, str]:
    """Numbers by value, then texts by spelling."""
    digits = key[1:] if key.startswith("-") else key
    return (0, int(key), key) if digits.isascii() and digits.isdigit() else (1, 0, key)


def kept(rows: Rows, chosen: NDArray[Any], task: NDArray[Any]) -> Kept:
    """Settle attempts and duplicates among the `chosen` rows and put the rest in canonical order."""
    repeat = rows.numbers("repeat").astype(np.int64)[chosen]
    attempt = rows.numbers("attempt").astype(np.int64)[chosen]
    content = rows.numbers("row_hash").astype(np.uint64)[chosen]
    code = task[chosen]
    repeat = numbered(code, repeat, content)
    order = np.lexsort((content, -attempt, repeat, code))
    rows_here, code, repeat, attempt = chosen[order], code[order], repeat[order], attempt[order]
    first = np.ones(len(order), bool)  # first row of its key, which holds the highest attempt
    first[1:] = (code[1:] != code[:-1]) | (repeat[1:] != repeat[:-1])
    if first.all():
        return Kept(rows_here, repeat, np.zeros(len(order), np.int64), 0, 0, 0, ())
    group = np.cumsum(first) - 1
    current = attempt == attempt[first][group]
    return _without_copies(rows, rows_here[current], repeat[current], group[current], int((~current).sum()))


def numbered(code: NDArray[Any], repeat: NDArray[Any], content: NDArray[Any]) -> NDArray[Any]:
    """Number the rows that carry no repeat index, after those that do, by content."""
    missing = repeat == NO_INDEX
    if not missing.any():
        return repeat
    filled = repeat.copy()
    highest: dict[int, int] = {}
    for task, value in zip(code[~missing].tolist(), repeat[~missing].tolist(), strict=True):
        highest[task] = max(highest.get(task, -1), value)
    places = np.flatnonzero(missing)
    for place in places[np.lexsort((content[places], code[places]))].tolist():
        task = int(code[place])
        highest[task] = highest.get(task, -1) + 1
        filled[place] = highest[task]
    return filled


def _without_copies(
    rows: Rows, order: NDArray[Any], repeat: NDArray[Any], group: NDArray[Any], n_superseded: int
) -> Kept:
    """Keep one of each set of identical rows; order and flag those that differ."""
    counts = np.bincount(group)
    shared = np.flatnonzero(counts[group] > 1)
    keep = np.ones(len(order), bool)
    copies = np.zeros(len(order), np.int64)
    differing, n_identical = [], 0
    by_group: dict[int, list[int]] = {}
    for place in shared.tolist():
        by_group.setdefault(int(group[place]), []).append(place)
    for places in by_group.values():
        hashes = {place: rows.row_hash(int(order[place])) for place in places}
        counted = Counter(hashes.values())
        seen: dict[int, int] = {}
        for place in places:
            seen.setdefault(hashes[place], place)
        stay = sorted(seen)  # hash order, so that the order of the file does not matter
        keep[places] = False
        keep[places[: len(stay)]] = True
        order[places[: len(stay)]] = [order[seen[value]] for value in stay]
        copies[places[: len(stay)]] = [counted[value] - 1 for value in stay]
        n_identical += len(places) - len(stay)
        if len(stay) > 1:
            differing.append(places[0])
    position = np.cumsum(keep) - 1
    n_differing = int(keep[shared].sum()) - len(by_group)
    first = tuple(int(position[place]) for place in differing)
    return Kept(order[keep], repeat[keep], copies[keep], n_superseded, n_identical, n_differing, first)


__all__ = ["ID_FIELDS", "PROMPT", "Kept", "TaskKeys", "has_index", "kept", "key_order", "numbered"]
__all__ += ["task_keys", "text_of"]

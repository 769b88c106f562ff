"""Assemble indexed rows and sidecars into runs: keys, attempts and duplicates, what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from blade.formats import field_columns
from blade.formats.columns import NO_INDEX
from blade.formats.field_columns import BOOL, LIST, NUMBER, OBJECT, TEXT, is_task_field
from blade.formats.joined_rows import Fields, Rows
from blade.formats.row_decoder import MAX_FIELDS
from blade.model import ID_FIELDS, PROMPT, Column, Coverage, Rollouts

_DECLARED = ID_FIELDS[:3]  # safe to group rows by; the others may name a rollout
_EMPTY_LIST = np.uint64(xxh3_64_intdigest(b"[]"))

Array = NDArray[Any]
Key = tuple[str, int]


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


@dataclass(frozen=True)
class Assembled:
    """One run, ready to be measured."""

    rollouts: Rollouts
    coverage: Coverage
    rows: Rows
    model: str | None
    agent: str | None
    settings: Mapping[str, str]
    inputs: Rows | None = None  # the materialised inputs, which may hold what the rows do not repeat


# -- tasks ----------------------------------------------------------------------------------------


def task_keys(rows: Rows, declared: str | None) -> TaskKeys:
    """Tasks by index, else by a declared id field, else by content."""
    index = rows.numbers("task_index").astype(np.int64)
    has_number = index != NO_INDEX
    values, code = np.unique(index, return_inverse=True)
    keys = [str(value) for value in values.tolist()]
    if has_number.all():  # in numeric order, and every one in use
        return TaskKeys(code.astype(np.int32), tuple(keys), "_ng_task_index" if has_number.any() else "")
    rest = np.flatnonzero(~has_number)
    codes, known = rows.texts("task_text")
    texts = {row: known[code] for row, code in zip(rest.tolist(), codes[rest].tolist(), strict=True) if code >= 0}
    words = ["_ng_task_index"] if texts or has_number.any() else []
    unnamed = rest[codes[rest] < 0]
    if len(unnamed):
        ids, word = _without_index(rows, unnamed, declared)
        texts.update(zip(unnamed.tolist(), ids, strict=True))
        words.append(word)
    places = {key: number for number, key in enumerate(keys)}  # 5 and "5" are one task
    code[rest] = [places.setdefault(texts[row], len(places)) for row in rest.tolist()]
    # in numeric, then alphabetical order, without those no row uses
    keys = list(places)
    order = sorted(np.unique(code).tolist(), key=lambda code: key_order(keys[code]))
    place = np.zeros(len(keys), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return TaskKeys(place[code], tuple(keys[code] for code in order), " and ".join(words))


def _without_index(rows: Rows, rest: Array, declared: str | None) -> tuple[list[str], str]:
    """A key for each row from the first id field that all have, else a hash of the prompt and the task's fields."""
    names = rows.fields()
    for name in (declared, *_DECLARED):
        if name is not None and name in names:
            column = rows.field(name)
            texts = [text for row in rest.tolist() if (text := text_of(column, row)) is not None]
            if len(texts) == len(rest):
                return texts, name
    total = rows.numbers("prompt_hash")[rest].astype(np.uint64)
    for name in names:
        if is_task_field(name) and name not in ("id", "uuid"):
            total = total * np.uint64(0x100000001B3) ^ rows.field(name).hash[rest]
    return [f"content-{value:016x}" for value in total.tolist()], "content of the task fields"


def text_of(column: Column, row: int) -> str | None:
    """The value of a scalar field as the text of a key."""
    if column.code[row] >= 0:
        return column.texts[int(column.code[row])]
    number = float(column.number[row])
    return None if np.isnan(number) else shown(number)


def shown(number: float) -> str:
    """A number without a point where it is whole."""
    return str(int(number)) if number.is_integer() else repr(number)


def has_index(rows: Rows) -> bool:
    return bool((rows.numbers("task_index") != NO_INDEX).any() or (rows.texts("task_text")[0] >= 0).any())


def key_order(key: str) -> tuple[int, int, str]:
    """Numbers by value, then texts by spelling."""
    digits = key[1:] if key.startswith("-") else key
    return (0, int(key), key) if digits.isascii() and digits.isdigit() else (1, 0, key)


# -- attempts and duplicates ----------------------------------------------------------------------


def kept(rows: Rows, chosen: Array, task: Array) -> Kept:
    """Settle attempts and duplicates among the `chosen` rows and put the rest in canonical order."""
    repeat = rows.numbers("repeat").astype(np.int64)[chosen]
    attempt = rows.numbers("attempt").astype(np.int64)[chosen]
    content = rows.numbers("row_hash").astype(np.uint64)[chosen]
    code = task[chosen]
    repeat = numbered(code, repeat, content)
    order = np.lexsort((content, -attempt, repeat, code))
    rows_here, code, repeat, attempt = chosen[order], code[order], repeat[order], attempt[order]
    first = starts_of_keys(code, repeat)  # the first row of a key holds its highest attempt
    if first.all():
        return Kept(rows_here, repeat, np.zeros(len(order), np.int64), 0, 0, 0, ())
    group = np.cumsum(first) - 1
    current = attempt == attempt[first][group]
    return _without_copies(rows, rows_here[current], repeat[current], group[current], int((~current).sum()))


def starts_of_keys(task: Array, repeat: Array) -> NDArray[np.bool_]:
    """Which of the rows in canonical order are the first of their key."""
    first = np.ones(len(task), bool)
    first[1:] = (task[1:] != task[:-1]) | (repeat[1:] != repeat[:-1])
    return first


def numbered(code: Array, repeat: Array, content: Array) -> Array:
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
        highest[task] = filled[place] = highest.get(task, -1) + 1
    return filled


def _without_copies(rows: Rows, order: Array, repeat: Array, group: Array, n_superseded: int) -> Kept:
    """Keep one of each set of identical rows; order and flag those that differ."""
    counts = np.bincount(group)
    shared = np.flatnonzero(counts[group] > 1)
    keep, copies = np.ones(len(order), bool), np.zeros(len(order), np.int64)
    differing, n_identical = [], 0
    by_group: dict[int, list[int]] = {}
    for place in shared.tolist():
        by_group.setdefault(int(group[place]), []).append(place)
    for places in by_group.values():
        by_hash: dict[int, list[int]] = {}
        for row in order[places].tolist():
            by_hash.setdefault(rows.row_hash(row), []).append(row)
        same = [by_hash[value] for value in sorted(by_hash)]  # so that the order of the file does not matter
        keep[places[len(same) :]] = False
        order[places[: len(same)]] = [members[0] for members in same]
        copies[places[: len(same)]] = [len(members) - 1 for members in same]
        n_identical += len(places) - len(same)
        if len(same) > 1:
            differing.append(places[0])
    position = np.cumsum(keep) - 1
    n_differing = int(keep[shared].sum()) - len(by_group)
    first = tuple(int(position[place]) for place in differing)
    return Kept(order[keep], repeat[keep], copies[keep], n_superseded, n_identical, n_differing, first)


# -- what was expected and what came --------------------------------------------------------------


def coverage(
    rollouts: Rollouts, settled: Kept, expected: set[Key] | None, failed: Mapping[Key, str], unnumbered_copies: int
) -> Coverage:
    """Count the keys of a run and name those that are not scored."""
    first = starts_of_keys(rollouts.task, rollouts.repeat)
    task, repeat = rollouts.task[first], rollouts.repeat[first]
    n_tasks, n_keys = len(rollouts.task_keys), len(task)
    is_masked = np.ones(n_keys, bool)
    np.logical_and.at(is_masked, np.cumsum(first) - 1, rollouts.masked)  # a key with one valid row is scored
    seen = set(_named(rollouts, task, repeat)) if failed or expected is not None else set()
    only_failed = _in_order(failed.keys() - seen)
    failed_per_task = _per_task(rollouts, only_failed)
    per_task = np.bincount(task, minlength=n_tasks) + failed_per_task
    modal = _modal(per_task)
    if expected is None:
        lost = _lost(rollouts, task, repeat, only_failed, per_task, modal)
    else:
        lost = _in_order(expected - seen - set(only_failed))
        modal = _modal(_per_task(rollouts, expected)) if expected else modal
    lost_per_task = _per_task(rollouts, lost)
    masked_per_task = np.bincount(task[is_masked], minlength=n_tasks).astype(np.int64)
    n_masked, differing = int(is_masked.sum()), list(settled.differing)
    return Coverage(
        expected_from="materialized inputs" if expected is not None else "inferred: tasks x modal repeats",
        expected=n_keys + len(only_failed) + len(lost),
        scored=n_keys - n_masked,
        failed=len(only_failed),
        masked=n_masked,
        lost=len(lost),
        duplicates=settled.n_identical + settled.n_differing,
        identical_duplicates=settled.n_identical,
        superseded=settled.n_superseded,
        unnumbered_copies=unnumbered_copies,
        unexpected=len(seen - expected) if expected is not None else 0,
        repeats=modal,
        expected_per_task=per_task + lost_per_task,
        missing_per_task=masked_per_task + failed_per_task + lost_per_task,
        failed_keys=tuple(only_failed),
        failed_classes=tuple(failed[key] for key in only_failed),
        lost_keys=tuple(lost),
        masked_keys=_named(rollouts, task[is_masked], repeat[is_masked]),
        duplicate_keys=_named(rollouts, rollouts.task[differing], rollouts.repeat[differing]),
    )


def _named(rollouts: Rollouts, tasks: Array, repeats: Array) -> tuple[Key, ...]:
    pairs = zip(tasks.tolist(), repeats.tolist(), strict=True)
    return tuple((rollouts.task_keys[task], repeat) for task, repeat in pairs)


def _in_order(keys: Iterable[Key]) -> list[Key]:
    return sorted(keys, key=lambda key: (key_order(key[0]), key[1]))


def _modal(counts: Array) -> int:
    """The commonest number of repeats; the larger one of a tie."""
    shares = np.bincount(counts[counts > 0])
    return int(len(shares) - 1 - np.argmax(shares[::-1])) if len(shares) else 0


def _per_task(rollouts: Rollouts, keys: Collection[Key]) -> NDArray[np.int64]:
    """How many of the keys each task has."""
    if not keys:
        return np.zeros(len(rollouts.task_keys), np.int64)
    place = {key: number for number, key in enumerate(rollouts.task_keys)}
    return np.bincount([place[task] for task, _ in keys], minlength=len(place)).astype(np.int64)


def _lost(
    rollouts: Rollouts, key_task: Array, key_repeat: Array, failed: list[Key], counts: Array, modal: int
) -> list[Key]:
    """The keys that tasks with fewer repeats than most lack, by the repeat indices that are usual."""
    short = np.flatnonzero(counts < modal)
    if not len(short):
        return []
    values, n = np.unique(key_repeat, return_counts=True)
    usual = sorted(values[np.lexsort((values, -n))][:modal].tolist())
    extra = max(usual, default=-1) + 1
    is_short = np.isin(key_task, short)
    taken = {*_named(rollouts, key_task[is_short], key_repeat[is_short]), *failed}
    lost = []
    for code in short.tolist():
        keys = [(rollouts.task_keys[code], repeat) for repeat in (*usual, *range(extra, extra + modal))]
        lost += [key for key in keys if key not in taken][: modal - int(counts[code])]
    return lost


# -- runs -----------------------------------------------------------------------------------------


def assemble(
    name: str, main: Rows, inputs: Rows | None, failures: Rows | None, task_id: str | None, notice: Callable[[str], None]
) -> list[Assembled]:
    """One run per agent of the main file; `task_id` is the field that a person says tells tasks apart."""
    tasks = task_keys(main, task_id)
    if len(main.fields()) >= MAX_FIELDS:
        notice(f"{name} has {MAX_FIELDS} fields or more; {MAX_FIELDS} of them become columns")
    if not has_index(main):
        inputs, failures = _without_indices(name, inputs, notice), _without_indices(name, failures, notice)
    codes, agents = main.texts("agent")
    known = {agents[code]: code for code in np.unique(codes).tolist() if code >= 0}
    elsewhere = {agent for rows in (inputs, failures) if rows is not None for agent in rows.texts("agent")[1]}
    named = sorted({*known, *elsewhere})
    if len(named) < 2:
        agent = named[0] if named else None
        return [one_run(name, agent, np.arange(main.n_rows), main, tasks, inputs, failures, task_id)]
    runs = []
    for agent in [*named, None]:
        chosen = np.flatnonzero(codes == (-1 if agent is None else known.get(agent, -2)))
        label = agent or "(no agent named)"
        if len(chosen) or agent is not None:
            runs.append(one_run(f"{name}:{label}", agent, chosen, main, tasks, inputs, failures, task_id, label))
    notice(f"{name} holds {len(runs)} agents; each is a run of its own")
    return runs


def _without_indices(name: str, rows: Rows | None, notice: Callable[[str], None]) -> Rows | None:
    """A sidecar of rows that carry no task index; None if it has indices that no row could match."""
    if rows is None or not rows.n_rows or not has_index(rows):
        return rows
    files = ", ".join(source.path.name for source in rows.sources)
    notice(f"the rows of {name} carry no task index, so {files} cannot be matched with them")
    return None


def one_run(
    name: str, agent: str | None, chosen: Array, main: Rows, tasks: TaskKeys, inputs: Rows | None = None,
    failures: Rows | None = None, task_id: str | None = None, only_agent: str | None = None,
) -> Assembled:
    """The run of the `chosen` rows, with what its sidecars expect of it and say failed."""
    settled = kept(main, chosen, tasks.code)
    inputs = inputs if inputs is not None and inputs.n_rows else None
    expected = set(_keys(inputs, only_agent, task_id, True)) if inputs is not None else None
    failed = _keys(failures, only_agent, task_id, False) if failures is not None else {}
    keys, task = _all_tasks(tasks, settled, (expected or set()) | failed.keys())
    rollouts = _rollouts(name, main, settled, keys, task, inputs, tasks.grouped_by)
    hashes = main.numbers("row_hash")[settled.order].astype(np.uint64)
    hashes = hashes[hashes != 0]
    counted = coverage(rollouts, settled, expected, failed, len(hashes) - len(np.unique(hashes)))
    codes, texts = main.texts("model")
    n_of = np.bincount(codes[settled.order][codes[settled.order] >= 0], minlength=len(texts)).tolist()
    models = [text for _, text in sorted((-n, text) for n, text in zip(n_of, texts, strict=True) if n and text)]
    model, settings = _few(models, 3) or None, _settings(main, settled.order)  # the commonest model first
    return Assembled(rollouts, counted, main, model, agent, settings, inputs)


def _keys(rows: Rows, agent: str | None, task_id: str | None, each: bool) -> dict[Key, str]:
    """The keys of a sidecar with their failure class, of one agent if it tells agents apart."""
    if not rows.n_rows:
        return {}
    tasks = task_keys(rows, task_id)
    repeats = rows.numbers("repeat").astype(np.int64)
    if each:  # row is a rollout of its own, as in the materialised inputs; in the failures it is an attempt
        repeats = numbered(tasks.code, repeats, rows.numbers("row_hash").astype(np.uint64))
    codes, texts = rows.texts("agent")
    wanted = codes == texts.index(agent) if agent in texts else np.ones(rows.n_rows, bool)
    if agent is not None and agent not in texts and (codes >= 0).any():
        wanted = codes < 0
    classes, names = rows.texts("failure_class")
    rank = np.array([*np.argsort(np.argsort(names)), -1] if names else [-1], np.int64)
    order = np.lexsort((rank[classes], rows.numbers("attempt")))  # so that the last attempt has the word
    entries = zip(*(column[order].tolist() for column in (tasks.code, repeats, wanted, classes)), strict=True)
    return {
        (tasks.keys[task], repeat if repeat != NO_INDEX else 0): names[code] if code >= 0 else ""
        for task, repeat, is_wanted, code in entries
        if is_wanted
    }


def _all_tasks(tasks: TaskKeys, settled: Kept, others: Iterable[Key]) -> tuple[tuple[str, ...], Array]:
    """Every task of the run, those without a row too, and the task of each kept row under the new codes."""
    code = tasks.code[settled.order]
    used = {tasks.keys[number] for number in np.flatnonzero(np.bincount(code, minlength=len(tasks.keys))).tolist()}
    used |= {task for task, _ in others}
    if used == set(tasks.keys):
        return tasks.keys, code
    keys = tuple(sorted(used, key=key_order))
    place = {key: number for number, key in enumerate(keys)}
    return keys, np.array([place.get(key, -1) for key in tasks.keys], np.int32)[code]


_COLUMNS: dict[str, Any] = {
    "reward": np.float64, "masked": bool, "n_items": np.int64, "n_calls": np.int64, "n_turns": np.int64,
    "last_kind": np.uint8, "truncated": bool, "input_tokens": np.float64, "output_tokens": np.float64,
    "reasoning_tokens": np.float64, "total_tokens": np.float64,
}  # fmt: skip


def _rollouts(
    name: str, main: Rows, settled: Kept, keys: tuple[str, ...], task: Array, inputs: Rows | None, grouped_by: str
) -> Rollouts:
    order, n = settled.order, len(settled.order)
    fields = Fields(main, order)
    costs = main.numbers("cost_usd")[order].astype(np.float64)
    if np.isnan(costs).all():
        costs = _first_number(fields, dict.fromkeys(field_columns.COST, 1.0), n)
    response_error = main.numbers("response_error")[order].astype(bool)
    is_incomplete = np.zeros(n, bool)
    for column in (fields[name] for name in field_columns.BROKEN_WHEN_FALSE if name in fields):
        is_incomplete |= (column.kind == BOOL) & (column.number == 0)
    # fields that the task brought along: those of the materialised inputs, else those named like it
    of_inputs = set(inputs.fields()) if inputs is not None else None
    is_input = is_task_field if of_inputs is None else of_inputs.__contains__
    return Rollouts(
        run=name,
        task_keys=keys,
        task_names=_task_names(keys, task, fields),
        grouped_by=grouped_by,
        task=task,
        repeat=settled.repeat,
        has_reward=main.numbers("reward_kind")[order] > 0,
        row_id=order,
        copies=settled.copies,
        errored=_says_yes(fields, field_columns.ERRORS, n) | is_incomplete | response_error,
        timed_out=_says_yes(fields, field_columns.TIMEOUTS, n),
        cost_usd=costs,
        wall_s=_first_number(fields, field_columns.SECONDS, n),
        fields=fields,
        input_fields=frozenset(field for field in fields if is_input(field)) | {PROMPT},
        **{column: main.numbers(column)[order].astype(dtype) for column, dtype in _COLUMNS.items()},
    )


def _task_names(keys: tuple[str, ...], task: Array, fields: Fields) -> tuple[str, ...]:
    """A readable name for each task: the first id field that tells the tasks apart."""
    codes, first = (column.tolist() for column in np.unique(task, return_index=True))
    for field in ID_FIELDS:
        if field in fields:
            column = fields[field]
            texts = {code: text for code, row in zip(codes, first, strict=True) if (text := text_of(column, row))}
            if len(codes) == len(texts) == len(set(texts.values())):
                return tuple(texts.get(number) or key for number, key in enumerate(keys))
    return keys


def _says_yes(fields: Mapping[str, Column], candidates: tuple[str, ...], n: int) -> NDArray[np.bool_]:
    """Rows where any of the fields holds true, a number other than 0, a telling text, a list or an object."""
    flags = np.zeros(n, bool)
    for column in (fields[name] for name in candidates if name in fields):
        words = [text.strip().lower() for text in column.texts]
        tells = np.array([word not in field_columns.SAYS_NOTHING for word in words] + [True], bool)
        flags |= np.isin(column.kind, (BOOL, NUMBER)) & (np.nan_to_num(column.number) != 0)
        flags |= (column.kind == TEXT) & tells[column.code]
        flags |= (column.kind == OBJECT) | ((column.kind == LIST) & (column.hash != _EMPTY_LIST))
    return flags


def _first_number(fields: Mapping[str, Column], candidates: Mapping[str, float], n: int) -> Array:
    numbers = (fields[name].number * scale for name, scale in candidates.items() if name in fields)
    return next((values for values in numbers if not np.isnan(values).all()), np.full(n, np.nan))


def _few(texts: list[str], most: int) -> str:
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def _settings(main: Rows, order: Array) -> dict[str, str]:
    """Sampling settings as the rows state them; a setting that no row states is absent, not default."""
    settings = {}
    for name in ("temperature", "top_p", "max_output_tokens"):
        values = np.unique(main.numbers(name)[order])
        settings[name] = _few([shown(value) for value in values[~np.isnan(values)].tolist()], 4)
    codes, texts = main.texts("skills_hash")
    settings["skills_ref.hash"] = ", ".join(sorted(texts[code] for code in np.unique(codes[order]) if code >= 0))
    return {name: text for name, text in settings.items() if text}

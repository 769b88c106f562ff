"""Assemble indexed rows and sidecars into runs: keys, attempts and duplicates, what was expected and what came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from blade.formats.columns import NO_INDEX
from blade.formats.field_columns import (
    BROKEN_WHEN_FALSE,
    COST,
    ERRORS,
    SAYS_NOTHING,
    SECONDS,
    TIMEOUTS,
    is_task_field,
)
from blade.formats.joined_rows import Fields, Rows
from blade.formats.row_decoder import MAX_FIELDS
from blade.model import ID_FIELDS, PROMPT, Benchmark, Column, Coverage, Rollouts

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
        id_texts, word = _texts_without_index(rows, rest[untold], declared)
        words.append(word)
        for place, text in zip(untold.tolist(), id_texts, strict=True):
            texts[place] = text
    return texts, words


def _texts_without_index(rows: Rows, rest: NDArray[Any], declared: str | None) -> tuple[list[str], str]:
    for name in (declared, *_DECLARED):
        if name is None or name not in rows.fields():
            continue
        column = rows.field(name)
        texts = [text_of(column, row) for row in rest.tolist()]
        if all(text is not None for text in texts):
            return [text for text in texts if text is not None], name
    return [f"content-{value:016x}" for value in _fingerprints(rows, rest)], "content of the task fields"


def _fingerprints(rows: Rows, rest: NDArray[Any]) -> list[int]:
    """A hash of the prompt and of the fields that by their name belong to the task."""
    from blade.formats.field_columns import is_task_field

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


Key = tuple[str, int]


def coverage(
    rollouts: Rollouts,
    settled: Kept,
    expected: set[Key] | None,
    failed: dict[Key, str],
    unnumbered_copies: int,
) -> Coverage:
    """Count the keys of a run and name those that are not scored."""
    n_tasks = len(rollouts.task_keys)
    first = np.ones(len(rollouts.task), bool)
    first[1:] = (rollouts.task[1:] != rollouts.task[:-1]) | (rollouts.repeat[1:] != rollouts.repeat[:-1])
    group = np.cumsum(first) - 1
    n_keys = int(first.sum())
    all_masked = np.ones(n_keys, bool)
    np.logical_and.at(all_masked, group, rollouts.masked)  # a key with one valid row is scored
    key_task, key_repeat = rollouts.task[first], rollouts.repeat[first]
    per_task = np.bincount(key_task, minlength=n_tasks)
    seen_failed = _only_failed(rollouts, key_task, key_repeat, failed)
    failed_per_task = _per_task(rollouts, seen_failed)
    modal = _modal(per_task + failed_per_task)
    lost = _lost(rollouts, key_task, key_repeat, expected, seen_failed, modal)
    lost_per_task = _per_task(rollouts, lost)
    masked_per_task = np.bincount(key_task[all_masked], minlength=n_tasks).astype(np.int64)
    masked = int(all_masked.sum())
    unexpected = 0
    if expected is not None:
        seen = zip((rollouts.task_keys[t] for t in key_task.tolist()), key_repeat.tolist(), strict=True)
        unexpected = sum(key not in expected for key in seen)
        modal = _modal(_per_task(rollouts, expected)) if expected else modal
    return Coverage(
        expected_from="materialized inputs" if expected is not None else "inferred: tasks x modal repeats",
        expected=n_keys + len(seen_failed) + len(lost),
        scored=n_keys - masked,
        failed=len(seen_failed),
        masked=masked,
        lost=len(lost),
        duplicates=settled.n_identical + settled.n_differing,
        identical_duplicates=settled.n_identical,
        superseded=settled.n_superseded,
        unnumbered_copies=unnumbered_copies,
        unexpected=unexpected,
        repeats=modal,
        expected_per_task=per_task + failed_per_task + lost_per_task,
        missing_per_task=masked_per_task + failed_per_task + lost_per_task,
        failed_keys=tuple(seen_failed),
        failed_classes=tuple(failed[key] for key in seen_failed),
        lost_keys=tuple(lost),
        masked_keys=_named(rollouts, key_task[all_masked], key_repeat[all_masked]),
        duplicate_keys=_named(
            rollouts, rollouts.task[list(settled.differing)], rollouts.repeat[list(settled.differing)]
        ),
    )


def _named(rollouts: Rollouts, tasks: NDArray[Any], repeats: NDArray[Any]) -> tuple[Key, ...]:
    return tuple(
        (rollouts.task_keys[t], int(r)) for t, r in zip(tasks.tolist(), repeats.tolist(), strict=True)
    )


def _only_failed(
    rollouts: Rollouts, key_task: NDArray[Any], key_repeat: NDArray[Any], failed: dict[Key, str]
) -> list[Key]:
    """Keys that failed and were never completed by a later attempt."""
    if not failed:
        return []
    done = set(_named(rollouts, key_task, key_repeat))
    return sorted(failed.keys() - done, key=lambda key: (key_order(key[0]), key[1]))


def _modal(counts: NDArray[Any]) -> int:
    """The commonest number of repeats; the larger one of a tie."""
    counts = counts[counts > 0]
    if not len(counts):
        return 0
    shares = np.bincount(counts)
    return int(len(shares) - 1 - np.argmax(shares[::-1]))


def _per_task(rollouts: Rollouts, keys: Collection[Key]) -> NDArray[np.int64]:
    """How many of the keys each task has."""
    if not keys:
        return np.zeros(len(rollouts.task_keys), np.int64)
    place = {key: number for number, key in enumerate(rollouts.task_keys)}
    return np.bincount([place[task] for task, _ in keys], minlength=len(place)).astype(np.int64)


def _lost(
    rollouts: Rollouts,
    key_task: NDArray[Any],
    key_repeat: NDArray[Any],
    expected: set[Key] | None,
    failed: list[Key],
    modal: int,
) -> list[Key]:
    """Expected keys that left no trace."""
    if expected is not None:
        missing = expected - set(_named(rollouts, key_task, key_repeat)) - set(failed)
        return sorted(missing, key=lambda key: (key_order(key[0]), key[1]))
    counts = np.bincount(key_task, minlength=len(rollouts.task_keys)) + _per_task(rollouts, failed)
    short = np.flatnonzero(counts < modal)
    if not len(short):
        return []
    usual = _usual_repeats(key_repeat, modal)
    have: dict[int, set[int]] = {int(task): set() for task in short}
    is_short = np.isin(key_task, short)
    for task, repeat in zip(key_task[is_short].tolist(), key_repeat[is_short].tolist(), strict=True):
        have[task].add(repeat)
    place = {rollouts.task_keys[task]: task for task in have}
    for name, repeat in failed:
        if name in place:
            have[place[name]].add(repeat)
    lost = []
    for code in short.tolist():
        free = [repeat for repeat in usual if repeat not in have[code]]
        lost += [(rollouts.task_keys[code], repeat) for repeat in free[: modal - int(counts[code])]]
    return lost


def _usual_repeats(key_repeat: NDArray[Any], modal: int) -> list[int]:
    """The repeat indices a task usually has, commonest first, then in order."""
    values, counts = np.unique(key_repeat, return_counts=True)
    ranked = sorted(zip((-counts).tolist(), values.tolist(), strict=True))
    usual = sorted(value for _, value in ranked[:modal])
    extra = max(usual, default=-1) + 1
    return usual + list(range(extra, extra + modal))


_EMPTY_LIST = np.uint64(xxh3_64_intdigest(b"[]"))


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


def assemble(
    name: str,
    main: Rows,
    inputs: Rows | None,
    failures: Rows | None,
    benchmark: Benchmark,
    notice: Callable[[str], None],
) -> list[Assembled]:
    """One run per agent of the main file."""
    tasks = task_keys(main, benchmark.task_id)
    _tell_limits(name, main, notice)
    if not has_index(main):
        inputs, failures = _without_indices(name, inputs, notice), _without_indices(name, failures, notice)
    codes, agents = main.texts("agent")
    elsewhere = {known_name for rows in (inputs, failures) if rows is not None for known_name in rows.texts("agent")[1]}
    named = sorted({agents[code] for code in np.unique(codes).tolist() if code >= 0} | elsewhere)
    if len(named) < 2:
        agent = named[0] if named else None
        return [one_run(name, agent, np.arange(main.n_rows), main, tasks, inputs, failures, None, benchmark)]
    known = {text: code for code, text in enumerate(agents)}
    runs = []
    for agent in [*named, None]:
        chosen = np.flatnonzero(codes == (-1 if agent is None else known.get(agent, -2)))
        if len(chosen) or agent is not None:
            label = agent or "(no agent named)"
            run = f"{name}:{label}"
            runs.append(one_run(run, agent, chosen, main, tasks, inputs, failures, label, benchmark))
    notice(f"{name} holds {len(runs)} agents; each is a run of its own")
    return runs


def _tell_limits(name: str, main: Rows, notice: Callable[[str], None]) -> None:
    """Say what was left out while reading."""
    if len(main.fields()) >= MAX_FIELDS:
        notice(f"{name} has {MAX_FIELDS} fields or more; {MAX_FIELDS} of them become columns")


def _without_indices(name: str, rows: Rows | None, notice: Callable[[str], None]) -> Rows | None:
    """A sidecar of rows that carry no task index; None if it has indices that no row could match."""
    if rows is None or not rows.n_rows or not has_index(rows):
        return rows
    files = ", ".join(source.path.name for source in rows.sources)
    notice(f"the rows of {name} carry no task index, so {files} cannot be matched with them")
    return None


def one_run(
    name: str,
    agent: str | None,
    chosen: NDArray[Any],
    main: Rows,
    tasks: TaskKeys,
    inputs: Rows | None,
    failures: Rows | None,
    only_agent: str | None,
    benchmark: Benchmark,
) -> Assembled:
    settled = kept(main, chosen, tasks.code)
    has_inputs = inputs is not None and inputs.n_rows > 0
    expected = set(_keys(inputs, only_agent, benchmark, True)) if inputs is not None and has_inputs else None
    failed = _keys(failures, only_agent, benchmark, False) if failures is not None else {}
    task_names, task = _all_tasks(tasks, settled, (expected or set()) | failed.keys())
    fields = Fields(main, settled.order)
    rollouts = _rollouts(name, main, settled, task_names, task, fields, inputs, tasks.grouped_by)
    counted = coverage(rollouts, settled, expected, failed, _n_unnumbered_copies(main, settled))
    models = main.texts("model")
    return Assembled(
        rollouts,
        counted,
        main,
        _commonest(models[0][settled.order], models[1]),
        agent,
        _settings(main, settled.order),
        inputs if has_inputs else None,
    )


def _keys(rows: Rows, agent: str | None, benchmark: Benchmark, each: bool) -> dict[Key, str]:
    """The keys of a sidecar with their failure class, of one agent if it tells agents apart.

    `each` row of the materialised inputs is a rollout of its own, each row of the failures an attempt.
    """
    if not rows.n_rows:
        return {}
    tasks = task_keys(rows, benchmark.task_id)
    repeats = rows.numbers("repeat").astype(np.int64)
    if each:
        repeats = numbered(tasks.code, repeats, rows.numbers("row_hash").astype(np.uint64))
    codes, texts = rows.texts("agent")
    wanted = codes == texts.index(agent) if agent in texts else np.ones(rows.n_rows, bool)
    if agent is not None and agent not in texts and (codes >= 0).any():
        wanted = codes < 0
    classes, names_of = rows.texts("failure_class")
    spelled = {name: place for place, name in enumerate(sorted(names_of))}
    place_of = np.array([*(spelled[name] for name in names_of), -1], np.int64)
    order = np.lexsort((place_of[classes], rows.numbers("attempt")))  # so that the last attempt has the word
    entries = zip(*(column[order].tolist() for column in (tasks.code, repeats, wanted, classes)), strict=True)
    return {
        (tasks.keys[task], repeat if repeat != NO_INDEX else 0): names_of[code] if code >= 0 else ""
        for task, repeat, ok, code in entries
        if ok
    }


def _all_tasks(tasks: TaskKeys, settled: Kept, others: set[Key]) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Every task of the run, those without a row too, and the task of each kept row under the new codes."""
    code = tasks.code[settled.order]
    used = np.flatnonzero(np.bincount(code, minlength=len(tasks.keys)))
    ordered = tuple(tasks.keys[number] for number in used.tolist())  # which are in order
    further = {task for task, _ in others}.difference(ordered)
    if further:
        ordered = tuple(sorted((*ordered, *further), key=key_order))
    elif used.size == len(tasks.keys):
        return ordered, code
    place = {key: number for number, key in enumerate(ordered)}
    table = np.array([place.get(key, -1) for key in tasks.keys], np.int32)
    return ordered, table[code]


def _rollouts(
    name: str,
    main: Rows,
    settled: Kept,
    keys: tuple[str, ...],
    task: NDArray[Any],
    fields: Fields,
    inputs: Rows | None,
    grouped_by: str,
) -> Rollouts:
    order = settled.order

    def column(which: str, dtype: Any) -> NDArray[Any]:
        return main.numbers(which)[order].astype(dtype)

    n = len(order)
    told_cost = column("cost_usd", np.float64)
    return Rollouts(
        run=name,
        task_keys=keys,
        task_names=_task_names(keys, task, fields),
        grouped_by=grouped_by,
        task=task,
        repeat=settled.repeat,
        reward=column("reward", np.float64),
        has_reward=column("reward_kind", np.uint8) > 0,
        masked=column("masked", bool),
        row_id=order,
        copies=settled.copies,
        n_items=column("n_items", np.int64),
        n_calls=column("n_calls", np.int64),
        n_turns=column("n_turns", np.int64),
        last_kind=column("last_kind", np.uint8),
        truncated=column("truncated", bool),
        errored=_says_yes(fields, ERRORS, n) | _says_no(fields, n) | column("response_error", bool),
        timed_out=_says_yes(fields, TIMEOUTS, n),
        input_tokens=column("input_tokens", np.float64),
        output_tokens=column("output_tokens", np.float64),
        reasoning_tokens=column("reasoning_tokens", np.float64),
        total_tokens=column("total_tokens", np.float64),
        cost_usd=told_cost
        if not np.isnan(told_cost).all()
        else _first_number(fields, tuple((c, 1.0) for c in COST), n),
        wall_s=_first_number(fields, SECONDS, n),
        fields=fields,
        input_fields=_input_fields(fields, inputs),
    )


def _input_fields(fields: Fields, inputs: Rows | None) -> frozenset[str]:
    """Fields that the task brought along: those of the materialised inputs, else those named like it."""
    if inputs is not None and inputs.n_rows:
        return frozenset(name for name in inputs.fields() if name in fields) | {PROMPT}
    return frozenset(name for name in fields if is_task_field(name)) | {PROMPT}


def _task_names(keys: tuple[str, ...], task: NDArray[Any], fields: Fields) -> tuple[str, ...]:
    """A readable name for each task: the first id field that tells the tasks apart."""
    first = np.unique(task, return_index=True)
    for field in ID_FIELDS:
        if field not in fields:
            continue
        column = fields[field]
        texts = {int(code): text_of(column, int(row)) for code, row in zip(*first, strict=True)}
        names = [text for text in texts.values() if text]
        if len(names) == len(texts) and len(set(names)) == len(names):
            return tuple(texts.get(number) or key for number, key in enumerate(keys))
    return keys


def _says_yes(fields: Mapping[str, Column], candidates: tuple[str, ...], n: int) -> NDArray[np.bool_]:
    """Rows where any of the fields holds true, a number other than 0, a telling text, a list or an object."""
    flags = np.zeros(n, bool)
    for name in candidates:
        if name not in fields:
            continue
        column = fields[name]
        tells = np.array([text.strip().lower() not in SAYS_NOTHING for text in column.texts] + [True], bool)
        is_number = (column.kind == 2) | (column.kind == 3)
        flags |= is_number & (np.nan_to_num(column.number) != 0)
        flags |= (column.kind == 4) & tells[column.code]
        flags |= (column.kind == 6) | ((column.kind == 5) & (column.hash != _EMPTY_LIST))
    return flags


def _says_no(fields: Mapping[str, Column], n: int) -> NDArray[np.bool_]:
    flags = np.zeros(n, bool)
    for name in BROKEN_WHEN_FALSE:
        if name in fields:
            column = fields[name]
            flags |= (column.kind == 2) & (column.number == 0)
    return flags


def _first_number(
    fields: Mapping[str, Column], candidates: tuple[tuple[str, float], ...], n: int
) -> NDArray[Any]:
    for name, scale in candidates:
        if name in fields and not np.isnan(fields[name].number).all():
            return fields[name].number * scale
    return np.full(n, np.nan)


def _commonest(codes: NDArray[Any], texts: tuple[str, ...]) -> str | None:
    """The text that most rows carry; several are listed, the commonest first."""
    values, counts = np.unique(codes[codes >= 0], return_counts=True)
    ranked = sorted(
        zip(counts.tolist(), values.tolist(), strict=True), key=lambda pair: (-pair[0], texts[pair[1]])
    )
    names = [texts[value] for _, value in ranked if texts[value]]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") if names else None


def _settings(main: Rows, order: NDArray[Any]) -> dict[str, str]:
    """Sampling settings as the rows state them; a setting that no row states is absent, not default."""
    settings = {}
    for name in ("temperature", "top_p", "max_output_tokens"):
        values = np.unique(main.numbers(name)[order])
        values = values[~np.isnan(values)]
        if len(values):
            shown = ", ".join(str(int(v)) if v.is_integer() else repr(v) for v in values[:4].tolist())
            settings[name] = shown + (f" and {len(values) - 4} more" if len(values) > 4 else "")
    codes, texts = main.texts("skills_hash")
    skills = sorted({texts[code] for code in np.unique(codes[order]).tolist() if code >= 0})
    if skills:
        settings["skills_ref.hash"] = ", ".join(skills)
    return settings


def _n_unnumbered_copies(main: Rows, settled: Kept) -> int:
    hashes = main.numbers("row_hash")[settled.order].astype(np.uint64)
    hashes = hashes[hashes != 0]
    return len(hashes) - len(np.unique(hashes))

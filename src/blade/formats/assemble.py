"""Turn indexed rows and sidecars into runs: one per agent, with what was expected of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from blade.formats import names
from blade.formats.careful import MAX_FIELDS
from blade.formats.expected import Key, coverage
from blade.formats.keys import (
    ID_FIELDS,
    Kept,
    TaskKeys,
    has_index,
    kept,
    key_order,
    numbered,
    task_keys,
    text_of,
)
from blade.formats.rows import Fields, Rows
from blade.formats.values import NO_INDEX
from blade.model import PROMPT, Benchmark, Column, Coverage, Rollouts

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
    elsewhere = {one for rows in (inputs, failures) if rows is not None for one in rows.texts("agent")[1]}
    named = sorted({agents[code] for code in np.unique(codes).tolist() if code >= 0} | elsewhere)
    if len(named) < 2:
        agent = named[0] if named else None
        return [one_run(name, agent, np.arange(main.n_rows), main, tasks, inputs, failures, None, benchmark)]
    known = {text: code for code, text in enumerate(agents)}
    found = []
    for agent in [*named, None]:
        chosen = np.flatnonzero(codes == (-1 if agent is None else known.get(agent, -2)))
        if len(chosen) or agent is not None:
            label = agent or "(no agent named)"
            run = f"{name}:{label}"
            found.append(one_run(run, agent, chosen, main, tasks, inputs, failures, label, benchmark))
    notice(f"{name} holds {len(found)} agents; each is a run of its own")
    return found


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
    told = zip(*(column[order].tolist() for column in (tasks.code, repeats, wanted, classes)), strict=True)
    return {
        (tasks.keys[task], repeat if repeat != NO_INDEX else 0): names_of[code] if code >= 0 else ""
        for task, repeat, ok, code in told
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
        errored=_says_yes(fields, names.ERRORS, n) | _says_no(fields, n) | column("response_error", bool),
        timed_out=_says_yes(fields, names.TIMEOUTS, n),
        input_tokens=column("input_tokens", np.float64),
        output_tokens=column("output_tokens", np.float64),
        reasoning_tokens=column("reasoning_tokens", np.float64),
        total_tokens=column("total_tokens", np.float64),
        cost_usd=told_cost
        if not np.isnan(told_cost).all()
        else _first_number(fields, tuple((c, 1.0) for c in names.COST), n),
        wall_s=_first_number(fields, names.SECONDS, n),
        fields=fields,
        input_fields=_input_fields(fields, inputs),
    )


def _input_fields(fields: Fields, inputs: Rows | None) -> frozenset[str]:
    """Fields that the task brought along: those of the materialised inputs, else those named like it."""
    if inputs is not None and inputs.n_rows:
        return frozenset(name for name in inputs.fields() if name in fields) | {PROMPT}
    return frozenset(name for name in fields if names.is_task_field(name)) | {PROMPT}


def _task_names(keys: tuple[str, ...], task: NDArray[Any], fields: Fields) -> tuple[str, ...]:
    """A readable name for each task: the first id field that tells the tasks apart."""
    first = np.unique(task, return_index=True)
    for field in ID_FIELDS:
        if field not in fields:
            continue
        column = fields[field]
        found = {int(code): text_of(column, int(row)) for code, row in zip(*first, strict=True)}
        told = [text for text in found.values() if text]
        if len(told) == len(found) and len(set(told)) == len(told):
            return tuple(found.get(number) or key for number, key in enumerate(keys))
    return keys


def _says_yes(fields: Mapping[str, Column], candidates: tuple[str, ...], n: int) -> NDArray[np.bool_]:
    """Rows where any of the fields holds true, a number other than 0, a telling text, a list or an object."""
    found = np.zeros(n, bool)
    for name in candidates:
        if name not in fields:
            continue
        column = fields[name]
        tells = np.array([text.strip().lower() not in names.NOTHING for text in column.texts] + [True], bool)
        is_number = (column.kind == 2) | (column.kind == 3)
        found |= is_number & (np.nan_to_num(column.number) != 0)
        found |= (column.kind == 4) & tells[column.code]
        found |= (column.kind == 6) | ((column.kind == 5) & (column.hash != _EMPTY_LIST))
    return found


def _says_no(fields: Mapping[str, Column], n: int) -> NDArray[np.bool_]:
    found = np.zeros(n, bool)
    for name in names.BROKEN_WHEN_FALSE:
        if name in fields:
            column = fields[name]
            found |= (column.kind == 2) & (column.number == 0)
    return found


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
    told = [texts[value] for _, value in ranked if texts[value]]
    return ", ".join(told[:3]) + (f" and {len(told) - 3} more" if len(told) > 3 else "") if told else None


def _settings(main: Rows, order: NDArray[Any]) -> dict[str, str]:
    """Sampling settings as the rows state them; a setting that no row states is absent, not default."""
    found = {}
    for name in ("temperature", "top_p", "max_output_tokens"):
        values = np.unique(main.numbers(name)[order])
        values = values[~np.isnan(values)]
        if len(values):
            shown = ", ".join(str(int(v)) if v.is_integer() else repr(v) for v in values[:4].tolist())
            found[name] = shown + (f" and {len(values) - 4} more" if len(values) > 4 else "")
    codes, texts = main.texts("skills_hash")
    skills = sorted({texts[code] for code in np.unique(codes[order]).tolist() if code >= 0})
    if skills:
        found["skills_ref.hash"] = ", ".join(skills)
    return found


def _n_unnumbered_copies(main: Rows, settled: Kept) -> int:
    hashes = main.numbers("row_hash")[settled.order].astype(np.uint64)
    hashes = hashes[hashes != 0]
    return len(hashes) - len(np.unique(hashes))

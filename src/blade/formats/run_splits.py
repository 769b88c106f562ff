"""Split a run by the value of a field, and hash its tasks so that another run knows them again."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from blade.errors import UsageError
from blade.formats import assemble, single_rows
from blade.formats.assemble import Assembled, Key, TaskKeys, shown, task_keys
from blade.formats.field_columns import BOOL, LIST, NULL, NUMBER, OBJECT, TEXT, is_task_field
from blade.formats.joined_rows import Rows
from blade.formats.rollout_steps import NOTHING, value_at
from blade.model import ID_FIELDS, PROMPT, Column

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
    prints: dict[str, Hashes] = {}
    if not len(rollouts.task):
        return prints
    codes, starts = np.unique(rollouts.task, return_index=True)
    # ids first, then the prompt and what is named like content, then the rest
    order = {name: place for place, name in enumerate(ID_FIELDS)}
    names = sorted(
        (name for name in rollouts.input_fields if name in rollouts.fields),
        key=lambda name: (order.get(name, len(order)), name != PROMPT, not is_task_field(name), "." in name, name),
    )[: 2 * MAX_FIELDS]
    by_value = _by_value(run, names, starts)
    for name in names:
        hashes = by_value.get(name)
        if hashes is None:
            column = rollouts.fields[name]
            if (column.kind >= LIST).any():  # the column knows them by their spelling alone
                continue
            hashes = _told(column)
        is_same, highest = _agreed(hashes, starts)
        several = np.add.reduceat((hashes != 0).astype(np.int64), starts) > 1  # tasks that tell it more than once
        if (several & ~is_same).sum() > (1 - _STEADY) * several.sum():
            continue
        values = np.where(is_same, highest, np.uint64(0))
        known = values[values != 0]
        if known.size and (known != known[0]).any():
            prints[name] = np.zeros(len(rollouts.task_keys), np.uint64)
            prints[name][codes] = values
            if len(prints) == MAX_FIELDS:
                break
    return prints


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


# -- lists and objects ----------------------------------------------------------------------------


def _by_value(run: Assembled, names: Sequence[str], starts: Ints) -> dict[str, Hashes]:
    """The hashes of all rows by value, of each field with lists, objects or prompts; none if too costly.

    One row of each spelling is opened. Where that is too much, only those of tasks whose rows spell a value
    alike: a task that has it in several spellings then counts as one that varies.
    """
    if len(starts) > MAX_TASKS:
        return {}
    columns = {name: run.rollouts.fields[name] for name in names}
    columns = {name: column for name, column in columns.items() if (column.kind >= LIST).any()}
    for is_thorough in (True, False):
        firsts = {name: _spellings(column, starts, is_thorough) for name, column in columns.items()}
        wanted: dict[int, list[str]] = {}
        for name, positions in firsts.items():
            for position in positions.tolist():
                wanted.setdefault(position, []).append(name)
        size = run.rows.numbers("length")[run.rollouts.row_id[list(wanted)]].sum()
        if len(wanted) <= MAX_OPENED and size <= MAX_OPENED_BYTES:
            values: dict[str, dict[int, int]] = {name: {} for name in columns}
            for position in sorted(wanted, key=run.rollouts.row_id.__getitem__):  # as they lie in the file
                row = single_rows.row(run, position)
                for name in wanted[position]:
                    values[name][position] = _hash_of(value_at(row, name))
            return {name: _respelled(column, values[name]) for name, column in columns.items()}
    return {}


def _spellings(column: Column, starts: Ints, is_thorough: bool) -> Ints:
    """A row with each spelling that a field has among its lists, objects and prompts."""
    hashes, chosen = _told(column), column.kind >= LIST
    if not is_thorough:
        is_same, _ = _agreed(hashes, starts)
        chosen = chosen & np.repeat(is_same, np.diff(starts, append=len(hashes)))
    rows = np.flatnonzero(chosen)
    return rows[np.unique(hashes[rows], return_index=True)[1]]


def _respelled(column: Column, values: Mapping[int, int]) -> Hashes:
    """The hashes of all rows with those of values for those of spellings that were opened."""
    hashes = _told(column).copy()
    by_spelling = {int(hashes[position]): value for position, value in values.items()}
    rows = np.flatnonzero((column.kind >= LIST) & np.isin(hashes, np.array([*by_spelling], np.uint64)))
    hashes[rows] = [by_spelling[value] for value in hashes[rows].tolist()]
    return hashes


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
    return dict(zip(value, map(_plain, value.values()), strict=True)) if isinstance(value, dict) else value


# -- parts ----------------------------------------------------------------------------------------

MAX_VALUES = 50
NONE = "(none)"  # null, or a row without the field
_HINTS = 8  # fields named to someone who asked for one that is not there
_BALANCED = 0.5  # share of a part's tasks with its commonest number of rows, from which that was the plan

# Columns of their own, under the names people use for them.
_TEXTS = {
    "skills_ref.hash": "skills_hash", "skills_ref": "skills_hash", "model": "model", "response.model": "model",
    "agent": "agent", "agent_ref.name": "agent",
}  # fmt: skip
_NUMBERS = {
    f"{prefix}{name}": name
    for prefix in ("", "responses_create_params.")
    for name in ("temperature", "top_p", "max_output_tokens")
}
_REPEATS = ("_ng_rollout_index", "repeat")


def split(run: Assembled, field: str) -> list[Assembled]:
    """One run for each value of `field`, named `RUN[FIELD=VALUE]`, in the order of the values.

    The rows are settled anew within each part: where two evaluations were written into one file, rows of the
    same task and repeat are no duplicates of one another. What was expected of a part is inferred from its
    rows; rows that failed or were lost belong to no part, since nothing tells their value.
    """
    main, rollouts = run.rows, run.rollouts
    codes, _ = main.texts("agent")
    # all rows of the run, those too that another attempt or a copy replaced
    chosen = np.flatnonzero(np.isin(codes, np.unique(codes[rollouts.row_id])))
    last = rollouts.grouped_by.rpartition(" and ")[2]  # the id field that the tasks were grouped by, if they were
    tasks = task_keys(main, last if last in main.fields() else None)
    labels, place = _values(main, field, chosen, tasks.code)
    needs = f"--by needs a field with 2 to {MAX_VALUES} values"
    if len(labels) > MAX_VALUES:
        message = f"{field} has {len(labels):,} values in {rollouts.run}: too many to compare"
        raise UsageError(message, f"{needs}, such as skills_ref.hash", "cannot-split")
    if not labels or labels == [NONE]:
        raise _no_such_field(run, field)
    if len(labels) == 1:
        message = f"every row of {rollouts.run} has {field} = {labels[0]}"
        raise UsageError(message, f"{needs}; files are compared as `blade compare A B`", "cannot-split")
    return [_part(run, field, label, chosen[place == number], tasks) for number, label in enumerate(labels)]


def _part(run: Assembled, field: str, label: str, chosen: NDArray[Any], tasks: TaskKeys) -> Assembled:
    agent = label if _TEXTS.get(field) == "agent" and label != NONE else run.agent
    name = f"{run.rollouts.run}[{field}={label}]"
    part = assemble.one_run(name, agent, chosen, run.rows, tasks)
    rollouts = structs.replace(part.rollouts, input_fields=run.rollouts.input_fields)
    settings = {field: label} if field in run.rows.fields() else {}
    counted = part.coverage
    n_of_tasks = np.bincount(rollouts.task[assemble.starts_of_keys(rollouts.task, rollouts.repeat)])
    if (n_of_tasks == counted.repeats).sum() < _BALANCED * (n_of_tasks > 0).sum():
        pairs = zip(rollouts.task.tolist(), rollouts.repeat.tolist(), strict=True)
        keys: set[Key] = {(rollouts.task_keys[task], repeat) for task, repeat in pairs}
        settled = assemble.kept(run.rows, chosen, tasks.code)
        counted = assemble.coverage(rollouts, settled, keys, {}, counted.unnumbered_copies)
        counted = structs.replace(counted, expected_from="inferred: the rows that came")
    return replace(part, rollouts=rollouts, coverage=counted, settings=settings | dict(part.settings))


# -- values ---------------------------------------------------------------------------------------


def _values(
    main: Rows, field: str, chosen: NDArray[Any], task: NDArray[Any]
) -> tuple[list[str], NDArray[np.int64]]:
    """The values of a field in order, and which of them each chosen row has; none where there is no field."""
    if field in main.fields():
        labels, codes = _of_column(main.field(field), chosen)
    elif field in _TEXTS:
        codes, texts = main.texts(_TEXTS[field])
        labels, codes = [*texts, NONE], codes[chosen]
    elif field in _NUMBERS:
        labels, codes = _of_numbers(main.numbers(_NUMBERS[field])[chosen])
    elif field in _REPEATS:
        repeat = main.numbers("repeat").astype(np.int64)[chosen]
        content = main.numbers("row_hash").astype(np.uint64)[chosen]
        labels, codes = _of_numbers(assemble.numbered(task[chosen], repeat, content).astype(np.float64))
    else:
        return [], np.zeros(len(chosen), np.int64)
    codes = np.where(codes < 0, len(labels) - 1, codes)
    used = np.unique(codes)  # the labels that are used, each once: numbers by value, then texts, then none
    ordered = sorted({labels[code] for code in used.tolist()}, key=_label_order)
    known = {label: place for place, label in enumerate(ordered)}
    table = np.full(len(labels), -1, np.int64)
    table[used] = [known[labels[code]] for code in used.tolist()]
    return ordered, table[codes]


def _of_column(column: Column, chosen: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    """Labels and codes of any column; the last label is that of rows without a value."""
    kind, number = column.kind[chosen], column.number[chosen]
    labels, codes = [*column.texts], column.code[chosen].astype(np.int64)
    is_bool = kind == BOOL
    codes[is_bool] = len(labels) + (number[is_bool] != 0)
    labels += ["false", "true"]
    is_number = kind == NUMBER
    names, places = _of_numbers(number[is_number])
    codes[is_number] = np.where(places < 0, -1, len(labels) + places)
    labels += names[:-1]
    for which, word in ((TEXT, "text"), (LIST, "list"), (OBJECT, "object")):  # long ones are known by their hash
        is_this = (kind == which) & (codes < 0)
        hashes, places = np.unique(column.hash[chosen][is_this], return_inverse=True)
        codes[is_this] = len(labels) + places
        labels += [f"{word} {value:016x}"[: len(word) + 13] for value in hashes.tolist()]
    return [*labels, NONE], codes


def _of_numbers(values: NDArray[Any]) -> tuple[list[str], NDArray[Any]]:
    is_number = ~np.isnan(values)
    distinct, places = np.unique(values[is_number], return_inverse=True)
    codes = np.full(len(values), -1, np.int64)
    codes[is_number] = places
    return [*map(shown, distinct.tolist()), NONE], codes


def _label_order(label: str) -> tuple[int, float, str]:
    try:
        number = float(label)
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return 0, number, label
    return 1 + (label == NONE), 0.0, label


def _no_such_field(run: Assembled, field: str) -> UsageError:
    """The error with the fields that may have been meant."""
    rows, row_id = run.rows, run.rollouts.row_id
    texts = [name for name, column in _TEXTS.items() if (rows.texts(column)[0][row_id] >= 0).any()]
    numbers = [name for name, column in _NUMBERS.items() if not np.isnan(rows.numbers(column)[row_id]).all()]
    names = [*_REPEATS[:1], *texts, *numbers, *rows.fields()]
    lower = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(field.lower(), lower, n=_HINTS, cutoff=0.6)
    last = field.rpartition(".")[2].lower()
    near += [name for name in lower if last and last in name and name not in near]
    meant = [lower[name] for name in near] or names
    hint = f"fields that rows have: {', '.join(meant[:_HINTS])}"
    return UsageError(f"no row of {run.rollouts.run} has a field {field}", hint, "no-such-field")

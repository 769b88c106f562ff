"""Split a run by the value of a field, and hash its tasks so that another run knows them again."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from blade.errors import UsageError
from blade.formats import single_rows
from blade.formats.assemble import Assembled, Key, TaskKeys, coverage, kept, numbered, one_run, task_keys
from blade.formats.field_columns import BOOL, LIST, NULL, NUMBER, OBJECT, TEXT, is_task_field
from blade.formats.joined_rows import Rows
from blade.formats.rollout_steps import NOTHING, value_at
from blade.model import ID_FIELDS, PROMPT, Benchmark, Column, Rollouts

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
            prints[name] = np.zeros(len(rollouts.task_keys), np.uint64)
            prints[name][codes] = values
            if len(prints) == MAX_FIELDS:
                break
    return prints


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
    opened_values: dict[str, dict[int, int]] = {}
    for position in sorted(wanted, key=run.rollouts.row_id.__getitem__):  # as they lie in the file
        row = single_rows.row(run, position)
        for name in wanted[position]:
            opened_values.setdefault(name, {})[position] = _hash_of(value_at(row, name))
    return opened_values


def _respelled(field: _Spelled, values: Mapping[int, int]) -> Hashes:
    """The hashes of all rows with those of values for those of spellings that were opened."""
    by_value = np.array([values[position] for position in field.positions.tolist()], np.uint64)
    rows = np.flatnonzero(field.is_spelled & np.isin(field.hashes, field.distinct))
    hashes = field.hashes.copy()
    hashes[rows] = by_value[field.distinct.searchsorted(field.hashes[rows])]
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
    if isinstance(value, dict):
        return dict(zip(value, map(_plain, value.values()), strict=True))
    return value


__all__ = ["fingerprints", "split"]

MAX_VALUES = 50
NONE = "(none)"  # null, or a row without the field
_HINTS = 8  # fields named to someone who asked for one that is not there
_BALANCED = 0.5  # share of a part's tasks with its commonest number of rows, from which that was the plan

# Columns of their own, under the names people use for them.
_TEXTS = {
    "skills_ref.hash": "skills_hash",
    "skills_ref": "skills_hash",
    "model": "model",
    "response.model": "model",
    "agent": "agent",
    "agent_ref.name": "agent",
}
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
    main = run.rows
    chosen = _rows_of(run)
    tasks = task_keys(main, _declared(run.rollouts.grouped_by, main))
    labels, place = _values(main, field, chosen, tasks.code)
    if len(labels) > MAX_VALUES:
        raise UsageError(
            f"{field} has {len(labels):,} values in {run.rollouts.run}: too many to compare",
            f"--by needs a field with 2 to {MAX_VALUES} values, such as skills_ref.hash",
            "cannot-split",
        )
    if not labels or labels == [NONE]:
        raise _no_such_field(run, field)
    if len(labels) == 1:
        raise UsageError(
            f"every row of {run.rollouts.run} has {field} = {labels[0]}",
            f"--by needs a field with 2 to {MAX_VALUES} values; files are compared as `blade compare A B`",
            "cannot-split",
        )
    return [_part(run, field, label, chosen[place == number], tasks) for number, label in enumerate(labels)]


def _rows_of(run: Assembled) -> NDArray[np.int64]:
    """All rows of the run, those too that another attempt or a copy replaced."""
    codes, _ = run.rows.texts("agent")
    return np.flatnonzero(np.isin(codes, np.unique(codes[run.rollouts.row_id])))


def _declared(grouped_by: str, main: Rows) -> str | None:
    """The id field that the tasks of the run were grouped by, if they were."""
    last = grouped_by.rpartition(" and ")[2]
    return last if last in main.fields() else None


def _part(run: Assembled, field: str, label: str, chosen: NDArray[Any], tasks: TaskKeys) -> Assembled:
    agent = label if _TEXTS.get(field) == "agent" and label != NONE else run.agent
    name = f"{run.rollouts.run}[{field}={label}]"
    part = one_run(name, agent, chosen, run.rows, tasks, None, None, None, Benchmark())
    rollouts = structs.replace(part.rollouts, input_fields=run.rollouts.input_fields)
    settings = dict(part.settings)
    if field in run.rows.fields():
        settings.setdefault(field, label)
    if not _is_balanced(rollouts, part.coverage.repeats):
        settled = kept(run.rows, chosen, tasks.code)
        counted = coverage(rollouts, settled, _came(rollouts), {}, part.coverage.unnumbered_copies)
        counted = structs.replace(counted, expected_from="inferred: the rows that came")
        return replace(part, rollouts=rollouts, coverage=counted, settings=settings)
    return replace(part, rollouts=rollouts, settings=settings)


def _is_balanced(rollouts: Rollouts, repeats: int) -> bool:
    """Have enough tasks the commonest number of rows for it to have been the plan."""
    first = np.ones(len(rollouts.task), bool)  # of the rows that share a key
    first[1:] = (rollouts.task[1:] != rollouts.task[:-1]) | (rollouts.repeat[1:] != rollouts.repeat[:-1])
    counts = np.bincount(rollouts.task[first])
    return int((counts == repeats).sum()) >= _BALANCED * int((counts > 0).sum())


def _came(rollouts: Rollouts) -> set[Key]:
    """The keys (task, repeat) of the rows."""
    keys = zip(rollouts.task.tolist(), rollouts.repeat.tolist(), strict=True)
    return {(rollouts.task_keys[task], repeat) for task, repeat in keys}


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
        labels, codes = _of_numbers(numbered(task[chosen], repeat, content).astype(np.float64))
    else:
        return [], np.zeros(len(chosen), np.int64)
    return _in_order(labels, np.where(codes < 0, len(labels) - 1, codes))


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
    for which, word in (
        (TEXT, "text"),
        (LIST, "list"),
        (OBJECT, "object"),
    ):  # long ones are known by their hash
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
    return [*(_shown(value) for value in distinct.tolist()), NONE], codes


def _shown(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _in_order(labels: list[str], codes: NDArray[Any]) -> tuple[list[str], NDArray[np.int64]]:
    """The labels that are used, each once: numbers by value, then texts, then none."""
    used = np.unique(codes)
    ordered = sorted({labels[code] for code in used.tolist()}, key=_label_order)
    known = {label: place for place, label in enumerate(ordered)}
    table = np.full(len(labels), -1, np.int64)
    table[used] = [known[labels[code]] for code in used.tolist()]
    return ordered, table[codes]


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
    names = _fields_of(run)
    lower = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(field.lower(), lower, n=_HINTS, cutoff=0.6)
    last = field.rpartition(".")[2].lower()
    near += [name for name in lower if last and last in name and name not in near]
    meant = [lower[name] for name in near] or names
    return UsageError(
        f"no row of {run.rollouts.run} has a field {field}",
        f"fields that rows have: {', '.join(meant[:_HINTS])}",
        "no-such-field",
    )


def _fields_of(run: Assembled) -> list[str]:
    """The fields that the rows have, those with columns of their own first."""
    rows = run.rollouts.row_id
    texts = [name for name, column in _TEXTS.items() if (run.rows.texts(column)[0][rows] >= 0).any()]
    numbers = [
        name for name, column in _NUMBERS.items() if not np.isnan(run.rows.numbers(column)[rows]).all()
    ]
    return [*_REPEATS[:1], *texts, *numbers, *run.rows.fields()]

"""Turn one run into several by the value of a field, so that skill sets or prompts are compared."""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from blade.errors import UsageError
from blade.formats.assemble import Assembled, one_run
from blade.formats.expected import Key, coverage
from blade.formats.fields import BOOL, LIST, NUMBER, OBJECT, TEXT
from blade.formats.fingerprints import fingerprints
from blade.formats.keys import TaskKeys, kept, numbered, task_keys
from blade.formats.rows import Rows
from blade.model import Benchmark, Column, Rollouts

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


def split(one: Assembled, field: str) -> list[Assembled]:
    """One run for each value of `field`, named `RUN[FIELD=VALUE]`, in the order of the values.

    The rows are settled anew within each part: where two evaluations were written into one file, rows of the
    same task and repeat are no duplicates of one another. What was expected of a part is inferred from its
    rows; rows that failed or were lost belong to no part, since nothing tells their value.
    """
    main = one.rows
    chosen = _rows_of(one)
    tasks = task_keys(main, _declared(one.rollouts.grouped_by, main))
    labels, place = _values(main, field, chosen, tasks.code)
    if len(labels) > MAX_VALUES:
        raise UsageError(
            f"{field} has {len(labels):,} values in {one.rollouts.run}: too many to compare",
            f"--by needs a field with 2 to {MAX_VALUES} values, such as skills_ref.hash",
            "cannot-split",
        )
    if not labels or labels == [NONE]:
        raise _no_such_field(one, field)
    if len(labels) == 1:
        raise UsageError(
            f"every row of {one.rollouts.run} has {field} = {labels[0]}",
            f"--by needs a field with 2 to {MAX_VALUES} values; files are compared as `blade compare A B`",
            "cannot-split",
        )
    return [_part(one, field, label, chosen[place == number], tasks) for number, label in enumerate(labels)]


def _rows_of(one: Assembled) -> NDArray[np.int64]:
    """All rows of the run, those too that another attempt or a copy replaced."""
    codes, _ = one.rows.texts("agent")
    return np.flatnonzero(np.isin(codes, np.unique(codes[one.rollouts.row_id])))


def _declared(grouped_by: str, main: Rows) -> str | None:
    """The id field that the tasks of the run were grouped by, if they were."""
    last = grouped_by.rpartition(" and ")[2]
    return last if last in main.fields() else None


def _part(one: Assembled, field: str, label: str, chosen: NDArray[Any], tasks: TaskKeys) -> Assembled:
    agent = label if _TEXTS.get(field) == "agent" and label != NONE else one.agent
    name = f"{one.rollouts.run}[{field}={label}]"
    part = one_run(name, agent, chosen, one.rows, tasks, None, None, None, Benchmark())
    rollouts = structs.replace(part.rollouts, input_fields=one.rollouts.input_fields)
    settings = dict(part.settings)
    if field in one.rows.fields():
        settings.setdefault(field, label)
    if not _is_balanced(rollouts, part.coverage.repeats):
        settled = kept(one.rows, chosen, tasks.code)
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
    told = zip(rollouts.task.tolist(), rollouts.repeat.tolist(), strict=True)
    return {(rollouts.task_keys[task], repeat) for task, repeat in told}


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
    told = ~np.isnan(values)
    distinct, places = np.unique(values[told], return_inverse=True)
    codes = np.full(len(values), -1, np.int64)
    codes[told] = places
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


def _no_such_field(one: Assembled, field: str) -> UsageError:
    """The error with the fields that may have been meant."""
    names = _fields_of(one)
    lower = {name.lower(): name for name in reversed(names)}
    near = difflib.get_close_matches(field.lower(), lower, n=_HINTS, cutoff=0.6)
    last = field.rpartition(".")[2].lower()
    near += [name for name in lower if last and last in name and name not in near]
    meant = [lower[name] for name in near] or names
    return UsageError(
        f"no row of {one.rollouts.run} has a field {field}",
        f"fields that rows have: {', '.join(meant[:_HINTS])}",
        "no-such-field",
    )


def _fields_of(one: Assembled) -> list[str]:
    """The fields that the rows have, those with columns of their own first."""
    rows = one.rollouts.row_id
    texts = [name for name, column in _TEXTS.items() if (one.rows.texts(column)[0][rows] >= 0).any()]
    numbers = [
        name for name, column in _NUMBERS.items() if not np.isnan(one.rows.numbers(column)[rows]).all()
    ]
    return [*_REPEATS[:1], *texts, *numbers, *one.rows.fields()]

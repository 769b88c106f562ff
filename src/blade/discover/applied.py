"""Turn a mechanism of one run into the rollouts of another run that show it and fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from blade.discover import gather, kinds
from blade.discover.candidates import ABSENT, BOOL, NULL, NUMBER, TEXT, within
from blade.discover.choose import SOMETIMES
from blade.discover.gather import Gathered, Rows
from blade.model import Column, Judged, Mechanism

if TYPE_CHECKING:
    from blade.model import Bools, Ints


def applied(
    mechanism: Mechanism,
    judged: Judged,
    fields: Mapping[str, Column],
    task_fields: frozenset[str],
    observed: Gathered,
) -> tuple[tuple[str, int], ...] | None:
    """Task and repeat of the failing rollouts that show it; None where it cannot be told in this run."""
    shown = showing(mechanism, judged, fields, task_fields, observed)
    if shown is None:
        return None
    failing = shown[~judged.passed[shown]]
    return tuple((judged.task_keys[int(judged.task[at])], int(judged.repeat[at])) for at in failing)


def showing(
    mechanism: Mechanism,
    judged: Judged,
    fields: Mapping[str, Column],
    task_fields: frozenset[str],
    observed: Gathered,
) -> Ints | None:
    """The rollouts that show it, as places in the arrays of `Judged`; None: cannot be told."""
    rows = gather.rows(judged, observed)
    if not rows.n:
        return None
    feature, condition = mechanism.feature, mechanism.condition
    shown = _shown(feature, rows, fields, observed)
    held = _held(feature, condition, rows, fields, task_fields, observed)
    if shown is None or held is None:
        return None
    places: Ints = rows.at[held & (shown != mechanism.absent)]
    return places


def _held(
    feature: str,
    condition: str,
    rows: Rows,
    fields: Mapping[str, Column],
    task_fields: frozenset[str],
    observed: Gathered,
) -> Bools | None:
    """The rows that meet the condition, however many or few they are."""
    if not condition:
        return np.ones(rows.n, bool)
    if condition.endswith(SOMETIMES):
        sizes = gather.sizes(rows)
        passes = np.add.reduceat(rows.passed.astype(np.int64), rows.starts)
        mixed: Bools = np.repeat((passes > 0) & (passes < sizes), sizes)
        rest = condition.removesuffix(SOMETIMES).removesuffix(" & ")
        held = _held(feature, rest, rows, fields, task_fields, observed)
        return None if held is None else held & mixed
    if condition.startswith("calls("):
        return _shown(condition, rows, fields, observed)
    about = kinds.conditions(rows, fields, task_fields, least=1)
    if condition in about:
        return about[condition]
    for told, held in within(feature, rows, about):
        if told == condition:
            return held
    return np.zeros(rows.n, bool) if condition.startswith("gold_has(") else None


def _shown(feature: str, rows: Rows, fields: Mapping[str, Column], observed: Gathered) -> Bools | None:
    if feature.startswith(("field(", "#field(")):
        return _of_field(feature, rows, fields)
    name, is_cut, cut = feature.rpartition(">=")
    if is_cut:
        values = rows.numbers.get(name)
        return None if values is None else np.nan_to_num(values) >= float(cut)
    code = observed.names.get(feature)
    if code is None:  # no rollout of this run shows it
        return np.zeros(rows.n, bool)
    ends = np.asarray(observed.ends, np.int64)
    owner = np.repeat(np.asarray(observed.positions, np.int64), np.diff(np.r_[0, ends]))
    return np.isin(rows.position, owner[np.asarray(observed.codes, np.int32) == code])


def _of_field(feature: str, rows: Rows, fields: Mapping[str, Column]) -> Bools | None:
    inner, is_cut, cut = feature.rpartition(">=")
    inner = (inner if is_cut and feature.startswith("#") else feature).lstrip("#")
    inner = inner.removeprefix("field(").removesuffix(")")
    name, _, value = inner.partition("=")
    is_given = name.endswith(" is given")
    column = fields.get(name.removesuffix(" is given"))
    if column is None:
        return None
    kind, number, code = (part[rows.position] for part in (column.kind, column.number, column.code))
    found: Bools
    if is_given:
        found = kind > NULL
    elif feature.startswith("#"):
        found = (kind == NUMBER) & np.greater_equal(np.nan_to_num(number), float(cut))
    elif value == "true":
        found = (kind == BOOL) & (number == 1)
    else:
        wanted = [at for at, text in enumerate(column.texts) if text[:60] == value]
        found = (kind == TEXT) & np.isin(code, wanted)
    return found if (kind != ABSENT).any() else None

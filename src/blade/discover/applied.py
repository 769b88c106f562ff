"""Turn a mechanism of one run into the rollouts of another run that show it and fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from blade.discover import gather, kinds
from blade.discover.candidates import ABSENT, BOOL, NULL, NUMBER, TEXT, within
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
    feature, condition, absent = parts(mechanism.predicate)
    shown = _shown(feature, rows, fields, observed)
    held = _held(feature, condition, rows, fields, task_fields)
    if shown is None or held is None:
        return None
    places: Ints = rows.at[held & (shown != absent)]
    return places


def parts(predicate: str) -> tuple[str, str, bool]:
    """Feature, condition, and whether it is the absence that counts."""
    told, _, condition = predicate.partition(" within ")
    if told.startswith("never_calls("):
        return told.removeprefix("never_"), condition, True
    absent = told.startswith("not ")
    return told.removeprefix("not "), condition, absent


def _held(
    feature: str,
    condition: str,
    rows: Rows,
    fields: Mapping[str, Column],
    task_fields: frozenset[str],
) -> Bools | None:
    if not condition:
        return np.ones(rows.n, bool)
    about = kinds.conditions(rows, fields, task_fields)
    for told, held in within(feature, rows, about):
        if told == condition:
            return held
    return None


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

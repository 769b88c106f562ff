"""Read checks from objects of statuses: each member a check, passed or failed by what it holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from blade.formats.records import OTHER, status_of
from blade.model import Values
from blade.tables.arrays import ABSENT, BOOL, NULL, NUMBER, TEXT, Array, coded, is_none, spelled

MIN_MEMBERS = 2
SHARE = 0.8  # of the members of an object that must be statuses
_SKIPPED = ("responses_create_params", "response", "agent_ref", "skills_ref")  # what is asked and answered


def object_checks(scalars: Mapping[str, tuple[Values, Array]]) -> dict[str, Array]:
    """Checks of all objects most of whose members are statuses: truths, words for them, or scores."""
    parents: dict[str, list[str]] = defaultdict(list)
    for path in scalars:
        parent, dot, _ = path.rpartition(".")
        if dot and path.partition(".")[0] not in _SKIPPED:
            parents[parent].append(path)
    rows: list[Array] = []
    texts: dict[str, list[Array]] = {name: [] for name in ("path", "name", "status", "value")}
    for parent, members in sorted(parents.items()):
        statuses = {path: pair for path in members if (pair := _statuses(*scalars[path])) is not None}
        if len(statuses) < MIN_MEMBERS or len(statuses) < SHARE * len(members):
            statuses = {path: pair for path, pair in statuses.items() if _is_worded(scalars[path][0])}
        for path, (status, value) in sorted(statuses.items()):
            held = np.flatnonzero(~is_none(status))
            rows.append(held)
            name = path[len(parent) + 1 :]
            same = (np.full(len(held), text, object) for text in (parent, name))
            for key, column in zip(texts, (*same, status[held], value[held]), strict=True):
                texts[key].append(column)
    empty = np.zeros(0, object)
    return {
        "row": np.concatenate(rows) if rows else np.zeros(0, np.int64),
        **{name: np.concatenate(columns) if columns else empty for name, columns in texts.items()},
    }


def _is_worded(values: Values) -> bool:
    """Whether a column says its status in words: that is a check whatever stands beside it."""
    return bool((values.kind == TEXT).any())


def _statuses(values: Values, order: Array) -> tuple[Array, Array] | None:
    """The status and the value of each row; None where the values are no statuses."""
    kind, number = values.kind[order], values.number[order]
    held = ~np.isin(kind, (ABSENT, NULL))
    if not held.any() or not np.isin(kind[held], (BOOL, NUMBER, TEXT)).all():
        return None
    if (kind == TEXT).any():
        known = np.array([*(status_of(text) for text in values.texts), None], object)
        status, value = known[values.code[order]], coded(values.code[order], values.texts)
        if is_none(status[kind == TEXT]).any():
            return None
    else:
        if np.nanmin(number[held]) < 0 or np.nanmax(number[held]) > 1:
            return None
        status, value = np.full(len(kind), None, object), np.full(len(kind), None, object)
    rows = np.flatnonzero((kind == BOOL) | (kind == NUMBER))
    truths = (kind[rows] == BOOL).tolist()
    for row, amount, is_truth in zip(rows.tolist(), number[rows].tolist(), truths, strict=True):
        status[row] = status_of(bool(amount) if is_truth else amount) or OTHER
        value[row] = ("true" if amount else "false") if is_truth else spelled(amount)
    return status, value

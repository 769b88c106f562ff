"""Decide what every field of the rows is: constant, task-level, identity, reward, verdict, effort or text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from blade.formats.field_columns import ABSENT, HEAD, NULL
from blade.tables.database import Array

CONSTANT, TASK, IDENTITY, REWARD = "constant", "task-level", "identity", "reward"
VERDICT, EFFORT, TEXT, OTHER = "verdict", "effort", "text", "other"
LONG = 100  # characters from which a text is prose or a log, not a value
MANY = 10  # distinct numbers from which a field is an amount
KEPT = HEAD  # characters of a longer text that its column holds
RARE, MANY_KEYS = 0.05, 3  # share of rows below which so many keys of an object are told as one


@dataclass(frozen=True)
class Field:
    """What is known of one field over the rows of a run."""

    path: str
    column: str | None  # its name in `rollouts`
    role: str
    type: str
    presence: int  # rows that hold it, null apart
    distinct: int
    example: str | None
    is_cut: bool = False  # some of its texts are longer than what is kept of them


@dataclass(frozen=True)
class Rows:
    """What fields are compared with: the task of each row, its reward, and whether it passes."""

    task: Array  # codes, ascending
    reward: Array
    passed: Array
    has_repeats: bool

    @property
    def starts(self) -> Array:
        return np.flatnonzero(np.r_[True, self.task[1:] != self.task[:-1]]) if self.task.size else self.task


def field(path: str, column: str | None, kind: Array, values: Array, type_name: str, rows: Rows) -> Field:
    """One field, by how its values behave; a name decides nothing."""
    present = is_present(kind)
    codes, texts = _codes(values, present)
    role = _role(codes, present, values, texts, type_name, rows)
    example = next((text[:80] for text in texts if text), None)
    is_cut = any(text[KEPT - 1 : KEPT] == "…" for text in texts)
    return Field(path, column, role, type_name, int(present.sum()), len(texts), example, is_cut)


def is_present(kind: Array) -> Array:
    """Which rows hold a value, null apart."""
    return ~np.isin(kind, (ABSENT, NULL))


def collapsed(fields: list[Field], rows_with: Mapping[str, tuple[Array, Array]]) -> list[Field]:
    """The fields, with rare members of one object as one entry, `path.*`: such keys are data, not fields."""
    n_rows = max((len(present) for present, _ in rows_with.values()), default=0)
    rare: dict[str, list[Field]] = defaultdict(list)
    for known in fields:
        parent, dot, _ = known.path.rpartition(".")
        if dot and known.presence < RARE * n_rows:
            rare[parent].append(known)
    many = {parent: members for parent, members in rare.items() if len(members) >= MANY_KEYS}
    gone = {known.path for members in many.values() for known in members}
    together = [_together(parent, members, rows_with) for parent, members in many.items()]
    return sorted([known for known in fields if known.path not in gone] + together, key=lambda f: f.path)


def _together(parent: str, members: list[Field], rows_with: Mapping[str, tuple[Array, Array]]) -> Field:
    """Some members of an object as one field: the rows that hold any of them, and the values of all."""
    kinds = {member.type for member in members}
    rows = np.logical_or.reduce([rows_with[member.path][0] for member in members])
    values: set[Any] = set()
    for present, array in (rows_with[member.path] for member in members):
        values |= set(np.ma.getdata(array)[present].tolist())
    return Field(
        f"{parent}.*", None, OTHER, "mixed" if len(kinds) > 1 else members[0].type, int(rows.sum()),
        len(values), members[0].example, any(member.is_cut for member in members),
    )  # fmt: skip


def _codes(values: Array, present: Array) -> tuple[Array, list[str]]:
    """Equal values under one number, -1 for none; and what the numbers stand for."""
    if values.dtype == object:
        known: dict[Any, int] = {}
        numbers = [known.setdefault(v, len(known)) if v is not None else -1 for v in values.tolist()]
        return np.where(present, np.array(numbers, np.int64), -1), [str(value) for value in known]
    plain = np.ma.getdata(values)
    unique, inverse = np.unique(plain[present], return_inverse=True)
    codes = np.full(len(plain), -1, np.int64)
    codes[present] = inverse
    return codes, [str(value) for value in unique[:3].tolist()] + [""] * max(0, len(unique) - 3)


def _role(codes: Array, present: Array, values: Array, texts: list[str], type_name: str, rows: Rows) -> str:
    if len(texts) <= 1:
        return CONSTANT
    if is_reward(values, present, type_name, rows):
        return REWARD
    low, high = np.minimum.reduceat(codes, rows.starts), np.maximum.reduceat(codes, rows.starts)
    varies = bool((low != high).mean() > 0.05)  # repeats of one task differ in it, in more than one task of twenty
    n_tasks = len(rows.starts)
    if not varies and rows.has_repeats:
        return IDENTITY if len(texts) == n_tasks and present.all() else TASK
    if len(texts) == present.sum() and present.all() and type_name in ("text", "mixed") and _is_short(texts):
        return IDENTITY
    if type_name == "number" and present.all():
        counts = np.sort(np.ma.getdata(values))
        if counts.dtype.kind == "i" and counts.size > MANY and np.all(np.diff(counts) == 1):
            return IDENTITY  # whole numbers one after the other, in whatever order
    if is_verdict(codes, rows) and (varies or len(texts) <= MANY):
        return VERDICT
    if type_name == "number" and len(texts) > MANY:
        return EFFORT
    return TEXT if type_name in ("text", "mixed") and not _is_short(texts) else OTHER


def _is_short(texts: list[str]) -> bool:
    return sum(len(text) <= LONG for text in texts) >= 0.5 * len(texts)


def is_reward(values: Array, present: Array, type_name: str, rows: Rows) -> bool:
    """Whether it states the reward again: equal to it in every row that holds both."""
    if type_name not in ("number", "boolean"):
        return False
    both = present & np.isfinite(rows.reward)
    if both.sum() < 2 or both.sum() < 0.9 * len(both):
        return False
    numbers = np.ma.getdata(values)[both].astype(float)
    passes = rows.passed[both].astype(float)
    return bool(np.array_equal(numbers, rows.reward[both]) or np.array_equal(numbers, passes))


def is_verdict(codes: Array, rows: Rows) -> bool:
    """Whether every frequent value goes with one outcome: set by grading, or equal to what is graded."""
    if rows.passed.all() or not rows.passed.any():
        return False
    has_value = codes >= 0
    n = np.bincount(codes[has_value])
    passes = np.bincount(codes[has_value], weights=rows.passed[has_value].astype(float))
    frequent = n >= 2
    if frequent.sum() < 1 or n[frequent].sum() < 0.5 * has_value.sum():
        return False
    rates = passes[frequent] / n[frequent]
    pure = (rates == 0) | (rates == 1)
    return bool((n[frequent] * pure).sum() >= 0.95 * n[frequent].sum())

"""Lay the rows of a run out as tables: rollouts with every scalar by its path, tasks, fields, checks, answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from blade.formats.assemble import Assembled
from blade.formats.check_records import OTHER, status_of
from blade.model import LAST_KINDS, Values
from blade.tables import census
from blade.tables.census import Field
from blade.tables.database import (
    ABSENT,
    BOOL,
    NULL,
    NUMBER,
    RESERVED,
    TEXT,
    Array,
    coded,
    is_none,
    joined,
    masked,
    numbers,
    spelled,
    typed,
)
from blade.tables.gold_answers import Answers, answers, normal

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
            rows_with = np.flatnonzero(~is_none(status))
            rows.append(rows_with)
            name = path[len(parent) + 1 :]
            same = (np.full(len(rows_with), text, object) for text in (parent, name))
            for key, column in zip(texts, (*same, status[rows_with], value[rows_with]), strict=True):
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
    present = ~np.isin(kind, (ABSENT, NULL))
    if not present.any() or not np.isin(kind[present], (BOOL, NUMBER, TEXT)).all():
        return None
    if (kind == TEXT).any():
        known = np.array([*(status_of(text) for text in values.texts), None], object)
        status, value = known[values.code[order]], coded(values.code[order], values.texts)
        if is_none(status[kind == TEXT]).any():
            return None
    else:
        if np.nanmin(number[present]) < 0 or np.nanmax(number[present]) > 1:
            return None
        status, value = np.full(len(kind), None, object), np.full(len(kind), None, object)
    rows = np.flatnonzero((kind == BOOL) | (kind == NUMBER))
    truths = (kind[rows] == BOOL).tolist()
    for row, amount, is_truth in zip(rows.tolist(), number[rows].tolist(), truths, strict=True):
        status[row] = status_of(bool(amount) if is_truth else amount) or OTHER
        value[row] = ("true" if amount else "false") if is_truth else spelled(amount)
    return status, value


BUCKETS = ("always", "sometimes", "never", "missing")


def tasks(run: Assembled, judged: Judged, gold: Array) -> Columns:
    """One row for every task that was seen anywhere."""
    rollouts, coverage = run.rollouts, run.coverage
    n_tasks = len(rollouts.task_keys)
    counted = ~rollouts.masked
    task = rollouts.task[counted]
    n = np.bincount(task, minlength=n_tasks)
    passes = np.bincount(task, weights=judged.passed[counted].astype(float), minlength=n_tasks).astype(
        np.int64
    )
    reward = np.nan_to_num(rollouts.reward[counted], posinf=0.0, neginf=0.0)
    total = np.bincount(task, weights=reward, minlength=n_tasks)
    is_gone = (n == 0) | (not judged.has_pass_rate)
    share = passes / np.maximum(n, 1)
    bucket = np.where(n == 0, 3, np.where(passes == n, 0, np.where(passes == 0, 2, 1)))
    names = np.array([*BUCKETS, None], object)
    if not judged.has_pass_rate:
        bucket = np.where(n == 0, 3, 4)
    golds = np.full(n_tasks, None, object)
    golds[rollouts.task[::-1]] = gold[::-1]
    return {
        "task": np.array(rollouts.task_keys, object),
        "task_name": np.array(rollouts.task_names, object),
        "n": n,
        "passes": masked(passes, is_gone),
        "rate": masked(share, is_gone),
        "reward": masked(total / np.maximum(n, 1), n == 0),
        "bucket": names[bucket],
        "gold": golds,
        "expected": coverage.expected_per_task,
        "missing": coverage.missing_per_task,
    }


MAX_COLUMNS = 2000
_STOPS = ("stop_reason", "finish_reason", "termination_reason", "stop_condition", "exit_status")
_SETTINGS = ("temperature", "top_p", "max_output_tokens")

_NO_ANSWERS = (census.CONSTANT, census.REWARD, census.TEXT)

Columns = dict[str, Array]


@dataclass(frozen=True)
class Judged:
    """What became of each row, as the measures count it."""

    passed: Array  # False throughout where nothing judges
    outcome: Array  # of str
    score: Array  # what the row adds to the score
    has_pass_rate: bool


@dataclass
class Laid:
    """The tables that are made of the columns of a run."""

    rollouts: Columns
    fields: list[Field] = field(default_factory=list)
    checks: Columns = field(default_factory=dict)
    answers: Columns = field(default_factory=dict)
    gold: Array = field(default_factory=lambda: np.zeros(0, object))


def laid_out(run: Assembled, judged: Judged) -> Laid:
    """Every table that needs no trace."""
    rollouts, order = run.rollouts, run.rollouts.row_id
    scalars = _scalars(run)
    arrays = {path: hit for path, values in scalars.items() if (hit := typed(values, order)) is not None}
    rows = census.Rows(
        rollouts.task, rollouts.reward, judged.passed, bool((np.bincount(rollouts.task) > 1).any())
    )
    names = column_names(list(arrays))
    fields = [
        census.field(path, names.get(path), scalars[path].kind[order], array, kind, rows)
        for path, (array, kind) in arrays.items()
    ]
    answered = _answers(run, judged, scalars, fields)
    table = _reserved(run, judged, arrays, answered)
    table |= {names[path]: array for path, (array, _) in arrays.items() if path in names}
    kinds = {path: scalars[path].kind[order] for path in arrays}
    values_by_path = {path: (census.is_present(kinds[path]), array) for path, (array, _) in arrays.items()}
    census_rows = census.collapsed(fields, values_by_path)
    return Laid(table, census_rows, _checks(run, scalars, fields), _answer_rows(answered), answered.gold)


def column_names(paths: list[str]) -> dict[str, str]:
    """The column of each path; one that is taken, whatever its case, is called `field.PATH`."""
    taken = {name.lower() for name in RESERVED}
    names: dict[str, str] = {}
    for path in sorted(paths, key=lambda path: (path.count("."), path)):
        if len(names) >= MAX_COLUMNS:
            break
        if path == "reward":
            continue  # it is the reserved one
        name = path
        while name.lower() in taken:
            name = f"field.{name}"
        taken.add(name.lower())
        names[path] = name
    return names


def _scalars(run: Assembled) -> dict[str, Values]:
    """Every field and every scalar inside objects, by path."""
    rows = run.rows
    values_of = {path: rows.values(path, "s") for path in rows.paths()}
    for name in rows.fields():
        if name not in values_of:
            values_of[name] = rows.values(name, "f")
    for name in _SETTINGS:
        number = rows.numbers(name)
        kind = np.where(np.isnan(number), 0, NUMBER).astype(np.uint8)
        no_text = np.full(len(number), -1, np.int32)
        values_of[f"responses_create_params.{name}"] = Values(kind, number, no_text, ())
    return dict(sorted(values_of.items()))


def _reserved(
    run: Assembled, judged: Judged, arrays: dict[str, tuple[Array, str]], answered: Answers
) -> Columns:
    rollouts, order = run.rollouts, run.rollouts.row_id
    n = len(order)
    is_masked = rollouts.masked
    is_judged = ~is_masked & judged.has_pass_rate
    table: Columns = {
        "task": np.array(rollouts.task_keys, object)[rollouts.task] if n else np.zeros(0, object),
        "repeat": rollouts.repeat,
        "row": np.arange(n),
        "task_name": np.array(rollouts.task_names, object)[rollouts.task] if n else np.zeros(0, object),
        "reward": masked(rollouts.reward, ~np.isfinite(rollouts.reward)),
        "passed": masked(judged.passed, ~is_judged),
        "score": masked(judged.score, is_masked),
        "masked": is_masked,
        "outcome": judged.outcome,
        "answer": answered.answer,
        "gold": answered.gold,
        "equals_gold": answered.equals(answered.answer),
        "last_tool": _text(run, "last_tool"),
        "last_kind": np.array(LAST_KINDS, object)[rollouts.last_kind],
        "turns": rollouts.n_turns,
        "calls": rollouts.n_calls,
        "steps": rollouts.n_items,
        "stop_reason": _stop_reason(run, arrays),
        "truncated": rollouts.truncated,
        "errored": rollouts.errored,
        "timed_out": rollouts.timed_out,
        "model": _text(run, "model"),
        "agent": _text(run, "agent"),
    }
    for name in ("input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "cost_usd"):
        table[name] = numbers(getattr(rollouts, name))
    table["seconds"] = numbers(rollouts.wall_s)
    return table | _places(run)


def _text(run: Assembled, name: str) -> Array:
    codes, texts = run.rows.texts(name)
    return coded(codes[run.rollouts.row_id], texts)


def _stop_reason(run: Assembled, arrays: dict[str, tuple[Array, str]]) -> Array:
    """Why it stopped: what the response says of being incomplete, else a field that is named like it."""
    reasons = _text(run, "stop_reason")
    for path, (array, kind) in arrays.items():
        if path.rpartition(".")[2].lower() in _STOPS and kind == "text":
            reasons = np.where(is_none(reasons), array, reasons)
    return reasons


def _places(run: Assembled) -> Columns:
    """The file and the line of each row."""
    order = run.rollouts.row_id
    number = run.rows.starts[1:].searchsorted(order, side="right")
    files = np.array([source.path.name for source in run.rows.sources], object)
    lines = np.concatenate([source.lines() for source in run.rows.sources]) if run.rows.sources else order
    return {"file": files[number] if len(order) else np.zeros(0, object), "line": lines[order]}


def _answers(run: Assembled, judged: Judged, scalars: dict[str, Values], fields: list[Field]) -> Answers:
    """What was answered and expected, from the short scalars of the rows."""
    order = run.rollouts.row_id
    short: dict[str, Array] = {}
    for known in fields:
        if known.role in _NO_ANSWERS or known.type == "boolean":
            continue
        values = scalars[known.path]
        texts = coded(values.code[order], values.texts)
        rows = np.flatnonzero(values.kind[order] == NUMBER)
        texts[rows] = [spelled(number) for number in values.number[order][rows].tolist()]
        short[known.path] = texts
    is_task = {known.path for known in fields if known.role in (census.TASK, census.IDENTITY)}
    if not any(np.bincount(run.rollouts.task) > 1):  # one repeat: what is task-level cannot be seen
        is_task = set(short) & {name for name in short if name in run.rollouts.input_fields}
    return answers(run, judged.passed, short, is_task)


def _answer_rows(answered: Answers) -> Columns:
    rows, sources, texts, golds = [], [], [], []
    for source in answered.sources:
        rows_with = np.flatnonzero(~is_none(source.texts))
        rows.append(rows_with)
        sources += [source.name] * len(rows_with)
        texts.append(source.texts[rows_with])
        golds.append(answered.gold[rows_with])
    if not rows:
        empty = np.zeros(0, object)
        return {"row": np.zeros(0, np.int64), "source": empty, "text": empty, "normal": empty, "gold": empty,
                "equals_gold": np.zeros(0, bool)}  # fmt: skip
    text, gold = np.concatenate(texts), np.concatenate(golds)
    equals = [answered.equals(source.texts)[~is_none(source.texts)] for source in answered.sources]
    known = {value: normal(value) for value in set(text.tolist())}
    normals = np.array([known[value] for value in text.tolist()], object)
    return {
        "row": np.concatenate(rows), "source": np.array(sources, object), "text": text, "normal": normals,
        "gold": gold, "equals_gold": joined(equals),
    }  # fmt: skip


def _checks(run: Assembled, scalars: dict[str, Values], fields: list[Field]) -> Columns:
    """Statuses inside lists and wide objects, and those that are columns of their own."""
    order = run.rollouts.row_id
    place = np.full(run.rows.n_rows, -1, np.int64)
    place[order] = np.arange(len(order))
    row_numbers, columns = run.rows.checks()
    row = place[row_numbers] if len(row_numbers) else row_numbers.astype(np.int64)
    is_row = row >= 0
    table = {"row": row[is_row]}
    table |= {name: coded(codes[is_row], texts) for name, (codes, texts) in columns.items()}
    more = object_checks({known.path: (scalars[known.path], order) for known in fields})
    return {name: np.concatenate([table[name], more[name]]) for name in table}

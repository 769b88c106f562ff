"""Lay the rows of a run out as tables: rollouts with every scalar by its path, tasks, fields, checks, answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from blade.formats.assemble import Assembled
from blade.formats.check_records import OTHER, status_of
from blade.formats.field_columns import ABSENT, BOOL, NULL, NUMBER, TEXT
from blade.model import LAST_KINDS, Values
from blade.tables import census, database
from blade.tables.census import Field
from blade.tables.database import Array, coded, is_none, masked, spelled
from blade.tables.gold_answers import Answers, answers, normal

Columns = dict[str, Array]
MAX_COLUMNS = 2000
BUCKETS = ("always", "sometimes", "never", "missing")
_STOPS = ("stop_reason", "finish_reason", "termination_reason", "stop_condition", "exit_status")
_AMOUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "cost_usd")
MIN_MEMBERS = 2
SHARE = 0.8  # of the members of an object that must be statuses
_SKIPPED = ("responses_create_params", "response", "agent_ref", "skills_ref")  # what is asked and answered


def object_checks(scalars: Mapping[str, tuple[Values, Array]]) -> list[Columns]:
    """Checks of all objects most of whose members are statuses: truths, words for them, or scores."""
    parents: dict[str, list[str]] = defaultdict(list)
    for path in scalars:
        parent, dot, _ = path.rpartition(".")
        if dot and path.partition(".")[0] not in _SKIPPED:
            parents[parent].append(path)
    tables: list[Columns] = []
    for parent, members in sorted(parents.items()):
        statuses = {path: pair for path in members if (pair := _statuses(*scalars[path])) is not None}
        if len(statuses) < MIN_MEMBERS or len(statuses) < SHARE * len(members):
            # a column that says its status in words is a check whatever stands beside it
            statuses = {path: pair for path, pair in statuses.items() if (scalars[path][0].kind == TEXT).any()}
        for path, (status, value) in sorted(statuses.items()):
            rows = np.flatnonzero(~is_none(status))
            same = {"path": parent, "name": path[len(parent) + 1 :]}
            table = {"row": rows} | {name: np.full(len(rows), text, object) for name, text in same.items()}
            tables.append(table | {"status": status[rows], "value": value[rows]})
    return tables


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
    fields: list[Field]
    checks: Columns
    answers: Columns
    gold: Array


def tasks(run: Assembled, judged: Judged, gold: Array) -> Columns:
    """One row for every task that was seen anywhere."""
    rollouts, n_tasks = run.rollouts, len(run.rollouts.task_keys)
    counted = ~rollouts.masked
    task = rollouts.task[counted]

    def total(values: Array) -> Array:
        return np.bincount(task, weights=values[counted].astype(float), minlength=n_tasks)

    n = np.bincount(task, minlength=n_tasks)
    passes = total(judged.passed).astype(np.int64)
    reward = total(np.nan_to_num(rollouts.reward, posinf=0.0, neginf=0.0))
    is_gone = (n == 0) | (not judged.has_pass_rate)
    bucket = np.select([n == 0, passes == n, passes == 0], [3, 0, 2], 1)
    if not judged.has_pass_rate:
        bucket = np.where(n == 0, 3, 4)
    golds = np.full(n_tasks, None, object)
    golds[rollouts.task[::-1]] = gold[::-1]
    return {
        "task": np.array(rollouts.task_keys, object),
        "task_name": np.array(rollouts.task_names, object),
        "n": n,
        "passes": masked(passes, is_gone),
        "rate": masked(passes / np.maximum(n, 1), is_gone),
        "reward": masked(reward / np.maximum(n, 1), n == 0),
        "bucket": np.array([*BUCKETS, None], object)[bucket],
        "gold": golds,
        "expected": run.coverage.expected_per_task,
        "missing": run.coverage.missing_per_task,
    }


def laid_out(run: Assembled, judged: Judged) -> Laid:
    """Every table that needs no trace."""
    rollouts, order = run.rollouts, run.rollouts.row_id
    scalars = _scalars(run)
    arrays = {path: pair for path, values in scalars.items() if (pair := database.typed(values, order)) is not None}
    kinds = {path: scalars[path].kind[order] for path in arrays}
    has_repeats = bool((np.bincount(rollouts.task) > 1).any())
    rows = census.Rows(rollouts.task, rollouts.reward, judged.passed, has_repeats)
    names = column_names(list(arrays))
    fields = [
        census.field(path, names.get(path), kinds[path], array, kind, rows)
        for path, (array, kind) in arrays.items()
    ]
    answered = _answers(run, judged, scalars, fields, has_repeats)
    table = _reserved(run, judged, arrays, answered)
    table |= {names[path]: array for path, (array, _) in arrays.items() if path in names}
    values_by_path = {path: (census.is_present(kinds[path]), array) for path, (array, _) in arrays.items()}
    census_rows = census.collapsed(fields, values_by_path)
    return Laid(table, census_rows, _checks(run, scalars, fields), _answer_rows(answered), answered.gold)


def column_names(paths: list[str]) -> dict[str, str]:
    """The column of each path; one that is taken, whatever its case, is called `field.PATH`."""
    taken = {name.lower() for name in database.RESERVED}
    names: dict[str, str] = {}
    paths = [path for path in paths if path != "reward"]  # it is the reserved one
    for path in sorted(paths, key=lambda path: (path.count("."), path))[:MAX_COLUMNS]:
        name = path
        while name.lower() in taken:
            name = f"field.{name}"
        taken.add(name.lower())
        names[path] = name
    return names


def _scalars(run: Assembled) -> dict[str, Values]:
    """Every field and every scalar inside objects, by path."""
    rows = run.rows
    values_of = {name: rows.values(name, "f") for name in set(rows.fields()) - set(rows.paths())}
    values_of |= {path: rows.values(path, "s") for path in rows.paths()}
    for name in ("temperature", "top_p", "max_output_tokens"):
        number = rows.numbers(name)
        kind = np.where(np.isnan(number), 0, NUMBER).astype(np.uint8)
        no_text = np.full(len(number), -1, np.int32)
        values_of[f"responses_create_params.{name}"] = Values(kind, number, no_text, ())
    return dict(sorted(values_of.items()))


def _reserved(
    run: Assembled, judged: Judged, arrays: dict[str, tuple[Array, str]], answered: Answers
) -> Columns:
    rollouts, order = run.rollouts, run.rollouts.row_id
    is_masked = rollouts.masked
    stop_reason = _text(run, "stop_reason")  # of the response, else a field that is named like it
    for path, (array, kind) in arrays.items():
        if path.rpartition(".")[2].lower() in _STOPS and kind == "text":
            stop_reason = np.where(is_none(stop_reason), array, stop_reason)
    files = [np.full(source.n_rows, source.path.name, object) for source in run.rows.sources]
    return {
        "task": coded(rollouts.task, rollouts.task_keys),
        "repeat": rollouts.repeat,
        "row": np.arange(len(order)),
        "task_name": coded(rollouts.task, rollouts.task_names),
        "reward": masked(rollouts.reward, ~np.isfinite(rollouts.reward)),
        "passed": masked(judged.passed, is_masked | (not judged.has_pass_rate)),
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
        "stop_reason": stop_reason,
        "truncated": rollouts.truncated,
        "errored": rollouts.errored,
        "timed_out": rollouts.timed_out,
        "model": _text(run, "model"),
        "agent": _text(run, "agent"),
        **{name: database.numbers(getattr(rollouts, name)) for name in _AMOUNTS},
        "seconds": database.numbers(rollouts.wall_s),
        "file": np.concatenate([np.zeros(0, object), *files])[order],
        "line": np.concatenate([np.zeros(0, np.int64), *(source.lines for source in run.rows.sources)])[order],
    }


def _text(run: Assembled, name: str) -> Array:
    codes, texts = run.rows.texts(name)
    return coded(codes[run.rollouts.row_id], texts)


def _answers(
    run: Assembled, judged: Judged, scalars: dict[str, Values], fields: list[Field], has_repeats: bool
) -> Answers:
    """What was answered and expected, from the short scalars of the rows."""
    order = run.rollouts.row_id
    short: dict[str, Array] = {}
    for known in fields:
        if known.role in (census.CONSTANT, census.REWARD, census.TEXT) or known.type == "boolean":
            continue
        values = scalars[known.path]
        texts = short[known.path] = coded(values.code[order], values.texts)
        rows = np.flatnonzero(values.kind[order] == NUMBER)
        texts[rows] = [spelled(number) for number in values.number[order][rows].tolist()]
    is_task = {known.path for known in fields if known.role in (census.TASK, census.IDENTITY)}
    if not has_repeats:  # what is task-level cannot be seen
        is_task = short.keys() & run.rollouts.input_fields
    return answers(run, judged.passed, short, is_task)


def _answer_rows(answered: Answers) -> Columns:
    """One row for every answer that a source gives."""
    none = np.zeros(0, object)
    tables: list[Columns] = [{"row": np.zeros(0, np.int64), "source": none, "text": none, "normal": none, "gold": none,
                              "equals_gold": np.zeros(0, bool)}]  # fmt: skip
    for name, all_texts in answered.sources.items():
        rows = np.flatnonzero(~is_none(all_texts))
        texts = all_texts[rows]
        known = {text: normal(text) for text in set(texts.tolist())}
        normals = np.array([known[text] for text in texts.tolist()], object)
        tables.append({
            "row": rows, "source": np.full(len(rows), name, object), "text": texts, "normal": normals,
            "gold": answered.gold[rows], "equals_gold": answered.equals(all_texts)[rows],
        })  # fmt: skip
    return database.stacked(tables)


def _checks(run: Assembled, scalars: dict[str, Values], fields: list[Field]) -> Columns:
    """Statuses inside lists and wide objects, and those that are columns of their own."""
    order = run.rollouts.row_id
    place = np.full(run.rows.n_rows, -1, np.int64)
    place[order] = np.arange(len(order))
    row_numbers, columns = run.rows.checks()
    row = place[row_numbers.astype(np.int64)]
    is_row = row >= 0
    table = {"row": row[is_row]}
    table |= {name: coded(codes[is_row], texts) for name, (codes, texts) in columns.items()}
    return database.stacked([table, *object_checks({known.path: (scalars[known.path], order) for known in fields})])

"""Find the fields that describe tasks, as codes for every row, and draft the facts of a benchmark from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from blade.measure.scoring import Scoring
from blade.model import ID_FIELDS, Benchmark, Column, Gap, Ints, RewardKind, Rollouts

MIN_VALUES, MAX_VALUES = 2, 30
CONSTANT_SHARE = 0.99  # of the tasks that have the field
MAX_INT = 1_000_000

# Names that say what kind of task it is, wherever people evaluate; matched on the last part of a
# field, in lower case, at the top of a row or under one of the PARENTS. Names that verifiers also use for
# their verdict (grade, format, length) are not here: with one repeat nothing else would tell them apart.
METADATA = frozenset({
    "area", "benchmark", "capability", "categories", "category", "complexity", "context_length",
    "data_source", "dataset", "dataset_file", "dataset_name", "difficulty", "difficulty_level",
    "discipline", "domain", "env", "environment", "eval_name", "field", "genre", "group", "hardness",
    "hops", "intent", "kind", "lang", "language", "level", "locale", "modality", "n_hops", "n_needles",
    "num_hops", "persona", "problem_type", "programming_language", "question_type", "repo", "repository",
    "scenario", "section", "skill", "source", "split", "style", "subcategory", "subdomain", "subfield",
    "subject", "subset", "subtask", "suite", "tag", "task_category", "task_type", "topic", "track", "type",
    "variant", "year",
})  # fmt: skip
PARENTS = frozenset({
    "data", "extra", "extra_info", "info", "input", "instance", "instance_config", "item", "meta", "metadata",
    "problem", "problem_metadata", "sample", "task", "task_info", "task_metadata", "verifier_metadata",
})  # fmt: skip
ABSENT, NULL, BOOL, NUMBER, TEXT = range(5)


def fields(rollouts: Rollouts, scoring: Scoring, benchmark: Benchmark) -> list[str]:
    """The fields that describe tasks: those declared, else those that look so."""
    return list(by_row(rollouts, scoring, benchmark))


def by_row(
    rollouts: Rollouts, scoring: Scoring, benchmark: Benchmark
) -> dict[str, tuple[Ints, tuple[str, ...]]]:
    """Each field that describes tasks as a code for every counted row (-1: none), and its labels."""
    result: dict[str, tuple[Ints, tuple[str, ...]]] = {}
    seen: set[bytes] = set()
    for name in (benchmark.slices or _candidates(rollouts)) if scoring.n.size else ():
        column = rollouts.fields.get(name)
        groups = None if column is None else _groups(column, scoring)
        if groups is not None and (benchmark.slices or _describes_tasks(groups, seen)):
            codes = np.full(scoring.n.size, -1, np.int64)
            codes[groups.tasks] = groups.value
            result[name] = np.repeat(codes, scoring.n), groups.labels
    return result


def gaps(rollouts: Rollouts, scoring: Scoring, benchmark: Benchmark) -> Iterator[Gap]:
    """The declared slices that could not be made, and why."""
    for name in benchmark.slices:
        column = rollouts.fields.get(name)
        if column is None:
            yield Gap(f"slices by {name}", "no row has this field")
        elif scoring.n.size and _groups(column, scoring) is None:
            why = f"it changes within tasks, or has not {MIN_VALUES} to {MAX_VALUES} short values"
            yield Gap(f"slices by {name}", why)


def _candidates(rollouts: Rollouts) -> list[str]:
    """The fields that may describe tasks; short names first, so that an alias deeper down goes."""
    paths = ((name, name.lower().split(".")) for name in rollouts.fields)
    names = (
        name for name, path in paths
        if name in rollouts.input_fields or (path[-1] in METADATA and PARENTS.issuperset(path[:-1]))
    )  # fmt: skip
    return sorted(names, key=lambda name: (name.count("."), name))


class Groups(NamedTuple):
    """The tasks that have a value of a field, by value."""

    labels: tuple[str, ...]
    tasks: Ints  # positions in the arrays of `Scoring`
    value: Ints  # into `labels`, for each of `tasks`


def _groups(column: Column, scoring: Scoring) -> Groups | None:
    """The values of the tasks; None where the field is no small set of values or changes within tasks."""
    first = scoring.rows[scoring.starts]
    texts, number = np.bincount(column.code[first] + 1)[1:], column.number[first]
    # how many values there are, roughly: enough to turn ids and free text away early
    if np.count_nonzero(texts) + np.unique(number[~np.isnan(number)]).size > MAX_VALUES:
        return None
    if (result := _row_values(column, scoring.rows)) is None:
        return None
    value, labels = result
    # Rows that broke off early may lack the field; the other repeats still tell.
    highest = np.maximum.reduceat(value, scoring.starts)
    lowest = np.minimum.reduceat(np.where(value < 0, len(labels), value), scoring.starts)
    has_value, is_constant = highest >= 0, highest == lowest
    if not has_value.any() or np.count_nonzero(is_constant) < CONSTANT_SHARE * np.count_nonzero(has_value):
        return None
    tasks = np.flatnonzero(is_constant)
    remainder, place = np.unique(highest[tasks], return_inverse=True)
    if not MIN_VALUES <= remainder.size <= MAX_VALUES:
        return None
    # Codes of texts follow the rows; labels are sorted so that the order of rows never shows.
    keys = [(0, labels[code]) if code < len(column.texts) else (code, "") for code in remainder.tolist()]
    order = sorted(range(remainder.size), key=keys.__getitem__)
    return Groups(tuple(labels[remainder[i]] for i in order), tasks, np.argsort(order)[place])


def _row_values(column: Column, rows: Ints) -> tuple[Ints, list[str]] | None:
    """A code and its label for each row, -1 without one; None if the field holds more than short texts, bools and small whole numbers."""
    kind, number = column.kind[rows], column.number[rows]
    is_bool, is_number, is_text = kind == BOOL, kind == NUMBER, kind == TEXT
    whole = number[is_number]
    if np.any(kind > TEXT) or np.any(column.code[rows][is_text] < 0):
        return None
    if not np.all((whole == np.floor(whole)) & (np.abs(whole) <= MAX_INT)):
        return None
    distinct = np.unique(whole)
    if distinct.size > MAX_VALUES:
        return None
    value = np.where(is_text, column.code[rows], -1).astype(np.int64)
    labels = [*column.texts, "false", "true", *(str(int(each)) for each in distinct)]
    if is_bool.any():
        value[is_bool] = len(column.texts) + number[is_bool].astype(np.int64)
    if whole.size:
        value[is_number] = len(column.texts) + 2 + np.searchsorted(distinct, whole)
    return value, labels


def _describes_tasks(groups: Groups, seen: set[bytes]) -> bool:
    """Whether a field nobody declared is worth a table: no id, no alias."""
    if 2 * len(groups.labels) > groups.tasks.size:
        return False
    # Two fields that part the tasks alike are one; the order of first appearance names the parting.
    _, first, place = np.unique(groups.value, return_index=True, return_inverse=True)
    parting = np.argsort(np.argsort(first))[place].tobytes() + groups.tasks.tobytes()
    if parting in seen:
        return False
    seen.add(parting)
    return True


_ANSWERS = ("extracted_answer", "predicted_answer", "parsed_option", "final_answer", "predicted_value")


class Draft(NamedTuple):
    text: str  # of a `blade.toml`
    facts: dict[str, Any]  # the same for a program


def draft(rollouts: Rollouts, scoring: Scoring) -> Draft:
    """Draft what the rows suggest; a person confirms or deletes each line."""
    columns = rollouts.fields
    ids = [name for name in ID_FIELDS if name in columns and _tells_tasks_apart(columns[name], rollouts)]
    stages = [(name, _support(columns[name], scoring)) for name in sorted(columns) if _is_stage(columns[name])]
    facts = {
        "name": rollouts.run,
        "pass_threshold": scoring.threshold if scoring.has_pass_rate else None,
        "reward_kind": str(scoring.reward_kind),
        "task_id": ids[0] if ids else None,
        "answer": next((name for name in _ANSWERS if name in columns), None),
        "slices": fields(rollouts, scoring, Benchmark()),
        "stages": [{"name": name, "field": name, "equals": True, "support": support} for name, support in stages],
    }
    return Draft("\n".join(_lines(facts, scoring)) + "\n", facts)


def _lines(facts: dict[str, Any], scoring: Scoring) -> list[str]:
    """Write the file, with what the rows show in comments."""
    lines = [
        "# Benchmark facts, drafted from the rows. Check every line and delete what is wrong.",
        f"# name = {_quoted(facts['name'])}  # of the benchmark",
        "",
        f"# rewards are {facts['reward_kind']} over {scoring.rows.size:,} rows",
    ]
    if facts["pass_threshold"] is None:
        lines += ["# no pass rate without a threshold: rewards leave [0, 1] or never vary", "# pass_threshold = 1.0"]
    else:
        lines.append(f"pass_threshold = {facts['pass_threshold']!r}")
    for key, why in (("task_id", "one value per task"), ("answer", "votes of majority_at_k")):
        if facts[key]:
            lines.append(f"{key} = {_quoted(facts[key])}  # {why}")
    lines.append(f"slices = {_quoted(facts['slices'])}")
    for stage in facts["stages"]:
        names = [f"{key} = {_quoted(stage[key])}" for key in ("name", "field")]
        lines += ["", f"# {stage['support']}", "[[stages]]", *names, "equals = true"]
    return lines


def _quoted(value: Any) -> str:
    """Write a text or a list of texts as TOML does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids it, JSON does not


def _tells_tasks_apart(column: Column, rollouts: Rollouts) -> bool:
    """Tell whether there is one value per task, another for each."""
    first = np.unique(rollouts.task, return_index=True)[1]
    values = column.hash[first]
    steady = (column.hash == values[np.searchsorted(np.unique(rollouts.task), rollouts.task)]).all()
    return bool(steady and (values != 0).all() and len(np.unique(values)) == len(values))


def _is_stage(column: Column) -> bool:
    """Tell whether a field can be a stage of the workflow: yes or no in most rows, and both occur."""
    is_bool = column.kind == BOOL
    return bool(is_bool.mean() > 0.5) and len(np.unique(column.number[is_bool])) == 2


def _support(column: Column, scoring: Scoring) -> str:
    """Count how often the field is true, and how often such rows pass."""
    is_bool, number = column.kind[scoring.rows] == BOOL, column.number[scoring.rows]
    yes, no = is_bool & (number == 1), is_bool & (number == 0)
    text = f"true in {int(yes.sum()):,} of {int((yes | no).sum()):,} rows"
    if not scoring.has_pass_rate or scoring.reward_kind is RewardKind.CONSTANT:
        return text
    passed = scoring.row_passed
    with_it, without = int((passed & yes).sum()), int((passed & no).sum())
    return f"{text}; {with_it:,} of these pass, {without:,} of the {int(no.sum()):,} others"

"""Draft the benchmark facts of a run from its columns, each with its support."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from blade.measure.scoring import Scoring
from blade.measure.slices import fields as slice_fields
from blade.model import ID_FIELDS, Benchmark, Column, RewardKind, Rollouts

_BOOL = 2
_ANSWERS = ("extracted_answer", "predicted_answer", "parsed_option", "final_answer", "predicted_value")


@dataclass(frozen=True)
class Draft:
    """The text of a `blade.toml` and the same facts for a program."""

    text: str
    facts: dict[str, Any]


def draft(rollouts: Rollouts, scoring: Scoring) -> Draft:
    """Draft what the rows suggest; a person confirms or deletes each line."""
    fields = rollouts.fields
    ids = [name for name in ID_FIELDS if name in fields and _tells_tasks_apart(fields[name], rollouts)]
    answer = next((name for name in _ANSWERS if name in fields), None)
    sliced = slice_fields(rollouts, scoring, Benchmark())
    stages = [(name, _support(fields[name], scoring)) for name in sorted(fields) if _is_stage(fields[name])]
    facts = {
        "name": rollouts.run,
        "pass_threshold": scoring.threshold if scoring.has_pass_rate else None,
        "reward_kind": str(scoring.reward_kind),
        "task_id": ids[0] if ids else None,
        "answer": answer,
        "slices": sliced,
        "stages": [
            {"name": name, "field": name, "equals": True, "support": support} for name, support in stages
        ],
    }
    return Draft("\n".join(_lines(facts, scoring)) + "\n", facts)


def _lines(facts: dict[str, Any], scoring: Scoring) -> list[str]:
    """Write the file, with what the rows show in comments."""
    found = [
        "# Benchmark facts, drafted from the rows. Check every line and delete what is wrong.",
        f"# name = {_quoted(facts['name'])}  # of the benchmark",
        "",
    ]
    found.append(f"# rewards are {facts['reward_kind']} over {scoring.rows.size:,} rows")
    if facts["pass_threshold"] is None:
        found.append("# no pass rate without a threshold: rewards leave [0, 1] or never vary")
        found.append("# pass_threshold = 1.0")
    else:
        found.append(f"pass_threshold = {facts['pass_threshold']!r}")
    for key, why in (("task_id", "one value per task"), ("answer", "votes of majority_at_k")):
        if facts[key]:
            found.append(f"{key} = {_quoted(facts[key])}  # {why}")
    found.append(f"slices = {_quoted(facts['slices'])}")
    for stage in facts["stages"]:
        found += [
            "",
            f"# {stage['support']}",
            "[[stages]]",
            f"name = {_quoted(stage['name'])}",
            f"field = {_quoted(stage['field'])}",
            "equals = true",
        ]
    return found


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
    is_bool = column.kind == _BOOL
    return bool(is_bool.mean() > 0.5) and len(np.unique(column.number[is_bool])) == 2


def _support(column: Column, scoring: Scoring) -> str:
    """Count how often the field is true, and how often such rows pass."""
    yes = (column.kind == _BOOL)[scoring.rows] & (column.number[scoring.rows] == 1)
    no = (column.kind == _BOOL)[scoring.rows] & (column.number[scoring.rows] == 0)
    text = f"true in {int(yes.sum()):,} of {int((yes | no).sum()):,} rows"
    if not scoring.has_pass_rate or scoring.reward_kind is RewardKind.CONSTANT:
        return text
    passed = scoring.row_passed
    with_it, without = int((passed & yes).sum()), int((passed & no).sum())
    return f"{text}; {with_it:,} of these pass, {without:,} of the {int(no.sum()):,} others"

"""Turn the columns of a run into a draft of its benchmark facts, each with its support."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from blade.measure.meanings import ANY_VALUE, KNOWN, meanings
from blade.measure.scoring import Scoring
from blade.measure.slices import slices
from blade.model import ID_FIELDS, Benchmark, Column, Meaning, RewardKind, Rollouts

_BOOL = 2
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_ANSWERS = ("extracted_answer", "predicted_answer", "parsed_option", "final_answer", "predicted_value")


@dataclass(frozen=True)
class Draft:
    """The text of a `blade.toml` and the same facts for a program."""

    text: str
    facts: dict[str, Any]


def draft(rollouts: Rollouts, scoring: Scoring) -> Draft:
    """What the rows suggest; a person confirms or strikes each line."""
    fields = rollouts.fields
    ids = [name for name in ID_FIELDS if name in fields and _tells_tasks_apart(fields[name], rollouts)]
    answer = next((name for name in _ANSWERS if name in fields), None)
    sliced = list(dict.fromkeys(entry.field for entry in slices(rollouts, scoring, Benchmark())))
    stages = [(name, _support(fields[name], scoring)) for name in sorted(fields) if _is_stage(fields[name])]
    codes = [_code(one) for one in meanings(rollouts, scoring, Benchmark()) if one.field in fields]
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
        "codes": codes,
    }
    return Draft("\n".join(_lines(facts, scoring)) + "\n", facts)


def _lines(facts: dict[str, Any], scoring: Scoring) -> list[str]:
    """The file, with what was seen in comments."""
    found = [
        "# Benchmark facts, drafted from the rows. Check every line; strike what is wrong.",
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
    for code in facts["codes"]:
        found += _code_lines(code)
    return found


def _code(one: Meaning) -> dict[str, Any]:
    """What a value of a verifier field means, with how sure that is."""
    rows, tasks = _counted(one.n_rollouts, "row"), _counted(one.n_tasks, "task")
    text = f"{rows} of {tasks}; {one.n_passed:,} of them pass"
    return {
        "field": one.field,
        "equals": None if one.value == ANY_VALUE else one.value,
        "cause": None if one.cause is None else str(one.cause),
        "mode": one.mode,
        "origin": one.origin,
        "support": text,
    }


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _code_lines(code: dict[str, Any]) -> list[str]:
    """A known code that names a cause stands live; what is only proposed waits in comments."""
    field, value = code["field"], code["equals"]
    if value in (None, "null"):  # a field as a whole, or a value that TOML cannot write
        shown = field if value is None else f"{field} = null"
        return ["", _comment(f"{shown}: {code['mode']} ({code['support']})")]
    if code["origin"] == KNOWN and code["cause"] is None:
        return []
    equals = value if value in ("true", "false") or _NUMBER.fullmatch(value) else _quoted(value)
    cause = code["cause"] or "undetermined"
    lines = [
        "[[codes]]",
        f"field = {_quoted(field)}",
        f"equals = {equals}",
        f"cause = {_quoted(cause)}",
        f"mode = {_quoted(code['mode'])}",
    ]
    if code["origin"] != KNOWN:
        lines = [_comment(line) for line in lines]
    told = "known" if code["origin"] == KNOWN else "proposed: confirm it by striking the signs below"
    return ["", _comment(f"{told}; {code['support']}"), *lines]


def _comment(text: str) -> str:
    """A comment of TOML; control characters end or break one."""
    return "# " + "".join(sign if sign.isprintable() else "?" for sign in text)


def _quoted(value: Any) -> str:
    """A text or a list of texts as TOML writes them."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids it, JSON does not


def _tells_tasks_apart(column: Column, rollouts: Rollouts) -> bool:
    """Is there one value per task, another for each."""
    first = np.unique(rollouts.task, return_index=True)[1]
    values = column.hash[first]
    steady = (column.hash == values[np.searchsorted(np.unique(rollouts.task), rollouts.task)]).all()
    return bool(steady and (values != 0).all() and len(np.unique(values)) == len(values))


def _is_stage(column: Column) -> bool:
    """A yes or no that both occur can be a stage of the workflow."""
    told = column.kind == _BOOL
    return bool(told.mean() > 0.5) and len(np.unique(column.number[told])) == 2


def _support(column: Column, scoring: Scoring) -> str:
    """How often the field is true, and how often such rows pass."""
    yes = (column.kind == _BOOL)[scoring.rows] & (column.number[scoring.rows] == 1)
    no = (column.kind == _BOOL)[scoring.rows] & (column.number[scoring.rows] == 0)
    text = f"true in {int(yes.sum()):,} of {int((yes | no).sum()):,} rows"
    if not scoring.has_pass_rate or scoring.reward_kind is RewardKind.CONSTANT:
        return text
    passed = scoring.row_passed
    with_it, without = int((passed & yes).sum()), int((passed & no).sum())
    return f"{text}; {with_it:,} of these pass, {without:,} of the {int(no.sum()):,} others"

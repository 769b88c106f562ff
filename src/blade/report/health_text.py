"""Say whether the evaluation itself is sound: the health of each run as text and as JSON."""

from __future__ import annotations

import json
import math
from textwrap import wrap
from typing import Any

import msgspec

from blade import hostile
from blade.model import Cause, Evidence, Health, Level, Report
from blade.report import quantities, words
from blade.report.facts import Facts, facts
from blade.report.places import place
from blade.report.results import SENSITIVITY, SUSPECT, doubted
from blade.report.sections import short
from blade.report.wire import escaped

SCHEMA = "blade.health/1"
COLUMNS = 100
MAX_TASKS = 20  # of the tasks in doubt
QUOTE = 210
MARKS = {Level.PROBLEM: "!", Level.WARNING: "-", Level.INFO: "."}
LEGEND = "! problem, - warning, . worth knowing. `blade show RUN TASK/REPEAT` opens a rollout."


def render(report: Report) -> str:
    """Every flag with its counts and a quotation, the gravest first; plain text without colour."""
    found: list[str] = []
    for one in facts(report):
        found += [*_run(one), ""]
    found.append(LEGEND)
    return "\n".join(line.rstrip() for line in found) + "\n"


def _run(facts: Facts) -> list[str]:
    levels = facts.levels()
    counts = [
        words.count(levels[Level.PROBLEM], "problem"),
        words.count(levels[Level.WARNING], "warning"),
        words.count(levels[Level.INFO], "note"),
    ]
    score = short(quantities.with_interval(facts.score, facts.is_rate))
    n = short(quantities.n_of(facts.score))
    found = [
        f"Health of {hostile.line(facts.run.name, 70)}: {', '.join(counts)}",
        f"{quantities.label(facts.score)} {score}, n = {n}, {words.count(facts.run.n_rollouts, 'rollout')}",
        "",
    ]
    flags, tasks = doubted(facts)
    for finding in _artifacts(facts):
        found += _entry("!", finding.detector, finding.summary, finding.evidence)
    for flag in flags:
        found += _entry(MARKS[flag.level], flag.flag, flag.text, flag.evidence)
    if not flags and not _artifacts(facts):
        found.append("No flag was raised.")
    if tasks:
        found += ["", "Tasks in doubt:"]
        for flag in tasks[:MAX_TASKS]:
            found += _entry(
                "-" if flag.flag == SUSPECT else ".", f"task {flag.task}", flag.text, flag.evidence
            )
        left = len(tasks) - MAX_TASKS
        found += [f"  {words.count(left, 'more task')}: see --json"] if left > 0 else []
    return found


def _artifacts(facts: Facts) -> list[Any]:
    """Findings that the data itself is at fault, such as two tasks under one index."""
    return [one for one in facts.findings if one.cause is Cause.DATA_ARTIFACT]


def _entry(mark: str, name: str, text: str, evidence: tuple[Evidence, ...]) -> list[str]:
    lines = wrap(f"{hostile.line(name, 60)}: {hostile.line(text, 1200)}", COLUMNS - 2, break_on_hyphens=False)
    found = [f"{mark} {lines[0]}", *(f"    {line}" for line in lines[1:])]
    quoted = next((one for one in evidence if one.quote), None)
    if quoted is not None:
        where = f"step {quoted.step}" if quoted.step is not None else hostile.line(quoted.field or "", 40)
        address = f"{hostile.line(place(quoted.task, quoted.repeat), 40)}, {where}"
        found.append(f"    {address}: {hostile.line(quoted.quote or '', QUOTE)!r}")
    return found


def as_json(report: Report) -> str:
    """The health of each run: its flags, its tasks in doubt, and its score without them."""
    document = {
        "schema": SCHEMA,
        "made_by": dict(report.made_by),
        "runs": [_document(one) for one in facts(report)],
    }
    return escaped(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)) + "\n"


def _document(facts: Facts) -> dict[str, Any]:
    flags, tasks = doubted(facts)
    without = next((flag for flag in facts.health if flag.flag == SENSITIVITY), None)
    return {
        "name": facts.run.name,
        "score_name": facts.run.score_name,
        "score": _number(facts.run.score),
        "n_tasks": facts.run.n_tasks,
        "n_rollouts": facts.run.n_rollouts,
        "levels": {level.value: n for level, n in facts.levels().items()},
        "flags": [_flag(flag) for flag in flags],
        "findings": [msgspec.to_builtins(one) for one in _artifacts(facts)],
        "suspects": [_flag(flag) for flag in tasks if flag.flag == SUSPECT],
        "to_review": [_flag(flag) for flag in tasks if flag.flag != SUSPECT],
        "score_without_suspects": _flag(without) if without is not None else None,
    }


def _flag(flag: Health) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(flag)
    return {**told, "value": _number(flag.value), "n": int(flag.n)}


def _number(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None

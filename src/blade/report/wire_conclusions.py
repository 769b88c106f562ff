"""Write trust, groups, causes and advice in the wire format `blade.report/2`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from blade.model import (
    Agreement,
    Attribution,
    Evidence,
    Gain,
    Group,
    Judgement,
    Loss,
    Recommendation,
    RunCause,
    TaskMatrix,
    Trust,
    Unexplained,
)


def number(value: float | None) -> float | None:
    # JSON has no nan and no infinity; adding 0.0 turns -0.0 into 0.0.
    return float(value) + 0.0 if value is not None and math.isfinite(value) else None


def evidence(found: Evidence) -> dict[str, Any]:
    return {
        "run": found.run,
        "task": found.task,
        "repeat": int(found.repeat) if found.repeat is not None else None,
        "step": int(found.step) if found.step is not None else None,  # index into the output items
        "field": found.field,  # JSON path into the row; at most one of step and field is set
        "quote": found.quote,  # a substring of that place; null: the row is absent
        **({"redacted": True} if found.is_redacted else {}),  # a substring outside its placeholders
    }


def _all(found: tuple[Evidence, ...]) -> list[dict[str, Any]]:
    return [evidence(one) for one in found]


def trust(found: Trust) -> dict[str, Any]:
    return {
        "run": found.run,
        "level": found.level,  # alarm: the score cannot be used as it stands; warning; note
        "label": found.label.value if found.label is not None else None,  # TI, IR, DA
        "text": found.text,
        "rows": int(found.rows),  # rows concerned
        "query": found.query,  # a SELECT that gives them
        "fix": found.fix,
    }


def group(found: Group) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": found.run,
        "rung": found.rung,  # the question of the ladder that it answers
        "label": found.label.value,  # KG, UK, BI, TI, IR, DA, undetermined
        "confidence": found.confidence.value,  # proved, likely, unsure
        "name": found.name,
        "text": found.text,
        "points": number(found.points),  # of the score; groups and unexplained add up to 1 - score
        "rows": int(found.rows),  # failing rows
        "tasks": int(found.tasks),
        "passed_rows": int(found.passed_rows),  # passing rows that show the same fact
        "query": found.query,  # a SELECT that gives the failing rows: run, task, repeat, row
        "examples": list(found.examples),  # TASK/REPEAT
        "quote": _quote(found.quote),
        "why_label": found.why_label,
        "against": list(found.against),
        "consequences": list(found.consequences),
        "fix": found.fix,
        "gain": _gain(found.gain),  # null: not identified
        "most": number(found.most),  # upper bound of the gain: all of these rows passed
    }


def _quote(found: Evidence | None) -> dict[str, Any] | None:
    if found is None:
        return None
    place = {"step": found.step} if found.step is not None else {"field": found.field}
    return {"task": found.task, "repeat": found.repeat, **place, "text": found.quote}


def _gain(found: Gain | None) -> dict[str, Any] | None:
    if found is None:
        return None
    ends = {name: number(getattr(found, name)) for name in ("low", "point", "high")}
    return {**ends, "level": number(found.level)}


def unexplained(found: Unexplained) -> dict[str, Any]:
    return {"run": found.run, "points": number(found.points), "rows": int(found.rows), "query": found.query}


def task_matrix(found: TaskMatrix) -> dict[str, Any]:
    return {
        "tasks": list(found.tasks),
        "runs": list(found.runs),
        "passes": [[number(value) for value in row] for row in found.passes],  # by task, by run
        "never_passed": list(found.never_passed),
        "passed_by_one": list(found.passed_by_one),
        "gold_differs": list(found.gold_differs),
        "gold_to_review": list(found.gold_to_review),
        "misfit_runs": list(found.misfit_runs),
    }


def attribution(found: Attribution) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": found.run,
        "task": found.task,
        "group": found.group or None,  # id of the group; null: unexplained, or judged otherwise
        "cause": found.cause.value,  # KG, UK, BI, TI, IR, DA, undetermined
        "confidence": found.confidence.value,  # proved, likely, unsure
        "mode": found.mode,  # the name of the group
        "text": found.mechanism,  # what the task's own rows show
        "repeat": int(found.repeat) if found.repeat is not None else None,  # the rollout that shows it
        "step": int(found.step) if found.step is not None else None,
        "steps": [
            {"step": int(blame.step), "weight": number(blame.weight), "reason": blame.reason}
            for blame in found.steps
        ],  # ranked
        "grounds": list(found.grounds),
        "against": list(found.against),
        "lost": number(found.lost),  # points of score this task loses
        "judged_by": found.judged_by or None,  # who gave the cause; null: the engine
        "proposed": found.proposed.value if found.proposed is not None else None,  # the engine's, if judged
        "proposed_confidence": found.proposed_confidence.value
        if found.proposed_confidence is not None
        else None,
        "evidence": _all(found.evidence),
    }


def judgement(run: str, found: Judgement) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": run,
        "task": found.task,
        "cause": found.cause.value,  # KG, UK, BI, TI, IR, DA, undetermined
        "mode": found.mode,  # a name for what happened; may be empty
        "mechanism": found.mechanism,  # what happened, in a sentence
        "by": found.by,
        "at": found.at,  # in UTC
        "proposed": found.proposed.value if found.proposed is not None else None,  # by the engine, then
        "condition": found.condition,  # that the rollout meets, where it was judged by one; else empty
        "evidence": _all(found.shown(run)),  # none where the condition alone stands for it
    }


def agreement(found: Agreement) -> dict[str, Any]:
    return {
        "run": found.run,
        "first": found.first,  # an author, or engine
        "second": found.second,
        "n": int(found.n),  # tasks that both labelled
        "agreed": int(found.agreed),
        "kappa": number(found.kappa),  # Cohen's; null: chance alone decides
        "confusion": [
            {"first": one.value, "second": other.value, "n": int(n)} for one, other, n in found.confusion
        ],
    }


def loss(found: Loss) -> dict[str, Any]:
    return {
        "run": found.run,
        "cause": found.cause.value,  # KG, UK, BI, TI, IR, DA, undetermined
        "mode": found.mode,
        "lost": number(found.lost),  # points of score; they add up to 1 - score
    }


def run_cause(found: RunCause) -> dict[str, Any]:
    return {
        "run": found.run,
        "cause": found.cause.value,
        "mode": found.mode,
        "text": found.text,
        "n_rollouts": int(found.n_rollouts),
        "lost": number(found.lost),  # points of score; 0: it distorts without losing
        "evidence": _all(found.evidence),
    }


def recommendation(found: Recommendation) -> dict[str, Any]:
    return {
        "rank": int(found.rank),
        "run": found.run,
        "group": found.group or None,  # id of the group it repairs
        "action": found.action,
        "cause": found.cause.value,
        "mode": found.mode,
        "gain": _gain(found.gain),  # points of score; null: not identified
        "most": number(found.most),  # upper bound
        "is_measurement": bool(found.is_measurement),  # repairs the measurement rather than the model
        "basis": found.basis,  # how the gain was estimated, in words
        "tasks": list(found.tasks),
        "evidence": _all(found.evidence),
    }


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: mappings and lists of texts, whole numbers and finite numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return number(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)

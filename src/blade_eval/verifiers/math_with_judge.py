"""Judge a mathematical answer by math-verify, and by a model where that finds no equality."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from blade.answers import last_box
from blade_eval import judge_model, limited, replies, task_row
from blade_eval.environment import Attempt, Environment, Row, required

LONGEST = 2000  # characters kept of an answer that could not be computed
COMPUTING = 5  # seconds of processor time for one comparison


def environment(settings: Mapping[str, Any]) -> Environment:
    """Mathematics; with `should_use_judge` a model is asked about what the library cannot equate."""
    required("math_verify", "math-verify", "math_with_judge")
    judge = judge_model.judge(settings, "math_with_judge") if settings.get("should_use_judge") else None
    seconds = int(settings.get("verify_timeout_seconds") or COMPUTING)
    return Environment(
        "math_with_judge", partial(verify, judge, seconds), scores=scores,
        answer=lambda row: row.get("extracted_answer"),
    )


async def verify(judge: judge_model.Judge | None, seconds: int, attempt: Attempt) -> Row:
    """The library's word; where it is no, and there is something to compare, the judge's."""
    expected = str(task_row.needed(attempt.row, "expected_answer"))
    if not expected.strip():
        raise task_row.faulty("the expected answer is empty")
    text = replies.answer(attempt.response)
    comparison = await compared(expected, text, seconds)
    if not comparison["readable"] and judge is None:
        raise task_row.faulty(f"math-verify cannot read the expected answer {expected[:80]!r}")
    fields: Row = {
        "reward": float(comparison["equal"]), "expected_answer": expected, "extracted_answer": comparison["extracted"],
        "library_reward": float(comparison["equal"]), "judge_evaluations": None,
    }
    if "reason" in comparison:
        fields["failure_reason"] = comparison["reason"]
    if comparison["equal"] or judge is None or not comparison["extracted"] or "reason" in comparison:
        return fields
    return {**fields, **await judged(judge, attempt, expected, comparison["extracted"])}


async def compared(expected: str, text: str, seconds: int) -> Row:
    """The comparison; what cannot be computed within the limits is a wrong answer, with the reason."""
    if not text:
        return {"equal": False, "extracted": None, "readable": True}
    try:
        comparison: Row = await limited.call("blade_eval.symbolic:compared", expected, text, seconds=seconds)
        return comparison
    except limited.TooCostly as error:
        reason = f"the answer cannot be compared: {error}"
    try:
        sound = await limited.call("blade_eval.symbolic:readable", expected, seconds=seconds)
    except limited.TooCostly as error:
        raise task_row.faulty(f"the expected answer cannot be computed: {error}") from None
    box = last_box(text)
    extracted = box[1][:LONGEST] if box else None
    return {"equal": False, "extracted": extracted, "readable": sound, "reason": reason}


async def judged(judge: judge_model.Judge, attempt: Attempt, expected: str, extracted: str) -> Row:
    """Both orders must agree on equivalence: a judge that favours a place is not believed."""
    question = task_row.question(attempt.row)
    answers = [judge_model.fenced(text, judge.labels) for text in (expected, extracted)]
    prompts = [
        {"question": question, "first_answer": first, "second_answer": second}
        for first, second in (answers, answers[::-1])
    ]
    count, evaluations = await judge_model.agreement(attempt, judge, prompts)
    return {"reward": float(count == len(prompts)), "judge_evaluations": evaluations}


def scores(row: Row) -> dict[str, float]:
    """`symbolic_accuracy` of every row, `judge_accuracy` of those that a judge has seen."""
    named = {"symbolic_accuracy": float(row.get("library_reward") or 0.0)}
    if row.get("judge_evaluations"):
        named["judge_accuracy"] = float(row.get("reward") or 0.0)
    return named

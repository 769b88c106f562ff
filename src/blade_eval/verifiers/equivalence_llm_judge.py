"""Judge an answer by asking a model whether it means the same as the expected one.

The answer is evidence: it stands between marks that it cannot close, and labels of verdicts are taken out of
it, so that a judge who quotes it quotes no verdict. A judge without a verdict is asked once more; after that
nothing was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from blade_eval import judge_model, replies, task_row
from blade_eval.environment import Attempt, Environment, Row


@dataclass(frozen=True)
class Rules:
    """What the settings say beyond whom to ask."""

    check_twice_swap: bool = False
    reward_if_swap_fails: float = 0.0
    use_per_record_regex: bool = True
    check_full_generation_on_fail: bool = True
    reward_if_full_generation_succeeds: float = 0.5
    extraction_length_threshold: int | None = 120
    max_answer_chars: int | None = None


def environment(settings: Mapping[str, Any]) -> Environment:
    """Equivalence by a judge; the settings are NeMo Gym's."""
    labels = (
        str(settings.get("judge_equal_label") or "[[A=B]]"), str(settings.get("judge_not_equal_label") or "[[A!=B]]")
    )  # fmt: skip
    rules = Rules(**{name: settings[name] for name in Rules.__dataclass_fields__ if name in settings})
    judge = judge_model.judge(settings, "equivalence_llm_judge", labels)
    return Environment("equivalence_llm_judge", partial(verify, judge, rules))


async def verify(judge: judge_model.Judge, rules: Rules, attempt: Attempt) -> Row:
    """The judge's word on the last message, or on the part of it that the row's expression takes out."""
    expected = str(task_row.needed(attempt.row, "expected_answer"))
    if not expected.strip():
        raise task_row.faulty("the expected answer is empty")
    text = replies.answer(attempt.response)
    fields: Row = {"reward": 0.0, "expected_answer": expected, "judge_evaluations": []}
    if not text:
        return fields
    if rules.max_answer_chars is not None and len(text) > rules.max_answer_chars:
        return {**fields, "failure_reason": f"final_answer_too_long: {len(text)} characters"}
    part, credit = await extracted(rules, attempt.row, expected, text)
    if part is None:
        return fields
    prompts = [prompt(judge, attempt.row, expected, part)]
    prompts += [prompt(judge, attempt.row, part, expected)] if rules.check_twice_swap else []
    count, evaluations = await judge_model.agreement(attempt, judge, prompts)
    reward = 1.0 if count == len(prompts) else rules.reward_if_swap_fails if count else 0.0
    return {**fields, "reward": credit if reward == 1.0 else reward, "judge_evaluations": evaluations}


async def extracted(rules: Rules, row: Row, expected: str, text: str) -> tuple[str | None, float]:
    """What is compared, and what equivalence is worth: less where the form that was asked for is missing."""
    own = task_row.pattern(row) if rules.use_per_record_regex else None
    most = rules.extraction_length_threshold
    if own is None or (most is not None and len(expected) > most):
        return text, 1.0
    if match := await task_row.last_match(own, text):
        return match, 1.0
    if rules.check_full_generation_on_fail:
        return text, rules.reward_if_full_generation_succeeds
    return None, 0.0


def prompt(judge: judge_model.Judge, row: Row, expected: str, generated: str) -> dict[str, str]:
    return {
        "question": str(task_row.field(row, "question") or task_row.question(row)),
        "expected_answer": judge_model.fenced(expected, judge.labels),
        "generated_answer": judge_model.fenced(generated, judge.labels),
        "equal_label": judge.labels[0], "not_equal_label": judge.labels[1],
    }

"""Judge whether an answer keeps the instructions of its task, by the rules of IFEval.

Strict is the answer as it stands; loose forgives an opening line, a closing line and asterisks, as published.
The reward is strict: 1 when all are kept, or their share where `grading_mode` is `fraction`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Environment, Row
from blade_eval.verifiers.instruction_following.rules import RULES


def environment(settings: Mapping[str, Any]) -> Environment:
    """Instruction following; rows may name their own `grading_mode`."""
    usual = str(settings.get("grading_mode") or "binary")
    return Environment("instruction_following", partial(verify, usual), scores=scores)


async def verify(usual: str, attempt: Attempt) -> Row:
    """Which instructions are kept, strictly and loosely."""
    names = task_row.needed(attempt.row, "instruction_id_list")
    details = task_row.field(attempt.row, "kwargs", [])
    mode = str(task_row.field(attempt.row, "grading_mode") or usual)
    if not isinstance(names, list) or not names or not isinstance(details, list):
        raise task_row.faulty("instruction_id_list and kwargs are not lists")
    if len(details) not in (0, len(names)):
        raise task_row.faulty(f"{len(names)} instructions have {len(details)} sets of details")
    if mode not in ("binary", "fraction"):
        raise task_row.faulty(f"the grading mode {mode!r} is neither binary nor fraction")
    details = details or [{}] * len(names)
    text = replies.answer(attempt.response)
    strict = [kept(name, given, [text]) for name, given in zip(names, details, strict=True)]
    loose = [kept(name, given, loosened(text)) for name, given in zip(names, details, strict=True)]
    return {
        "reward": float(all(strict)) if mode == "binary" else sum(strict) / len(strict),
        "follow_all_instructions": all(strict), "follow_instruction_list": strict,
        "follow_all_instructions_loose": all(loose), "follow_instruction_list_loose": loose,
    }


def scores(row: Row) -> dict[str, float]:
    """The four accuracies that are published: of prompts and of instructions, strict and loose."""
    named = {}
    for how, suffix in (("strict", ""), ("loose", "_loose")):
        each = row.get(f"follow_instruction_list{suffix}") or [False]
        named[f"prompt_{how}_accuracy"] = float(bool(row.get(f"follow_all_instructions{suffix}")))
        named[f"instruction_{how}_accuracy"] = sum(map(bool, each)) / len(each)
    return named


def kept(name: Any, details: Any, texts: list[str]) -> bool:
    """Whether any of the texts keeps the instruction; one that says nothing keeps none."""
    rule = RULES.get(name) if isinstance(name, str) else None
    if rule is None:
        raise task_row.faulty(f"no rule is known for the instruction {str(name)[:80]!r}")
    given = {key: value for key, value in (details or {}).items() if value is not None}
    try:
        return any(rule(text, given) for text in texts if text.strip())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise task_row.faulty(f"the details of {name} cannot be used: {type(error).__name__}: {error}") from None


def loosened(text: str) -> list[str]:
    """The eight readings of loose accuracy: without first line, last line, both; and without asterisks."""
    lines = text.split("\n")
    readings = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*readings, *(reading.replace("*", "") for reading in readings)]

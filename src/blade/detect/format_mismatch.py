"""B33: the model answered, and the verifier could not read the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from blade import answers, events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="format_mismatch",
    number="B33",
    rule="A field of the verifier says that no answer could be parsed or extracted, though there is "
    "a final text.",
    cause=Cause.BEHAVIOUR,
    otherwise="TI where the final text gives the expected answer",
    procedural=True,
    needs=("steps",),
    kind="verifier",
    remedy="State the format of the answer in the prompt, or let the parser behind `{detail}` accept "
    "what is plainly the answer.",
    terminal=True,
)

_BAD_IF_TRUE = re.compile(
    r"(?:^|_)(?:(?:parse|parsing|extract|extraction|format)_?(?:failed|failure|error)|unparse?able|no_answer(?:_found)?"
    r"|(?:invalid|bad|wrong)_format|format_violation)$"
)
_BAD_IF_FALSE = re.compile(
    r"(?:^|_)(?:(?:parse|parsing|extract|extraction|format)_?(?:ok|success|successful|succeeded|valid|correct)"
    r"|is_pars(?:e?able|ed)|parsed_ok|valid_format|answer_found|answer_extracted)$"
)
_BAD_IF_EMPTY = re.compile(
    r"^(?:extracted|parsed|predicted|model)_(?:answer|output|choice|option|code|sql|prediction|solution|value)$"
    r"|^(?:extracted|parsed)(?:_model)?_(?:text|result|response)$"
)
_CODES = frozenset(
    "no_sql_extracted no_answer_extracted no_answer_found no_code_block no_code_extracted malformed_choice "
    "format_violation format_error parse_error parse_failure parsing_failed extraction_failed "
    "model_output_invalid schema_check_failed invalid_format unparseable answer_not_found".split()
)
_CODE_FIELDS = frozenset("failure_reason error_mode status failure_mode failure_type outcome verdict".split())
_NO_VALUE = frozenset(("", "none", "null", "nan", "n/a", "[]", "{}", "[invalid]", "invalid"))
_NEAR_END = 300


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Rollouts with a text and a field that says there is no answer in it."""
    unread = [(episode, list(_unread(episode)) if episode.final.strip() else []) for episode in task.episodes]
    # a value that a passing repeat shares says nothing about reading the answer: there the rule fires on all
    for episode, fields in unread:
        told = next(iter(fields), None)
        if told is None or episode.final_step is None:
            continue
        right = _gives(episode.final, task.gold.answer)
        end = f"; it gives the expected answer {task.gold.answer}" if right else ""
        quote = _quotable(episode, told)
        summary = (
            f"The verifier found no answer (`{told}` is {quote}) in a final text of "
            f"{len(episode.final):,} characters{end}."
        )
        place = max(0, len(episode.final) - events.QUOTE)
        said = events.at_step(episode, episode.final_step, place)
        cause = Cause.TASK_OR_VERIFIER if right else None
        field = events.in_field(episode, told)
        yield hit(episode, summary, 3, said, field, detail=told, cause=cause, certain=True)


def _unread(episode: Episode) -> Iterator[str]:
    for field, name, value in row.fields(episode.trace.row):
        lower = name.lower()
        if (
            (value is True and _BAD_IF_TRUE.search(lower))
            or (value is False and _BAD_IF_FALSE.search(lower))
            or (_is_empty(value) and _BAD_IF_EMPTY.search(lower))
            or (lower in _CODE_FIELDS and isinstance(value, str) and value.strip().lower() in _CODES)
        ):
            yield field


def _is_empty(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and value.strip().lower() in _NO_VALUE)


def _quotable(episode: Episode, field: str) -> str:
    told = events.in_field(episode, field, length=40)
    return (told.quote if told is not None else None) or "empty"


def _gives(text: str, gold: str | None) -> bool:
    """Whether a final text gives the expected answer."""
    if gold is None:
        return False
    given = answers.answer_in(text)
    if given is not None and answers.same(given, gold):
        return True
    return len(gold) >= 4 and answers.mentions(text[-_NEAR_END:], gold) >= 0

"""Read from a materialised row what a verifier needs: its own columns and the question."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

import msgspec

from blade_eval import limited
from blade_eval.environment import Row, Unmeasured
from blade_eval.replies import text_of


def field(row: Row, name: str, default: Any = None) -> Any:
    """A column of the task, at the top of the row or in its `verifier_metadata`."""
    if row.get(name) is not None:
        return row[name]
    inner = row.get("verifier_metadata")
    value = inner.get(name) if isinstance(inner, dict) else None
    return default if value is None else value


def needed(row: Row, name: str) -> Any:
    """A column without which nothing can be judged: that it is missing is the task's fault."""
    value = field(row, name)
    if value is None:
        raise faulty(f"the row has no {name}")
    return value


def faulty(reason: str) -> Unmeasured:
    """The task itself cannot be judged, whatever the model says."""
    return Unmeasured("task_invalid", reason, terminal=True)


def opened(value: Any, what: str) -> Any:
    """A column that may stand as its JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError) as error:
        raise faulty(f"{what} not JSON: {error}") from None


def pattern(row: Row) -> str | None:
    """The row's own expression for the answer, `template_metadata.output_regex`."""
    template = field(row, "template_metadata")
    value = template.get("output_regex") if isinstance(template, dict) else None
    return value if isinstance(value, str) and value else None


async def last_match(expression: str, text: str) -> str | None:
    """What an expression of the task finds last in the model's text: together they may not end, which is nothing."""
    try:
        match: str | None = await limited.call("blade_eval.task_row:matched", expression, text, seconds=2)
    except limited.TooCostly:
        return None
    return match


def matched(expression: str, text: str) -> str | None:
    """The first group of the last match, or the match itself."""
    hits = deque(re.finditer(expression, text, re.IGNORECASE), maxlen=1)
    groups = [group for group in (*hits[0].groups(), hits[0][0]) if group is not None] if hits else []
    return groups[0] if groups else None


def question(row: Row) -> str:
    """What the user asked: the text of all user messages of the request."""
    params = row.get("responses_create_params")
    prompt = params.get("input") if isinstance(params, dict) else None
    if isinstance(prompt, str):
        return prompt
    texts = [
        text_of(message.get("content"))
        for message in (prompt if isinstance(prompt, list) else [])
        if isinstance(message, dict) and message.get("role") == "user"
    ]
    return "\n\n".join(text for text in texts if text)

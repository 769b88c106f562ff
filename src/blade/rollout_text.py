"""Sort the fields of a row by what they tell, count and label its steps, read its turns, cut its texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blade.formats.check_records import Failed, failed_checks
from blade.formats.rollout_steps import Told, text_of

FRAMEWORK = ("responses_create_params", "response", "reward")
EMPTY: tuple[Any, ...] = (None, "", [], {})
_STOPS = ("status", "error", "incomplete_details", "stop_reason", "finish_reason")  # of `response`
_UNSAID = ("arguments", "tokens")  # members of a step: the arguments of a call are its text
_NAME = 80  # characters of a field's name that say what it holds
# Names only decide the order in which fields are shown: one that no pattern knows is shown among what was recorded.
_KEYS = re.compile(r"_?ng_|(?:agent_ref|skills_ref|uuid|id|name|task_name|\w+_id)$")
_TASK = re.compile(r"instruction|^question|^problem|^prompt|^task_(?:purpose|description)|^scenario|^goal$|^input$|^query$")
_GIVEN = set(
    "trajectory messages subagent_trajectories delegated_response osworld_steps tools input judge_prompt".split()
)
_EXPECTED = re.compile(r"expected|^gold|ground_truth|^gt_|reference_|^target|^answer$|^solution$|answer_key")
TELLING = re.compile(
    r"error|fail|exception|stderr|verdict|judge|reason|explan|rationale|feedback|check|message|assert|test|verif|valid"
    r"|status|termination|rubric|grade|reward|score|match|correct|answer|log",
    re.IGNORECASE,
)
_DULL = re.compile(r"cost|duration|_ms$|latency|^published|^run_id|hash|timestamp|_s$|^dataset", re.IGNORECASE)


@dataclass(slots=True)
class Fields:
    """The fields of a row by what they tell, with their values."""

    recorded: list[tuple[str, Any]] = field(default_factory=list)  # by the rollout and its verifier, the telling ones first
    failed: dict[str, list[Failed]] = field(default_factory=dict)  # the checks in a recorded field that failed
    expected: list[tuple[str, Any]] = field(default_factory=list)
    task: dict[str, str] = field(default_factory=dict)  # what states it
    others: list[tuple[str, Any]] = field(default_factory=list)  # the task, keys, trajectories, costs and what is empty


def sorted_fields(row: Mapping[str, Any], stopped: Mapping[str, Any]) -> Fields:
    """Sort the fields of a row, `stopped` of its response among them."""
    fields = Fields(list(stopped.items()))
    for key, value in row.items():
        name = key[:_NAME]
        if value in EMPTY or key in FRAMEWORK or _KEYS.match(name):
            fields.others.append((key, value))
        elif isinstance(value, str) and _TASK.search(name):
            fields.task[key] = value
            fields.others.append((key, value))
        elif key in _GIVEN or (_DULL.search(name) and not TELLING.search(name)):
            fields.others.append((key, value))
        else:
            (fields.expected if _EXPECTED.search(name) else fields.recorded).append((key, value))
    checks = [(key, failed_checks(key, value)) for key, value in fields.recorded]
    fields.failed = {key: failed for key, failed in checks if failed}
    fields.recorded.sort(key=lambda member: not TELLING.search(member[0]))
    return fields


def stops(response: Any) -> dict[str, Any]:
    """Collect what a response says of how it stopped; nothing where it completed."""
    if not isinstance(response, Mapping):
        return {"response": "missing"}
    says = {key: response[key] for key in _STOPS if response.get(key)}
    return {f"response.{key}": value for key, value in says.items() if (key, value) != ("status", "completed")}


def turns(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """Read the turns of a request as their roles and texts; a bare text is of the user."""
    params = row.get("responses_create_params")
    items = params.get("input") if isinstance(params, Mapping) else None
    return [_turn(item) for item in (items if isinstance(items, list) else [items])]


def _turn(item: Any) -> dict[str, str]:
    if not isinstance(item, Mapping):
        return {"role": "user", "text": text_of(item)}
    text = text_of(item.get("content", item.get("output", item.get("arguments"))))
    return {"role": str(item.get("role") or item.get("type") or "other"), "text": text}


def step(members: Told) -> Told:
    """Drop what a step does not say."""
    always = ("index", "kind", "text")
    return {
        key: value
        for key, value in members.items()
        if key in always or (value not in EMPTY and key not in _UNSAID)
    }


def effort(steps: Sequence[Told]) -> dict[str, Any]:
    """Count the steps and calls of a rollout, and quote the last words of the model."""
    messages = [step["text"] for step in steps if step["kind"] == "message" and step["text"]]
    n_calls = sum(step["kind"] == "call" for step in steps)
    return {"n_steps": len(steps), "n_calls": n_calls, "last_words": messages[-1] if messages else ""}


def states(answered: bool | None, failed: bool | None) -> list[str]:
    """Name what became of a step, if that is worth a word."""
    return ["never answered"] * (answered is False) + ["failed"] * bool(failed)


def middle_cut(text: str, chars: int) -> str:
    """Cut a text in the middle: errors and answers come at its end."""
    if chars <= 0 or len(text) <= chars:
        return text
    head, tail = chars - chars // 3, chars // 3
    left = f"({len(text) - chars:,} characters left out; --chars 0 shows all)"
    return f"{text[:head]} … {left} … {text[len(text) - tail :]}"


def end_of(text: str, chars: int) -> str:
    """Cut a text to its end."""
    return text if len(text) <= chars else f"… {text[-chars:]}"

"""A model that needs no server: it plays the tasks of the office by a script, with known faults."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from blade.errors import UsageError
from blade_eval.environment import Respond, Response, Row, Unmeasured
from blade_eval.models.scripted_model.faults import FAULTS as FAULTS
from blade_eval.models.scripted_model.faults import NONE as NONE
from blade_eval.models.scripted_model.faults import SCRIPTS as SCRIPTS
from blade_eval.models.scripted_model.faults import asked
from blade_eval.models.scripted_model.faults import truth as truth
from blade_eval.models.scripted_model.plays import Play, Turn, play
from blade_eval.verifiers.workplace_assistant import opened
from blade_eval.verifiers.workplace_assistant.quests import quests

_CREATED = 1773824400.0  # the morning of the office's day: rows hold no time of a clock


@asynccontextmanager
async def model(settings: Mapping[str, Any]) -> AsyncIterator[Respond]:
    """A `Respond` that plays `script` (flawless, careful, hasty, novice), drawn from `seed`."""
    script, _ = asked(settings)
    if script not in SCRIPTS:
        hint = f"the scripts are {', '.join(SCRIPTS)}"
        raise UsageError(f"the scripted model has no script {script!r}", hint, "unknown-script")

    async def respond(params: Row, row: Row) -> Response:
        return answered(params, row, settings)

    yield respond


def answered(params: Row, row: Row, settings: Mapping[str, Any]) -> Response:
    """The next turn. The play is begun anew and led along what was said so far, so nothing is remembered."""
    script, seed = asked(settings)
    whole = f"{seed}/{script}/{row.get('task_id')}/{row.get('_ng_rollout_index') or 0}"
    course = _course(row, settings, Random(f"{whole}/play"))
    outputs = _outputs(params.get("input"))
    number, turn = 0, next(course)
    while turn.calls:
        idents = [_ident(whole, number, place) for place in range(len(turn.calls))]
        if not all(f"call_{ident}" in outputs for ident in idents):
            break
        turn = course.send([outputs[f"call_{ident}"] for ident in idents])
        number += 1
    output = _items(turn, whole, number)
    return {
        "id": f"resp_{_ident(whole, number, 99)}",
        "created_at": _CREATED,
        "model": str(settings.get("model") or f"scripted-{script}"),
        "object": "response",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "usage": _usage(params, output),
    }


def _course(row: Row, settings: Mapping[str, Any], rng: Random) -> Play:
    ident = row.get("task_id")
    if ident in quests():
        return play(quests()[str(ident)], truth(row, settings), rng)
    calls = row.get("ground_truth")
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) and "name" in call for call in calls):
        reason = (
            "the scripted model knows the tasks of workplace_assistant, and those whose ground_truth is calls"
        )
        raise Unmeasured("unknown_task", reason, terminal=True)
    return _plainly(calls)


def _plainly(calls: Sequence[Mapping[str, Any]]) -> Play:
    """For tasks that no script knows: the calls that the row itself calls right, which may be none."""
    for entry in calls:
        yield Turn(((str(entry["name"]), opened(entry.get("arguments")) or {}),))
    yield Turn(says="Done." if calls else "There was nothing to change, so I left everything as it is.")


def _outputs(history: Any) -> dict[str, str]:
    if not isinstance(history, list):
        return {}
    return {
        str(item.get("call_id")): str(item.get("output"))
        for item in history
        if isinstance(item, Mapping) and item.get("type") == "function_call_output"
    }


def _ident(whole: str, turn: int, place: int) -> str:
    return hashlib.blake2b(f"{whole}/{turn}/{place}".encode(), digest_size=8).hexdigest()


def _items(turn: Turn, whole: str, number: int) -> list[Row]:
    items: list[Row] = []
    if turn.thought:
        summary = [{"type": "summary_text", "text": turn.thought}]
        items.append({"id": f"rs_{_ident(whole, number, 98)}", "type": "reasoning", "summary": summary})
    for place, (name, arguments) in enumerate(turn.calls):
        ident = _ident(whole, number, place)
        items.append(
            {
                "id": f"fc_{ident}",
                "type": "function_call",
                "call_id": f"call_{ident}",
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode(),
                "status": "completed",
            }
        )
    if turn.says:
        content = [{"type": "output_text", "text": turn.says, "annotations": []}]
        items.append(
            {
                "id": f"msg_{_ident(whole, number, 97)}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    return items


def _usage(params: Row, output: list[Row]) -> Row:
    """About a token for four bytes, thoughts counted as reasoning."""
    n_input = len(msgspec.json.encode([params.get("input"), params.get("tools")])) // 4
    n_output = max(1, len(msgspec.json.encode(output)) // 4)
    n_thought = len(msgspec.json.encode([item for item in output if item["type"] == "reasoning"])) // 4
    return {
        "input_tokens": n_input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": n_output,
        "output_tokens_details": {"reasoning_tokens": n_thought if n_thought > 1 else 0},
        "total_tokens": n_input + n_output,
    }

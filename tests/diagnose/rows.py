"""Build the rows of NeMo Gym, one by one and as runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Row = dict[str, Any]
Key = tuple[int, int]  # task index, repeat
Made = tuple[Iterable[Row], set[Key]]  # a run, and the rows with the fault
Act = str | dict[str, Any] | tuple[str, dict[str, Any], str | None]


def message(text: str, role: str = "assistant") -> Row:
    """A message in the output of a rollout."""
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def items_of(acts: Iterable[Act]) -> list[Row]:
    """Output items: a text is a message, a triple is a call with its result (None: it was never answered)."""
    items: list[Row] = []
    for act in acts:
        if isinstance(act, str):
            items.append(message(act))
        elif isinstance(act, dict):
            items.append(act)
        else:
            tool, arguments, output = act
            number = f"call_{len(items)}"
            text = json.dumps(arguments)
            items.append({"type": "function_call", "call_id": number, "name": tool, "arguments": text})
            if output is not None:
                items.append({"type": "function_call_output", "call_id": number, "output": output})
    return items


def due_of(acts: Iterable[Act]) -> list[Row]:
    """The calls among some acts, as a row expects them."""
    return [{"name": act[0], "arguments": act[1]} for act in acts if isinstance(act, tuple)]


def make_row(
    task: int, repeat: int, reward: float, acts: Iterable[Act] = (), *, prompt: str | None = None, tools: Sequence[str] = (),
    response: dict[str, Any] | None = None, due: Iterable[Act] | None = None, **fields: Any,
) -> Row:  # fmt: skip
    """A rollout as Gym writes it, which expects the calls that are due; `response` adds to the response, `fields` to the row."""
    if due is not None:
        fields["expected_actions"] = due_of(due)
    asked = f"Errand {task}: please see to the matter of folder {task * 7 + 3}." if prompt is None else prompt
    params: Row = {"input": [{"role": "user", "content": asked}]}
    if tools:
        schema = {"type": "object", "properties": {}}
        params["tools"] = [{"type": "function", "name": tool, "parameters": schema} for tool in tools]
    output = {"output": items_of(acts), **(response or {})}
    address = {"_ng_task_index": task, "_ng_rollout_index": repeat}
    return {**address, "reward": reward, "responses_create_params": params, "response": output, **fields}


def key_of(row: Row) -> Key:
    """Task index and repeat of a row."""
    return row["_ng_task_index"], row["_ng_rollout_index"]


def keys_of(rows: Iterable[Row]) -> set[Key]:
    return set(map(key_of, rows))


def failing(rows: Iterable[Row]) -> Made:
    """A run, and all rows of it that do not pass."""
    listed = list(rows)
    return listed, keys_of(row for row in listed if row["reward"] < 1)


def struck(make: Callable[..., Iterator[tuple[Row, bool]]]) -> Callable[..., tuple[list[Row], set[Key]]]:
    """A run from its rows one by one, each with whether it has the fault."""

    def whole(*arguments: Any, **options: Any) -> tuple[list[Row], set[Key]]:
        pairs = list(make(*arguments, **options))
        return [row for row, _ in pairs], keys_of(row for row, is_struck in pairs if is_struck)

    return whole


def grid(n_tasks: int, n_repeats: int) -> list[Key]:
    """All tasks and repeats, task by task."""
    return [(task, repeat) for task in range(n_tasks) for repeat in range(n_repeats)]

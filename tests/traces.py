"""Tasks read as events, built from rows: what the readers of traces receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blade import events
from blade.formats import single_rows
from blade.model import Episode, Rollout, TaskTraces, Trace
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row


def did(*calls: Any) -> list[Row]:
    """Calls with their results: each (tool, arguments as text, output); a lone string is a message."""
    items: list[Row] = []
    for number, call in enumerate(calls):
        if isinstance(call, str):
            items.append(make_message(call))
        elif isinstance(call, Mapping):
            items.append(dict(call))
        else:
            tool, arguments, output = call
            items.append(make_call(f"c{number}", tool, arguments))
            if output is not None:
                items.append(make_result(f"c{number}", output))
    return items


def make_tool(name: str, *required: str, **properties: Any) -> Row:
    """A declared tool; properties are JSON schemas or type names."""
    schemas = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    parameters = {"type": "object", "properties": schemas, "required": list(required)}
    return {"type": "function", "name": name, "description": name, "parameters": parameters, "strict": False}


def rollout(
    items: Sequence[Row],
    reward: float = 0.0,
    repeat: int = 0,
    task: int = 0,
    tools: Sequence[Row] = (),
    prompt: str | None = None,
    response: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Row:
    """A row of the main file with these output items."""
    params = {"input": [{"role": "user", "content": prompt or f"question {task}"}], "tools": list(tools)}
    answer = make_response(list(items), **(response or {}))
    return make_row(task, repeat, reward, responses_create_params=params, response=answer, **fields)


def make_episode(row: Row, position: int = 0, overrides: Mapping[str, str] | None = None) -> Episode:
    """A row read as events; it passes at reward 1."""
    steps, source = single_rows.steps_of_row(row)
    reward = float(row.get("reward") or 0.0)
    seen = Rollout(
        "run", str(row["_ng_task_index"]), f"task {row['_ng_task_index']}", int(row["_ng_rollout_index"]),
        reward, "rollouts.jsonl", position + 1,
    )  # fmt: skip
    return events.episode(
        Trace(seen, tuple(steps), source, row), position, reward, reward >= 1, overrides or {}
    )


def make_task(*rows: Row, overrides: Mapping[str, str] | None = None, start: int = 0) -> TaskTraces:
    """All rollouts of one task; repeats are numbered in order unless a row says otherwise."""
    told = [{**row, "_ng_rollout_index": row.get("_ng_rollout_index") or at} for at, row in enumerate(rows)]
    episodes = tuple(make_episode(row, start + at, overrides) for at, row in enumerate(told))
    first = episodes[0].trace
    return TaskTraces("run", first.rollout.task, first.rollout.task_name, episodes, events.gold(first.row))

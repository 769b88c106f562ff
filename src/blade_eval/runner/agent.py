"""Run one rollout: ask the model, answer its tool calls, ask again, and have it judged."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from blade_eval.environment import Attempt, Environment, Respond, Response, Row, Unmeasured
from blade_eval.runner.skills import READ_TOOL, Skills

MOST_STEPS = 100  # where neither the agent's block nor the command says; a loop must end some day

# What the framework puts into a row: no column of the task, and appended to the result by whoever collects.
FRAMEWORK = frozenset("agent_ref skills_ref task_source responses_create_params response reward".split())


async def run(
    row: Row, respond: Respond, environment: Environment, settings: Mapping[str, Any],
    skills: Skills | None = None, ask: Respond | None = None,
) -> Row:
    """The result row of one rollout; raises `Unmeasured` with what was said until then where no reward can be given."""
    params = dict(row.get("responses_create_params") or {})
    if skills is not None:
        params = skills.offered(params)
    response: Response | None = None
    stage = "seed"
    try:
        state = await awaited(environment.seed(row)) if environment.seed else None
        stage = "model"
        response = await _turns(params, row, respond, environment, state, settings, skills)
        stage = "verify"
        fields = await environment.verify(Attempt(row, response, state, ask))
    except Unmeasured as failure:
        # what a verifier would have been given; without a response there is nothing to judge again
        body = {} if response is None else {"responses_create_params": params, "response": response, **_columns(row)}
        failure.fields = {**body, "_ng_failure_stage": stage, **failure.fields}
        raise
    return result(row, params, response, fields)


def result(row: Row, params: Row, response: Response, fields: Row) -> Row:
    """The row as it is written: the columns of the task stand before what the verifier found."""
    reward = fields.get("reward")
    if not isinstance(reward, int | float):
        raise Unmeasured("verifier_error", f"the verifier gave no reward but {reward!r}")
    head = {"responses_create_params": params, "response": response, "reward": float(reward)}
    return {**head, **_columns(row), **{key: value for key, value in fields.items() if key != "reward"}}


def _columns(row: Row) -> Row:
    return {key: value for key, value in row.items() if key not in FRAMEWORK and not key.startswith("_ng_")}


async def awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _turns(
    params: Row, row: Row, respond: Respond, environment: Environment, state: Any,
    settings: Mapping[str, Any], skills: Skills | None,
) -> Response:
    """The last response, with the items and the tokens of all turns."""
    most = int(settings.get("max_steps") or MOST_STEPS)
    output: list[Row] = []
    usage: Row | None = None
    prompt = params.get("input")
    before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt or [])
    for step in count(1):
        response = dict(await respond({**params, "input": before + output} if output else params, row))
        items = [item for item in response.get("output") or [] if isinstance(item, dict)]
        usage = added(usage, response.get("usage"))
        output += items
        calls = [item for item in items if item.get("type") == "function_call"]
        # a turn that was cut off ends the rollout: its last call may be half a call
        if response.get("incomplete_details") or not calls:
            break
        offered = {tool.get("name") for tool in params.get("tools") or [] if isinstance(tool, Mapping)}
        for call in calls:
            answer = await _answered(call, offered, environment, state, skills)
            output.append({"type": "function_call_output", "call_id": call.get("call_id"), "output": answer})
        if step >= most:
            break
    return {**response, "output": output, **({} if usage is None else {"usage": usage})}


async def _answered(
    call: Row, offered: set[Any], environment: Environment, state: Any, skills: Skills | None
) -> str:
    """What a tool says to a call; what is wrong with the call is told to the model."""
    name = str(call.get("name"))
    if name not in offered:
        known = ", ".join(sorted(map(str, offered))) or "none"
        return _error(f"there is no tool {name!r}", f"the tools are: {known}")
    try:
        arguments = json.loads(call.get("arguments") or "{}")
    except (ValueError, TypeError, RecursionError) as error:
        return _error(f"the arguments of {name} are not JSON", str(error))
    if not isinstance(arguments, dict):
        return _error(f"the arguments of {name} must be a JSON object", f"got {type(arguments).__name__}")
    if skills is not None and name == READ_TOOL:
        return skills.read(arguments)
    if environment.call is None:
        return _error(f"there is no tool {name!r}", "this environment has no tools")
    answer = await awaited(environment.call(state, name, arguments))
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _error(what: str, more: str) -> str:
    return json.dumps({"error": what, "detail": more}, ensure_ascii=False)


def added(total: Row | None, usage: Any) -> Row | None:
    """Two counts of tokens as one; counts within counts too."""
    if not isinstance(usage, Mapping):
        return total
    if total is None:
        return dict(usage)
    summed = dict(total)
    for key, value in usage.items():
        before = summed.get(key)
        if isinstance(value, Mapping):
            summed[key] = added(before if isinstance(before, dict) else None, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            summed[key] = value + (before if isinstance(before, int | float) else 0)
        else:
            summed[key] = value if value is not None else before
    return summed

"""The agent's loop: tools, what is wrong with calls, limits, tokens, the row that comes out."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from blade_eval.environment import Attempt, Environment, Row, Unmeasured
from blade_eval.runner import agent

TOOLS = [{"type": "function", "name": "add", "parameters": {}}]


def message(text: str) -> Row:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(arguments: str, name: str = "add", call_id: str = "c1") -> Row:
    return {"type": "function_call", "name": name, "arguments": arguments, "call_id": call_id}


async def verify(attempt: Attempt) -> Row:
    return {"verdict": "ok", "reward": 1, "total": attempt.state}


def add(state: list[int], name: str, arguments: Row) -> str:
    state.append(arguments["n"])
    return f"sum {sum(state)}"


WORLD = Environment("sums", verify, seed=lambda row: [], call=add)


def rolled(
    *turns: Row, world: Environment = WORLD, row: Row | None = None, **settings: Any
) -> tuple[Row, list[Row]]:
    asked: list[Row] = []

    async def respond(params: Row, _: Row) -> Row:
        asked.append(params)
        return json.loads(json.dumps(turns[min(len(asked), len(turns)) - 1]))

    given = {
        "responses_create_params": {"input": [{"role": "user", "content": "q"}], "tools": TOOLS},
        **(row or {}),
    }
    return asyncio.run(agent.run(given, respond, world, settings)), asked


def outputs(result: Row) -> list[str]:
    return [item["output"] for item in result["response"]["output"] if item["type"] == "function_call_output"]


def test_calls_of_one_turn_are_answered_in_order_and_shown_to_the_model() -> None:
    first = {"id": "r1", "output": [call('{"n": 1}', call_id="a"), call('{"n": 2}', call_id="b")]}
    result, asked = rolled(first, {"id": "r2", "output": [message("3")]})
    assert outputs(result) == ["sum 1", "sum 3"]
    assert [item.get("call_id") for item in asked[1]["input"]] == [None, "a", "b", "a", "b"]
    assert asked[1]["tools"] == TOOLS
    assert result["response"]["id"] == "r2"
    assert result["total"] == [1, 2]


def test_the_row_begins_with_request_response_reward_and_ends_with_the_verifiers_fields() -> None:
    row = {"expected": 3, "agent_ref": {"name": "a"}, "skills_ref": {}, "_ng_task_index": 7, "verdict": "old"}
    result, _ = rolled({"output": [message("3")]}, row=row)
    assert list(result) == ["responses_create_params", "response", "reward", "expected", "verdict", "total"]
    assert result["reward"] == 1.0
    assert isinstance(result["reward"], float)
    assert result["verdict"] == "ok"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (call('{"n": 1'), "not JSON"),
        (call("[1]"), "must be a JSON object"),
        (call("{}", name="subtract"), "there is no tool 'subtract'"),
        (call("[" * 100_000), "not JSON"),
    ],
)
def test_what_is_wrong_with_a_call_is_told_to_the_model(wrong: Row, says: str) -> None:
    result, asked = rolled({"output": [wrong, call('{"n": 5}', call_id="ok")]}, {"output": [message("5")]})
    told, fine = outputs(result)
    assert says in json.loads(told)["error"]
    assert fine == "sum 5"
    assert len(asked) == 2


def test_a_loop_ends_at_max_steps() -> None:
    result, asked = rolled({"output": [call('{"n": 1}')], "usage": {"input_tokens": 2}}, max_steps=3)
    assert len(asked) == 3
    assert outputs(result) == ["sum 1", "sum 2", "sum 3"]
    assert result["response"]["usage"] == {"input_tokens": 6}


def test_a_turn_that_was_cut_off_ends_the_rollout() -> None:
    cut = {"output": [call('{"n": 1}')], "incomplete_details": {"reason": "max_output_tokens"}}
    result, asked = rolled(cut)
    assert len(asked) == 1
    assert outputs(result) == []
    assert result["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_thinking_alone_ends_it_too() -> None:
    _, asked = rolled({"output": [{"type": "reasoning", "summary": []}]})
    assert len(asked) == 1


def test_tokens_are_summed_over_turns_in_depth() -> None:
    one = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 4}, "total_tokens": 3}
    result, _ = rolled(
        {"output": [call('{"n": 1}')], "usage": one},
        {"output": [call('{"n": 1}')], "usage": None},
        {"output": [message("x")], "usage": one},
    )
    assert result["response"]["usage"] == {
        "input_tokens": 2, "input_tokens_details": {"cached_tokens": 8}, "total_tokens": 6,
    }  # fmt: skip


def test_a_request_that_is_a_text_is_a_message_once_there_is_more() -> None:
    row = {"responses_create_params": {"input": "q", "tools": TOOLS}}
    _, asked = rolled({"output": [call('{"n": 1}')]}, {"output": [message("x")]}, row=row)
    assert asked[0]["input"] == "q"
    assert asked[1]["input"][0] == {"role": "user", "content": "q"}


def test_a_verifier_that_cannot_judge_hands_on_what_was_said() -> None:
    async def judge(attempt: Attempt) -> Row:
        raise Unmeasured("judge_failed", "no verdict")

    with pytest.raises(Unmeasured) as caught:
        rolled({"output": [message("x")]}, world=Environment("j", judge), row={"expected": 1})
    assert caught.value.fields["response"]["output"] == [message("x")]
    assert caught.value.fields["expected"] == 1
    assert caught.value.fields["_ng_failure_stage"] == "verify"


@pytest.mark.parametrize("reward", [None, "1", []])
def test_no_reward_is_no_measurement(reward: Any) -> None:
    async def nothing(attempt: Attempt) -> Row:
        return {"reward": reward}

    with pytest.raises(Unmeasured, match="verifier_error"):
        rolled({"output": [message("x")]}, world=Environment("n", nothing))

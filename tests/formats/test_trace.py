"""One row to its steps: every kind of item, every place a trajectory may stand in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from blade.formats import rollout_steps, single_rows
from blade.model import Step
from tests.builders import make_call, make_message, make_response, make_result, make_row
from tests.cases import cases

PIXELS = "data:image/png;base64," + "iVBORw0KGgo" * 300


def steps_of(output: Any, **fields: Any) -> list[Step]:
    found, source = single_rows.steps_of_row(make_row(0, 0, response=make_response(output), **fields))
    assert [step.index for step in found] == list(range(len(found)))
    assert source == "response.output"
    return found


def nested(**fields: Any) -> tuple[list[Step], str]:
    found, source = single_rows.steps_of_row(make_row(0, 0, response=make_response([]), **fields))
    assert [step.index for step in found] == list(range(len(found)))
    return found, source


# -- items ----------------------------------------------------------------------------------------


def test_message_call_result_reasoning() -> None:
    output = [
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "first"}], "encrypted_content": None},
        make_call("c1", "search", '{"q": "x"}'),
        make_result("c1", "found it"),
        make_message("done"),
    ]
    reasoning, call, result, message = steps_of(output)
    assert (reasoning.kind, reasoning.text) == ("reasoning", "first")
    assert (call.kind, call.tool, call.arguments, call.text, call.answered) == ("call", "search", '{"q": "x"}', '{"q": "x"}', True)
    assert (result.kind, result.text, result.call_id, result.failed) == ("result", "found it", "c1", None)
    assert (message.kind, message.text) == ("message", "done")


@pytest.mark.parametrize(("item", "kind"), cases("formats", "kinds of items"))
def test_kinds(item: Any, kind: str) -> None:
    assert [step.kind for step in steps_of([item])] == [kind]


def test_content_in_its_shapes() -> None:
    contents = ["plain", [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}], None, [],
                [{"type": "refusal", "refusal": "no"}], {"text": "t"}, ["a", 1]]  # fmt: skip
    found = steps_of([{"type": "message", "role": "assistant", "content": content} for content in contents])
    assert [step.text for step in found] == ["plain", "a\nb", "", "", "no", "t", '["a",1]']


def test_output_as_text_and_lists_of_lists() -> None:
    assert [step.text for step in steps_of("the answer")] == ["the answer"]
    found = steps_of([[make_message("a"), make_call("1")], [], [make_result("1", "b")], make_message("c")])
    assert [step.kind for step in found] == ["message", "call", "result", "message"]
    assert found[1].answered is True


def test_message_whose_tool_calls_are_no_calls_is_still_a_step() -> None:
    found = steps_of([{"role": "assistant", "content": None, "tool_calls": "x"}, {"role": "assistant", "tool_calls": [1]}])
    assert [step.kind for step in found] == ["message", "message"]


@pytest.mark.parametrize(("text", "rest", "thought"), cases("formats", "thinking"))
def test_thinking_inside_text(text: str, rest: str, thought: str) -> None:
    (step,) = steps_of([make_message(text)])
    assert (step.text, step.reasoning) == (rest, thought)


@pytest.mark.parametrize(("item", "text"), cases("formats", "reasoning"))
def test_reasoning_in_its_shapes(item: dict[str, Any], text: str) -> None:
    (step,) = steps_of([{"type": "reasoning", **item}])
    assert (step.kind, step.text) == ("reasoning", text)


# -- calls and results ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "answered"),
    [
        ([make_call("c1"), make_result("c2", "x")], [False, None]),
        ([make_result("c", "x"), make_call("c")], [None, False]),
        ([make_call("c"), make_result("c", "1"), make_call("c"), make_result("c", "2"), make_call("c")], [True, None, True, None, False]),
        ([make_call("a"), make_call("b"), make_result("b", "x"), make_call("c")], [False, True, None, False]),
        ([{"type": "function_call", "name": "f", "arguments": "{}"}], [None]),
    ],
    ids=["orphans", "a result before its call", "a repeated id", "parallel calls", "no id"],
)
def test_which_calls_are_answered(output: list[Any], answered: list[bool | None]) -> None:
    assert [step.answered for step in steps_of(output)] == answered


@pytest.mark.parametrize(("item", "failed"), cases("formats", "failed results"))
def test_result_that_says_whether_it_failed(item: dict[str, Any], failed: bool | None) -> None:
    (step,) = steps_of([{**make_result("c", "x"), **item}])
    assert step.failed is failed


HOSTED = {"type": "mcp_call", "id": "m", "name": "lookup", "arguments": '{"a":1}', "output": "forty-two", "error": None}
SEARCH = {"type": "web_search_call", "id": "w", "action": {"query": "x"}, "status": "completed"}


@pytest.mark.parametrize(
    ("item", "told"),
    [  # a hosted tool answers in the same item: it is not left unanswered
        (HOSTED, {"tool": "lookup", "arguments": '{"a":1}', "answered": None, "text": '{"a":1}\nforty-two'}),
        (SEARCH, {"tool": "web_search_call", "text": '{"query":"x"}', "answered": None}),
        ({"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}, {"arguments": '{"a":1}', "call_id": "t"}),
        ({**make_message("x"), "generation_token_ids": [1, 2, 3]}, {"tokens": 3}),
        ({"role": "assistant", "content": "x", "reasoning_content": "because"}, {"text": "x", "reasoning": "because"}),
        ({"role": "user", "content": [{"type": "text", "text": "look:"}, {"type": "input_image", "image_url": PIXELS}]},
         {"text": "look:\n[image]"}),
    ],
)  # fmt: skip
def test_what_a_step_holds(item: dict[str, Any], told: dict[str, Any]) -> None:
    (step,) = steps_of([item])
    assert {name: getattr(step, name) for name in told} == told


# -- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": [{"type": "input_image", "image_url": PIXELS}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXELS}}]},
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "image_url": PIXELS}},
        {"type": "function_call_output", "call_id": "c", "output": PIXELS},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": PIXELS}]},
        {"type": "image_generation_call", "id": "g", "result": PIXELS},
        {"type": "screenshot", "pixels": PIXELS, "note": "kept"},
        {"screenshot_b64": PIXELS.partition(",")[2], "action": "kept"},
    ],
)
def test_images_are_not_dumped(item: dict[str, Any]) -> None:
    (step,) = steps_of([item])
    assert "iVBOR" not in step.text
    assert len(step.text) < 200
    assert ("kept" in step.text) == ("kept" in item.values())


# -- trajectories that stand elsewhere ------------------------------------------------------------

CHAT = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "let me see", "tool_calls": [
        {"id": "t1", "type": "function", "function": {"name": "find", "arguments": '{"id":1}'}},
        {"id": "t2", "name": "get", "arguments": {"x": 2}}]},
    {"role": "tool", "tool_call_id": "t1", "content": "one"},
    {"role": "tool", "id": "t2", "content": "two", "error": True},
    {"role": "assistant", "content": "done"},
]  # fmt: skip


def test_chat_messages_with_tool_calls() -> None:
    found, source = nested(result={"messages": CHAT, "reward_info": {}})
    assert source == "result.messages"
    assert [step.kind for step in found] == ["user", "message", "call", "call", "result", "result", "message"]
    assert [step.tool for step in found if step.kind == "call"] == ["find", "get"]
    assert [step.answered for step in found if step.kind == "call"] == [True, True]
    assert [step.failed for step in found if step.kind == "result"] == [None, True]
    assert found[3].arguments == '{"x":2}'


def test_tool_calls_of_a_simulated_user_are_not_the_model() -> None:
    call = {"id": "u1", "name": "toggle", "arguments": {}, "requestor": "user"}
    found, _ = nested(result={"messages": [{"role": "user", "content": None, "tool_calls": [call]}]})
    assert [(step.kind, step.tool) for step in found] == [("user", "toggle")]


def test_several_results_in_one_message() -> None:
    both = {
        "role": "tool",
        "tool_messages": [{"role": "tool", "id": "t1", "content": "one"}, {"role": "tool", "id": "t2", "content": "two"}],
    }
    found, _ = nested(result={"messages": [CHAT[1], both]})
    assert [step.text for step in found if step.kind == "result"] == ["one", "two"]
    assert [step.answered for step in found if step.kind == "call"] == [True, True]


@pytest.mark.parametrize(
    ("fields", "source", "n"),
    [
        ({"result": {"trajectory": CHAT}}, "result.trajectory", 7),
        ({"trajectory": [{"obs": 1, "action": "a", "reward": 0.0}, {"obs": 2, "action": "b", "reward": 1.0}]}, "trajectory", 2),
        ({"verifier_metadata": {"osworld_steps": [{"action": "click", "screenshot": PIXELS}]}}, "verifier_metadata.osworld_steps", 1),
        ({"delegated_response": make_row(0, 0)}, "delegated_response.response.output", 1),
        ({"subagent_trajectories": [CHAT, CHAT]}, "subagent_trajectories", 14),
        ({"subagent_trajectories": {"a": CHAT, "b": CHAT}}, "subagent_trajectories", 14),
        ({"subagent_trajectories": [{"name": "a", "messages": CHAT}]}, "subagent_trajectories", 7),
        ({"messages": CHAT}, "messages", 7),
        ({"result": [1, 2]}, "response.output", 0),
        ({"result": {"messages": []}, "trajectory": "x"}, "response.output", 0),
        ({"result": "text", "verifier_metadata": None, "delegated_response": {"response": "x"}}, "response.output", 0),
    ],
)
def test_nested_trajectories(fields: dict[str, Any], source: str, n: int) -> None:
    found, where = nested(**fields)
    assert (where, len(found)) == (source, n)
    assert all(len(step.text) < 1000 for step in found)


def test_the_output_wins_over_a_nested_trajectory() -> None:
    found = steps_of([make_message("from the output")], result={"messages": CHAT})
    assert [step.text for step in found] == ["from the output"]


@pytest.mark.parametrize("response", [None, "text", [], 5, {"output": None}, {"output": {"a": 1}}])
def test_no_output_at_all(response: Any) -> None:
    assert single_rows.steps_of_row({"response": response}) == ([], "response.output")
    assert single_rows.steps_of_row({}) == ([], "response.output")


# -- values and quotations ------------------------------------------------------------------------


def test_value_at_a_path() -> None:
    row = {"a": {"b": {"c": 1}}, "a.b": 2, "x/y": 3, "n": None}
    assert rollout_steps.value_at(row, "a.b.c") == 1
    assert rollout_steps.value_at(row, "a.b") == 2
    assert rollout_steps.value_at(row, "x/y") == 3
    assert rollout_steps.value_at(row, "n") is None
    for path in ("", "a.c", "a.b.c.d", "z", "n.x"):
        assert rollout_steps.value_at(row, path) is rollout_steps.NOTHING


def test_quotations_are_exact() -> None:
    assert rollout_steps.quotable("as it is\n") == "as it is\n"
    assert rollout_steps.quotable([]) == "[]"
    assert rollout_steps.quotable({"a": [1, "é"]}) == '{"a":[1,"é"]}'
    assert rollout_steps.quotable({"image": PIXELS}) == json.dumps({"image": PIXELS}, separators=(",", ":"))


def test_rows_that_the_interpreter_would_not_parse() -> None:
    assert rollout_steps.parsed(b'{"a":NaN,"b":1' + b"0" * 5000 + b"}")[0] is not None
    assert rollout_steps.parsed(b"[1]") == (None, "a JSON array, not an object")
    assert rollout_steps.parsed(b"{")[0] is None

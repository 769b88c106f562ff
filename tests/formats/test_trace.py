"""One row to its steps: every kind of item, every place a trajectory may stand in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from blade.formats import rollout_steps, single_rows
from blade.model import Step
from tests.builders import make_message, make_response, make_row
from tests.case_tables import cases

BASE64 = "iVBORw0KGgo" * 300
PIXELS = "data:image/png;base64," + BASE64
CHAT = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "let me see", "tool_calls": [
        {"id": "t1", "type": "function", "function": {"name": "find", "arguments": '{"id":1}'}},
        {"id": "t2", "name": "get", "arguments": {"x": 2}}]},
    {"role": "tool", "tool_call_id": "t1", "content": "one"},
    {"role": "tool", "id": "t2", "content": "two", "error": True},
    {"role": "assistant", "content": "done"},
]  # fmt: skip


def filled(case: Any) -> Any:
    """A case with what is too long for a table."""
    text = json.dumps(case).replace('"@CHAT"', json.dumps(CHAT))
    return json.loads(text.replace("@PIXELS", PIXELS).replace("@BASE64", BASE64))


def read(output: Any, **fields: Any) -> tuple[list[Step], str]:
    steps, source = single_rows.steps_of_row(make_row(0, 0, response=make_response(output), **fields))
    assert [step.index for step in steps] == list(range(len(steps)))
    return steps, source


# -- items ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("label", "output", "expected"), cases(__file__, "outputs and their steps"))
def test_what_the_steps_of_an_output_hold(label: str, output: Any, expected: list[dict[str, Any]]) -> None:
    steps, source = read(filled(output))
    assert source == "response.output"
    told = [{name: getattr(step, name) for name in fields} for step, fields in zip(steps, expected, strict=True)]
    assert told == expected, label


@pytest.mark.parametrize("item", cases(__file__, "images"))
def test_images_are_not_dumped(item: dict[str, Any]) -> None:
    ((step,), _) = read([filled(item)])
    assert "iVBOR" not in step.text
    assert len(step.text) < 200
    assert ("kept" in step.text) == ("kept" in item.values())


# -- trajectories that stand elsewhere ------------------------------------------------------------


def test_chat_messages_and_whose_the_calls_and_results_in_them_are() -> None:
    found, source = read([], result={"messages": CHAT, "reward_info": {}})
    assert source == "result.messages"
    assert [step.kind for step in found] == ["user", "message", "call", "call", "result", "result", "message"]
    assert [step.tool for step in found if step.kind == "call"] == ["find", "get"]
    assert [step.answered for step in found if step.kind == "call"] == [True, True]
    assert [step.failed for step in found if step.kind == "result"] == [None, True]
    assert found[3].arguments == '{"x":2}'
    call = {"id": "u1", "name": "toggle", "arguments": {}, "requestor": "user"}
    found, _ = read([], result={"messages": [{"role": "user", "content": None, "tool_calls": [call]}]})
    assert [(step.kind, step.tool) for step in found] == [("user", "toggle")]
    both = [{"role": "tool", "id": call_id, "content": text} for call_id, text in (("t1", "one"), ("t2", "two"))]
    found, _ = read([], result={"messages": [CHAT[1], {"role": "tool", "tool_messages": both}]})
    assert [step.text for step in found if step.kind == "result"] == ["one", "two"]
    assert [step.answered for step in found if step.kind == "call"] == [True, True]
    found, source = read([make_message("from the output")], result={"messages": CHAT})
    assert ([step.text for step in found], source) == (["from the output"], "response.output")


@pytest.mark.parametrize(("fields", "source", "n"), cases(__file__, "nested trajectories"))
def test_nested_trajectories(fields: dict[str, Any], source: str, n: int) -> None:
    found, where = read([], **filled(fields))
    assert (where, len(found)) == (source, n)
    assert all(len(step.text) < 1000 for step in found)


@pytest.mark.parametrize("row", [{"response": response} for response in (None, "text", [], 5, {"output": None}, {"output": {"a": 1}})] + [{}])
def test_no_output_at_all(row: dict[str, Any]) -> None:
    assert single_rows.steps_of_row(row) == ([], "response.output")


# -- values and quotations ------------------------------------------------------------------------


def test_values_at_paths_and_quotations_are_exact_also_of_rows_that_the_interpreter_would_not_parse() -> None:
    row = {"a": {"b": {"c": 1}}, "a.b": 2, "x/y": 3, "n": None}
    for path, value in {"a.b.c": 1, "a.b": 2, "x/y": 3, "n": None}.items():
        assert rollout_steps.value_at(row, path) == value
    for path in ("", "a.c", "a.b.c.d", "z", "n.x"):
        assert rollout_steps.value_at(row, path) is rollout_steps.NOTHING
    assert rollout_steps.quotable("as it is\n") == "as it is\n"
    assert rollout_steps.quotable([]) == "[]"
    assert rollout_steps.quotable({"a": [1, "é"]}) == '{"a":[1,"é"]}'
    assert rollout_steps.quotable({"image": PIXELS}) == json.dumps({"image": PIXELS}, separators=(",", ":"))
    assert rollout_steps.parsed(b'{"a":NaN,"b":1' + b"0" * 5000 + b"}")[0] is not None
    assert rollout_steps.parsed(b"[1]") == (None, "a JSON array, not an object")
    assert rollout_steps.parsed(b"{")[0] is None

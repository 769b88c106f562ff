"""Function calls: the same calls in another form, and calls that only look the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.verifiers import environment
from tests.evaluate.verifiers.attempts import called, judged, plain, reward

CALLS = environment("xlam_fc", {})
TOOLS = [
    {"type": "function", "name": "find", "parameters": {"type": "object", "properties": {"what": {"type": "string"}, "most": {"type": "integer", "default": 10}}}},
]
FIND = {"name": "find", "arguments": {"what": "tea", "near": {"lat": 1, "lon": 2.5}, "tags": ["a", "b"]}}


def row(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"responses_create_params": {"tools": TOOLS}, "expected_answers": list(calls), **more}


def find(**changes: Any) -> dict[str, Any]:
    """The call with some arguments changed; None takes one out."""
    arguments = {key: value for key, value in {**FIND["arguments"], **changes}.items() if value is not None}
    return called("find", arguments)


@pytest.mark.parametrize(
    "item",
    [
        find(), called("find", '{"tags":["a","b"],"near":{"lon":2.5,"lat":1.0},"what":"tea"}'),
        called("find", '{"what": "te\\u0061", "near": {"lat": 1e0, "lon": 25e-1}, "tags": ["a", "b"]}'), find(most=10),
        find(most=10.0), {**find(), "arguments": FIND["arguments"]}, {**find(), "call_id": None, "status": None}, [[find()]],
    ],
)
def test_the_same_call_in_another_form(item: Any) -> None:
    assert reward(CALLS, row(FIND), item) == 1.0


@pytest.mark.parametrize(
    "items",
    [
        [], ["I would call find with tea."], [json.dumps(FIND)], [called("Find", FIND["arguments"])], [find(what="Tea")],
        [find(what="tea ")], [find(near={"lat": "1", "lon": 2.5})], [find(near={"lat": True, "lon": 2.5})],
        [find(tags=["b", "a"])], [find(tags=["a", "b", "b"])], [find(near=None)], [find(extra=1)], [find(most=11)],
        [find(), find()], [find(), called("drop", {})], [called("find", "{")], [called("find", "[]")],
    ],
)
def test_another_call_that_looks_alike(items: list[Any]) -> None:
    assert reward(CALLS, row(FIND), *items) == 0.0


def test_calls_are_counted_and_their_order_means_nothing_unless_the_row_says_so() -> None:
    two = {"name": "find", "arguments": {"what": "milk"}}
    fields = judged(CALLS, row(FIND, two), called("find", {"what": "milk"}), find())
    assert fields == {
        "reward": 1.0, "num_expected": 2, "num_predicted": 2, "num_correct": 2,
        "predicted_calls": [{"name": "find", "arguments": {"what": "milk"}}, FIND],
    }
    assert reward(CALLS, row(FIND, two, ordered=True), called("find", {"what": "milk"}), find()) == 0.0
    assert reward(CALLS, row(FIND, two, ordered=True), find(), called("find", {"what": "milk"})) == 1.0
    half = judged(CALLS, row(FIND, two), find())
    assert (half["reward"], half["num_correct"], CALLS.scores and CALLS.scores(half)) == (
        0.0, 1, {"call_recall": 0.5},
    )
    assert reward(CALLS, row(FIND, FIND), find()) == 0.0
    assert reward(CALLS, row(FIND, FIND), find(), find()) == 1.0


def accepted(**arguments: Any) -> dict[str, Any]:
    return {"responses_create_params": {}, "accepted_calls": [{"name": "find", "arguments": arguments}]}


def test_each_argument_may_have_several_accepted_values() -> None:
    task = accepted(
        what=["tea", "green tea"], most=[5, ""], where=[{"city": ["Ulm", "Neu-Ulm"], "zip": ["89073", ""]}]
    )
    right = {"what": "Green-Tea", "where": {"city": "neu ulm"}}
    for arguments in (
        right, {**right, "most": 5.0}, {"what": "tea", "where": {"city": "Ulm", "zip": "89073"}},
    ):
        assert reward(CALLS, task, called("find", arguments)) == 1.0
    for arguments in (
        {**right, "most": 6}, {**right, "most": ""}, {**right, "what": "black tea"}, {**right, "most": "-"},
        {"where": {"city": "Ulm"}}, {**right, "extra": 1}, {**right, "where": {"city": "Ulm", "floor": 1}},
        {**right, "where": "Ulm"},
    ):
        expected = 1.0 if arguments.get("most") == "" else 0.0  # "" is what absence is written as
        assert reward(CALLS, task, called("find", arguments)) == expected, arguments


def test_calls_that_could_serve_two_ends_are_given_out_well() -> None:
    task = {"accepted_calls": [{"find": {"x": [1, 2]}}, {"find": {"x": [1]}}]}
    assert reward(CALLS, task, called("find", {"x": 1}), called("find", {"x": 2})) == 1.0
    assert reward(CALLS, task, called("find", {"x": 2}), called("find", {"x": 2})) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FIND), json.dumps([FIND]), f"So:\n```json\n{json.dumps([FIND])}\n```",
        f"<tool_call>\n{json.dumps(FIND)}\n</tool_call>",
        f"<think>{json.dumps([FIND, FIND])}</think>{json.dumps({**FIND, 'arguments': json.dumps(FIND['arguments'])})}",
    ],
)
def test_calls_in_text_count_when_the_row_says_so(text: str) -> None:
    assert reward(CALLS, row(FIND, calls_in_text=True), text) == 1.0
    assert reward(CALLS, row(FIND), text) == 0.0


def test_that_nothing_was_to_be_called_must_be_said() -> None:
    assert reward(CALLS, row(), "No tool fits.") == 1.0
    assert reward(CALLS, row(), find()) == 0.0
    assert reward(CALLS, row()) == 0.0


def shuffled(value: Any, draw: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(sorted(value)))}
    return [shuffled(inner, draw) for inner in value] if isinstance(value, list) else value


@given(st.data(), st.lists(st.dictionaries(st.text(max_size=3), plain, max_size=3), min_size=1, max_size=3))
@settings(max_examples=80, deadline=None)
def test_neither_keys_nor_calls_have_an_order(data: st.DataObject, arguments: list[dict[str, Any]]) -> None:
    arguments = json.loads(
        json.dumps(arguments).replace("NaN", "0").replace("-Infinity", "0").replace("Infinity", "0")
    )
    task = row(*({"name": "f", "arguments": each} for each in arguments))
    made = [
        called("f", json.dumps(shuffled(each, data.draw))) for each in data.draw(st.permutations(arguments))
    ]
    assert reward(CALLS, task, *made) == 1.0
    assert reward(CALLS, task, *made[1:]) == 0.0
    assert reward(CALLS, task, *made, made[0]) == 0.0

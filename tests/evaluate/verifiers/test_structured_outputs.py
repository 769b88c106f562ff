"""Structured outputs: texts that a schema admits, and texts that only look so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.verifiers import environment
from blade_eval.verifiers.structured_outputs import read_yaml
from tests.evaluate.verifiers.attempts import ANSWERS, SCHEMA, called, judged, reward

SHAPED = environment("structured_outputs", {"verify_timeout_seconds": 1})


def row(kind: str = "json", schema: Any = SCHEMA, **more: Any) -> dict[str, Any]:
    return {"schema_str": json.dumps(schema), "schema_type": kind, **more}


@pytest.mark.parametrize(("text", "value"), ANSWERS["scalars"])
def test_scalars_are_those_of_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    (found,) = read_yaml(f"key: {text}\n").values()
    assert (found, type(found)) == (value, type(value))
    assert read_yaml(f"- {text}\n") == [value]


def test_what_a_tag_says_must_fit() -> None:
    for text in ("!!int 12:30", "!!bool yes", "!!float 1_0", "!!null 0"):
        with pytest.raises(ValueError, match="not what its tag says"):
            read_yaml(f"key: {text}\n")
    assert read_yaml("key: !!int 12\n") == {"key": 12}


def test_a_time_is_no_number_to_a_schema() -> None:
    for kind, rewarded in (("string", 1.0), ("integer", 0.0)):
        schema = {"type": "object", "properties": {"time": {"type": kind}}, "required": ["time"]}
        task = {"schema_str": json.dumps(schema), "schema_type": "yaml"}
        assert reward(SHAPED, task, "time: 12:30") == rewarded
        assert reward(SHAPED, task, "time: 750") == 1.0 - rewarded


def test_a_tool_call_may_be_the_answer() -> None:
    task = row(response_mode="tool_call", tool_name="put")
    right = {"name": "a", "size": 3}
    assert reward(SHAPED, task, called("put", right)) == 1.0
    assert judged(SHAPED, task, called("take", right))["error_type"] == "no_tool_call"
    assert judged(SHAPED, task, json.dumps(right))["error_type"] == "no_tool_call"
    assert judged(SHAPED, task, called("put", "{"))["error_type"] == "parse_error"
    assert judged(SHAPED, task, called("put", right), called("put", {}))["error_type"] == "several_calls"
    wrapped = {**task, "tool_payload_key": "it"}
    assert reward(SHAPED, wrapped, called("put", {"it": right})) == 1.0
    assert judged(SHAPED, wrapped, called("put", right))["error_type"] == "schema_error"


def test_a_validation_without_end_is_stopped() -> None:
    bomb = row(schema={"type": "object", "properties": {"name": {"pattern": "^(a+)+$"}}})
    fields = judged(SHAPED, bomb, json.dumps({"name": "a" * 60 + "!"}))
    assert (fields["reward"], fields["error_type"]) == (0.0, "too_costly")
    assert reward(SHAPED, bomb, '{"name": "aa"}') == 1.0


def test_a_number_beyond_all_measure_is_no_escape() -> None:
    odd = row(schema={"properties": {"n": {"multipleOf": 0.5}}})
    assert reward(SHAPED, odd, '{"n": 1' + "0" * 400 + ".5e300}") == 0.0
    assert reward(SHAPED, odd, '{"n": 2.5}') == 1.0


@given(st.permutations(["name", "size", "on"]), st.integers(0, 8))
@settings(max_examples=20, deadline=None)
def test_order_and_indentation_change_nothing(order: list[str], indent: int) -> None:
    values = {"name": "a", "size": 3, "on": "x"}
    text = json.dumps({key: values[key] for key in order}, indent=indent or None)
    assert reward(SHAPED, row(), text) == 1.0

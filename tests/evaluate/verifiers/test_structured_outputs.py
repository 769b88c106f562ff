"""Structured outputs: the scalars of YAML 1.2, and what changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.verifiers import environment
from blade_eval.verifiers.structured_outputs import read_yaml
from tests.evaluate.verifiers.attempts import ANSWERS, SCHEMA, reward

SHAPED = environment("structured_outputs", {"verify_timeout_seconds": 1})


@pytest.mark.parametrize(("text", "value"), ANSWERS["scalars"])
def test_scalars_are_those_of_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    (scalar,) = read_yaml(f"key: {text}\n").values()
    assert (scalar, type(scalar)) == (value, type(value))
    assert read_yaml(f"- {text}\n") == [value]


def test_what_a_tag_says_must_fit() -> None:
    for text in ("!!int 12:30", "!!bool yes", "!!float 1_0", "!!null 0"):
        with pytest.raises(ValueError, match="not what its tag says"):
            read_yaml(f"key: {text}\n")
    assert read_yaml("key: !!int 12\n") == {"key": 12}


@given(st.permutations(["name", "size", "on"]), st.integers(0, 8))
@settings(max_examples=20, deadline=None)
def test_order_and_indentation_change_nothing(order: list[str], indent: int) -> None:
    values = {"name": "a", "size": 3, "on": "x"}
    text = json.dumps({key: values[key] for key in order}, indent=indent or None)
    assert reward(SHAPED, {"schema_str": json.dumps(SCHEMA), "schema_type": "json"}, text) == 1.0

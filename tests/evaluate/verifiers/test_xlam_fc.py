"""Function calls: neither their order nor that of their arguments means anything."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from blade_eval.verifiers import environment
from tests.evaluate.verifiers.attempts import called, plain, reward

CALLS = environment("xlam_fc", {})


def shuffled(value: Any, draw: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(sorted(value)))}
    return [shuffled(inner, draw) for inner in value] if isinstance(value, list) else value


@given(st.data(), st.lists(st.dictionaries(st.text(max_size=3), plain, max_size=3), min_size=1, max_size=3))
@settings(max_examples=80, deadline=None)
def test_neither_keys_nor_calls_have_an_order(data: st.DataObject, arguments: list[dict[str, Any]]) -> None:
    text = json.dumps(arguments).replace("NaN", "0").replace("-Infinity", "0").replace("Infinity", "0")
    arguments = json.loads(text)
    task = {"expected_answers": [{"name": "f", "arguments": each} for each in arguments]}
    made = [called("f", json.dumps(shuffled(each, data.draw))) for each in data.draw(st.permutations(arguments))]
    assert reward(CALLS, task, *made) == 1.0
    assert reward(CALLS, task, *made[1:]) == 0.0
    assert reward(CALLS, task, *made, made[0]) == 0.0

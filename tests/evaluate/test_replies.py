"""What a response says: its last message, its calls, its boxes and fences, whatever shape it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from blade_eval import fences, replies, task_row

CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("response", "text"), CASES["answers"])
def test_the_answer_is_the_last_message_without_its_thoughts(response: Any, text: str) -> None:
    assert replies.answer(response) == text


def test_a_hundred_thousand_fences_cost_one_pass() -> None:
    assert fences.closed("```x\n" * 100_000) == []


def test_fences_are_closed_ones() -> None:
    assert fences.closed("a\n```json\n{}\n```\nb\n  ```\n1\n2\n  ```\n```py\nopen") == ["{}", "1\n2"]
    listed = "1. Here:\n\n   ```python\n   def f(x):\n       return x\n\n   ```\n"  # as far in as its fence
    assert fences.closed(listed) == ["def f(x):\n    return x\n"] == fences.closed(listed.replace("\n   ", "\n\t"))
    assert fences.closed('say `x` and ```inline``` {"a": "```"}') == []


@pytest.mark.parametrize(
    ("item", "call"),
    [
        ({"name": "f", "arguments": '{"a": 1}'}, replies.Call("f", {"a": 1})),
        ({"name": "f", "arguments": {"a": 1}}, replies.Call("f", {"a": 1})),
        ({"name": "f", "arguments": ""}, replies.Call("f", {})),
        ({"name": "f"}, replies.Call("f", {})),
        ({"name": "f", "arguments": "[1]"}, replies.Call("f", None, "the arguments are not a JSON object")),
        ({"arguments": "{}"}, replies.Call("", None, "the call has no name")),
    ],
)
def test_calls_are_read_or_say_why_not(item: dict[str, Any], call: replies.Call) -> None:
    assert replies.calls({"output": [{"type": "function_call", **item}]}) == [call]


def test_the_question_is_what_users_asked() -> None:
    messages = [
        {"role": "system", "content": "s"}, {"role": "user", "content": "a"},
        {"role": "user", "content": [{"text": "b"}]},
    ]
    assert task_row.question({"responses_create_params": {"input": messages}}) == "a\n\nb"
    assert task_row.question({"responses_create_params": {"input": "a"}}) == "a"
    assert task_row.question({}) == ""

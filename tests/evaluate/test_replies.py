"""What a response says: its last message, its calls, its boxes and fences, whatever shape it has."""

from __future__ import annotations

from typing import Any

import pytest

from blade_eval import fences, replies, task_row
from tests.case_tables import tables

CASES = tables(__file__)


HALF = {"output": [{"type": "message", "role": "assistant", "content": "half \ud800 a pair"}]}  # which YAML cannot say


@pytest.mark.parametrize(("response", "text"), [*CASES["answers"], (HALF, "half ? a pair")])
def test_the_answer_is_the_last_message_without_its_thoughts(response: Any, text: str) -> None:
    assert replies.answer(response) == text


def test_fences_are_closed_ones_and_a_hundred_thousand_cost_one_pass() -> None:
    assert fences.closed("```x\n" * 100_000) == []
    assert fences.closed("a\n```json\n{}\n```\nb\n  ```\n1\n2\n  ```\n```py\nopen") == ["{}", "1\n2"]
    listed = "1. Here:\n\n   ```python\n   def f(x):\n       return x\n\n   ```\n"  # as far in as its fence
    assert fences.closed(listed) == ["def f(x):\n    return x\n"] == fences.closed(listed.replace("\n   ", "\n\t"))
    assert fences.closed('say `x` and ```inline``` {"a": "```"}') == []


@pytest.mark.parametrize(("item", "call"), CASES["calls"])
def test_calls_are_read_or_say_why_not(item: dict[str, Any], call: list[Any]) -> None:
    assert replies.calls({"output": [{"type": "function_call", **item}]}) == [replies.Call(*call)]


def test_the_question_is_what_users_asked() -> None:
    messages = [{"role": role, "content": said} for role, said in (("system", "s"), ("user", "a"), ("user", [{"text": "b"}]))]
    for row, text in (({"input": messages}, "a\n\nb"), ({"input": "a"}, "a"), (None, "")):
        assert task_row.question({"responses_create_params": row}) == text

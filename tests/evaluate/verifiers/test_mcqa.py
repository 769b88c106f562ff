"""Multiple choice: the letter that was declared, in odd forms, and letters that were not."""

from __future__ import annotations

from typing import Any

import pytest

from blade_eval.verifiers import environment
from tests.evaluate.verifiers.attempts import ANSWERS, judged, message, reward

LENIENT = environment("mcqa", {"grading_mode": "any_form"})
STRICT = environment("mcqa", {})
OPTIONS = [{"A": "Circle"}, {"B": "Square"}, {"C": "A red triangle"}, {"D": "Both A and B"}, {"E": "Ring"}]


def row(expected: str = "B", **more: Any) -> dict[str, Any]:
    return {
        "responses_create_params": {"input": "Which?"}, "options": OPTIONS, "expected_answer": expected, **more,
    }


@pytest.mark.parametrize("group", ANSWERS["letters"], ids=lambda group: group["why"])
def test_the_letter_that_is_extracted(group: dict[str, Any]) -> None:
    env = environment("mcqa", {"grading_mode": "any_form"})
    letters = [[text, judged(env, row("A", options=group["options"]), text)["extracted_answer"]] for text, _ in group["cases"]]
    assert letters == group["cases"]


def test_the_modes_of_the_row_are_kept_apart() -> None:
    strict, boxed, colon = "strict_single_letter_boxed", "lenient_boxed", "lenient_answer_colon"
    table = {
        "\\boxed{B}": (1, 1, 0), "\\boxed{b}": (0, 0, 0), "\\boxed{B. Square}": (1, 1, 0), "\\boxed{Square}": (0, 1, 0),
        "\\boxed{A red triangle}": (0, 0, 0), "Answer: B": (0, 0, 1), "ANSWER: square": (0, 0, 1), "Answer: B or C": (0, 0, 0),
        "The answer is B": (0, 0, 0),
    }
    for text, rewards in table.items():
        got = tuple(reward(LENIENT, row(grading_mode=mode), text) for mode in (strict, boxed, colon))
        assert got == rewards, text
    assert reward(STRICT, row(), "Answer: B") == 0.0
    assert reward(STRICT, row(), "\\boxed{B}") == 1.0


def test_the_expression_of_the_row_goes_first() -> None:
    own = {"template_metadata": {"output_regex": "Option Selected:\\s*([A-Za-z])"}}
    assert reward(STRICT, row(**own), "Option Selected: C. No: option selected: b") == 1.0
    assert reward(STRICT, row(**own), "\\boxed{B}") == 0.0
    broken = {"template_metadata": {"output_regex": "(["}}
    assert reward(STRICT, row(**broken), "\\boxed{B}") == 1.0


def test_an_expression_without_end_costs_the_answer_and_nothing_else() -> None:
    own = {"template_metadata": {"output_regex": "(b+)+$"}}
    assert judged(STRICT, row(**own), "b" * 60 + "!")["extracted_answer"] is None
    assert reward(STRICT, row(**own), "b") == 1.0


def test_options_come_in_three_shapes() -> None:
    for options in (OPTIONS, {"A": "Circle", "B": "Square"}, ["Circle", "Square"]):
        assert reward(LENIENT, {"options": options, "expected_answer": "Square"}, "Answer: B") == 1.0


def test_the_last_assistant_message_is_read_whatever_its_shape() -> None:
    assert reward(LENIENT, row(), message("Answer: C"), message("Answer: B")) == 1.0
    assert reward(LENIENT, row(), message("Answer: B"), message("Answer: C", role="user")) == 1.0
    assert reward(LENIENT, row(), [message("Answer: C")], [[message(["Answer: ", {"text": "B"}])]]) == 1.0
    assert reward(LENIENT, row(), {"type": "message", "role": "assistant", "content": None}) == 0.0

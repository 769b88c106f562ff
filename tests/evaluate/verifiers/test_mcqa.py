"""Multiple choice: the letter that was declared, in odd forms, and letters that were not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from blade_eval.environment import Unmeasured
from blade_eval.verifiers import environment
from tests.evaluate.verifiers.attempts import example, judged, message, responses, reward, shipped, survives

LENIENT = environment("mcqa", {"grading_mode": "any_form"})
STRICT = environment("mcqa", {})
OPTIONS = [{"A": "Circle"}, {"B": "Square"}, {"C": "A red triangle"}, {"D": "Both A and B"}, {"E": "Ring"}]


def row(expected: str = "B", **more: Any) -> dict[str, Any]:
    return {
        "responses_create_params": {"input": "Which?"}, "options": OPTIONS, "expected_answer": expected, **more,
    }


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{B}", "Final: \\boxed{ [B] }", "\\boxed{\\text{B: Square}}", "First \\boxed{C}, no: $\\boxed{\\mathbf{B}}$",
        "The answer is B.", "**Answer:** B", "Answer: B because it has four corners", "Answer: (b)", "Answer: Square",
        "The correct option is **B**.", "The answer is not C, so the answer is B.", "It has four corners.\n\nB", "b) Square",
        "I think it's B", "<think>Answer: C? No.</think>Answer: B", "Let me think, answer: C.</think>\nAnswer: B",
        "The correct answer is option (B).", "Option B is correct.", "Choice (B) is the right one.", "B is the correct answer.",
        "Therefore, B is correct.", "A is not right, so B is the best answer.", "(A) is wrong and (B) is correct.",
        "I believe that **B** is correct: it has four corners.", "A is correct at first sight.\n\nB",
        "Answer: C? No. Option B is correct.", "The answer is B!", "Answer: B!", "The answer is B?", "The correct answer is B。",
        "\\boxed{B!}", "It must be B: Square. Confidence: A+", "The answer is B, not C", "The best answer is B - Square",
        "Final answer: B — since C has three corners", "Only B is correct.", "Option B: Square is the correct answer.",
        "The answer is B, because it could not be C.", "The answer is B. No other shape has four corners.",
        "The answer is B, since a ring could be a circle.",
    ],
)
def test_a_right_letter_counts_in_any_form(text: str) -> None:
    assert judged(LENIENT, row(), text) == {"reward": 1.0, "expected_answer": "B", "extracted_answer": "B"}


@pytest.mark.parametrize(
    "text",
    [
        "", "Answer: B or C", "Answer: A or B", "Answer: B, C", "Answer: B/D", "The answer is B and C", "(A) and (B)",
        "The answer is not B", "Neither B nor C", "Bravo", "Answer: Blue", "\\boxed{B} was my first thought, but \\boxed{C}",
        "Answer: B? No. Final answer: C", "<think>Answer: B", "I cannot answer. Option B looks like a square.",
        "Vitamin B helps", "Answer: Q", "\\boxed{AB}", "Answer: b'x'", "I think the answer is B, but it could be C",
        "Answer: B, or maybe C", "Answer: B (it might also be option C)", "Option B is correct, but it could be C.",
        "The answer is B? No, C.", "Answer: B. Wait, that is a ring.", "B is not the correct answer.",
        "I don't think B is correct.", "If B is correct, the shape has corners.", "I doubt that B is correct.",
        "Either A or B is correct.", "Not only B is correct.", "Option B: Square is not the correct answer.",
        "Option B: Circle is the correct answer.", "Vitamin B is the best answer to that.",
        "B is correct in saying so, and wrong otherwise. It is C", "It must be C. Confidence: B", "It must be sure. Grade: B+",
    ],
)
def test_what_is_not_the_letter_does_not_count(text: str) -> None:
    assert reward(LENIENT, row(), text) == 0.0


@pytest.mark.parametrize(
    "text", ["", "Answer: B or C", "(A) and (B)", "<think>Answer: B", "\\boxed{}", "Answer: Q"]
)
def test_no_or_an_ambiguous_answer_is_null(text: str) -> None:
    assert judged(LENIENT, row(), text)["extracted_answer"] is None


def test_letters_in_the_text_of_the_option_are_no_second_answer() -> None:
    options = [{"A": "Circle"}, {"B": "Square"}, {"C": "A or B"}, {"D": "A, B"}]
    for text in (
        "Answer: C) A or B", "The answer is C: A or B.", "Option C is correct.", "Answer: C. A or B",
    ):
        assert judged(LENIENT, row("C", options=options), text)["extracted_answer"] == "C", text
    assert judged(LENIENT, row("C", options=options), "Answer: D: A, B")["extracted_answer"] == "D"
    assert judged(LENIENT, row("C", options=options), "Answer: C: A or B, or D")["extracted_answer"] is None


def test_an_article_is_no_letter() -> None:
    for text in ("Answer: A red triangle", "\\boxed{A red triangle}", "The answer is a red triangle."):
        assert judged(LENIENT, row("A"), text)["extracted_answer"] == "C"
    assert judged(LENIENT, row("A"), "Answer: A shape of which nobody knows")["extracted_answer"] is None
    assert judged(LENIENT, row("A"), "A round shape has no corners")["extracted_answer"] is None
    assert judged(LENIENT, row("A"), "Answer: A Circle")["extracted_answer"] == "A"
    assert judged(LENIENT, row("D"), "Answer: Both A and B")["extracted_answer"] == "D"


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


@pytest.mark.parametrize(
    "bad",
    [
        {}, {"options": OPTIONS}, {"options": [], "expected_answer": "A"}, row("Hexagon"), row(grading_mode="loud"),
    ],
)
def test_a_broken_task_is_not_the_models_fault(bad: dict[str, Any]) -> None:
    with pytest.raises(Unmeasured) as raised:
        judged(LENIENT, bad, "Answer: B")
    assert raised.value.kind == "task_invalid"
    assert raised.value.terminal


def test_the_last_assistant_message_is_read_whatever_its_shape() -> None:
    assert reward(LENIENT, row(), message("Answer: C"), message("Answer: B")) == 1.0
    assert reward(LENIENT, row(), message("Answer: B"), message("Answer: C", role="user")) == 1.0
    assert reward(LENIENT, row(), [message("Answer: C")], [[message(["Answer: ", {"text": "B"}])]]) == 1.0
    assert reward(LENIENT, row(), {"type": "message", "role": "assistant", "content": None}) == 0.0


@pytest.mark.parametrize(
    "sign",
    [
        ":", "(", "*", "final ", "answer ", "answer is ", "\\text{", "\\boxed{", ",", " ", "(A", "so B is ", "or ", "B, ",
    ],
)
def test_no_form_goes_astray_in_a_long_text(sign: str) -> None:
    for text in ("x " + sign * 30_000, "\\boxed{A" + sign * 30_000 + "}"):
        for mode in ("strict_single_letter_boxed", "lenient_boxed", "lenient_answer_colon", "any_form"):
            judged(LENIENT, row(grading_mode=mode), text)


@given(responses)
@settings(max_examples=60, deadline=None)
def test_nothing_a_model_puts_out_breaks_it(response: Any) -> None:
    survives(LENIENT, row(), response)


def test_the_shipped_example_is_judged() -> None:
    env = shipped("mcqa")
    rows = example("mcqa")
    assert len(rows) == 5
    for task in rows:
        assert reward(env, task, f"The answer is ({task['expected_answer']})") == 1.0
        assert reward(env, task, "I do not know") == 0.0

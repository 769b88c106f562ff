"""Text verifiers take bounded time and memory on any answer, and their lenient readings stop where they should."""

from __future__ import annotations

import asyncio
import resource
import time
from typing import Any

import pytest

from blade_eval.environment import Attempt
from blade_eval.verifiers import environment
from tests.evaluate.verifiers.attempts import responded, reward

MEGABYTE = 1 << 20
OPTIONS = {"options": [{"A": "Paris"}, {"B": "Rome"}, {"D": "42"}], "expected_answer": "A"}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"mcqa {mode}": ("mcqa", {**OPTIONS, "grading_mode": mode}) for mode in ("lenient_boxed", "lenient_answer_colon", "any_form")},
    **{f"match {mode}": ("string_match", {"expected_answer": "Paris", "extraction_mode": mode}) for mode in ("final_answer", "boxed", "last_line", "full_response")},
    "math": ("math_with_judge", {"expected_answer": "42"}),
    "transcript": ("asr_with_pc", {"text": "Hello there, my friend.", "task_type": "ASR-PC"}),
    "translation": ("wmt_translation", {"translation": "Hello there", "target_language": "de"}),
    "json rule": ("instruction_following", {"instruction_id_list": ["detectable_format:json_format"], "kwargs": [{}]}),
    "calls": ("xlam_fc", {"expected_answers": [{"name": "f", "arguments": {}}], "calls_in_text": True}),
    "refusal": ("xstest", {"label": "unsafe", "prompt": "x"}),
}  # fmt: skip
FLOODS = {
    "boxes, open": "\\boxed{" * (MEGABYTE // 7), "boxes, closed": "\\boxed{" * (MEGABYTE // 8) + "}" * (MEGABYTE // 8),
    "answers": "answer:" * (MEGABYTE // 7), "ligatures": "ﷺ" * (MEGABYTE // 3), "blanks": "a" + " " * MEGABYTE + "b",
}


@pytest.mark.parametrize("flood", FLOODS)
def test_h2_l3_a_megabyte_of_anything_costs_little(flood: str) -> None:
    """The memory of this process: what is computed elsewhere is limited by the kernel."""
    response = responded(FLOODS[flood])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name, (impl, row) in ROWS.items():
        verifier = environment(impl, {})
        begun = time.process_time()
        assert asyncio.run(verifier.verify(Attempt(row, response)))["reward"] < 0.01
        assert time.process_time() - begun < 5, name
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 * 1024


RIGHT = [
    "\\boxed{42}", "\\boxed{x = 42}", "\\boxed{6 \\cdot 7 = 42}", "\\boxed{1 + 41 = 42}", "\\boxed{42 = 42.0}", "\\boxed{f(1, 2) = 42}",
    "\\boxed{42 \\text{ cm}}", "\\boxed{P(X>3) = 42}", "\\boxed{\\sum_{i=1}^{3} i = 42}", "\\boxed{42 \\approx 41.99}", "\\boxed{42,}",
    "The answer is $x = 42$.", "\\boxed{n = 42, \\text{ for even n}}", "So 42",
]  # fmt: skip
NOT = [
    "\\boxed{\\neq 42}", "\\boxed{≠ 42}", "\\boxed{\\ge 42}", "\\boxed{x \\ge 42}", "\\boxed{> 42}", "\\boxed{\\lt 42}", "\\boxed{\\approx 42}",
    "\\boxed{41 = 42}", "\\boxed{42 = 41}", "\\boxed{x = 41 = 42}", "\\boxed{40, 41, 42}", "\\boxed{42, 41}", "\\boxed{40; 42}",
    "The answer is \\neq 42", "The answer is $\\neq 42$", "The answer is ≥ 42", "The answer is 41 = 42", "The answer is 40, 41, 42",
    "The answer is not 42", "40, 41, 42", "41 = 42", "\\neq 42",
]  # fmt: skip


@pytest.mark.parametrize("text", RIGHT)
def test_l4_a_value_that_is_said_is_read(text: str) -> None:
    assert reward(environment("math_with_judge", {}), {"expected_answer": "42"}, text) == 1.0


@pytest.mark.parametrize("text", NOT)
def test_l4_another_relation_or_several_values_are_not_the_value(text: str) -> None:
    assert reward(environment("math_with_judge", {}), {"expected_answer": "42"}, text) == 0.0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("1234", "\\boxed{1,\\!234}"), ("1,234", "\\boxed{1234}"), ("1, 2, 3", "\\boxed{1, 2, 3}"), ("1,2", "\\boxed{x=1, x=2}"),
        ("x > 3", "\\boxed{x > 3}"), ("\\sqrt{2}", "\\boxed{\\sqrt{2} \\approx 1.414}"), ("3", "\\boxed{x \\in \\{3\\}}"), ("(1,2)", "\\boxed{(1, 2)}"),
    ],
)  # fmt: skip
def test_l4_lists_and_relations_that_are_expected_are_right(expected: str, text: str) -> None:
    assert reward(environment("math_with_judge", {}), {"expected_answer": expected}, text) == 1.0


@pytest.mark.parametrize("mode", ["strict_single_letter_boxed", "lenient_boxed", "any_form"])
@pytest.mark.parametrize(
    ("said", "worth"),
    [
        *((text, 0.0) for text in ("A. Rome", "A = Rome", "A.\\ \\text{Rome}", "\\text{A}. Rome", "A (Rome)", "A. It is Rome", "A, i.e. Rome", "A. Rome is right", "A. $42$")),
        *((text, 1.0) for text in ("A", "A. Paris", "(A) Paris", "\\text{A. Paris}", "A. Paris, not Rome", "A. Paris because Rome is in Italy")),
    ],
)  # fmt: skip
def test_l4_a_letter_with_the_text_of_another_option_is_no_answer(mode: str, said: str, worth: float) -> None:
    assert reward(environment("mcqa", {}), {**OPTIONS, "grading_mode": mode}, f"\\boxed{{{said}}}") == worth

"""Text match: forms of the same answer, and answers that only look alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.errors import UsageError
from blade_eval.verifiers import environment
from blade_eval.verifiers.string_match import Rules, normal
from tests.evaluate.verifiers.attempts import judged, reward

OURS = {"ignore_articles": True, "ignore_punctuation": True, "normalize_numbers": True}
EXACT = environment("string_match", OURS)
FUZZY = environment("string_match", {**OURS, "match_mode": "fuzzy", "fuzzy_threshold": 85})
GYM = environment("string_match", {})


def row(expected: Any, **more: Any) -> dict[str, Any]:
    return {"expected_answer": expected, **more}


def test_near_is_enough_only_where_the_settings_say_so() -> None:
    for text in ("Answer: Mississipi", "Answer: the Missisippi"):
        assert reward(EXACT, row("Mississippi"), text) == 0.0
        assert reward(FUZZY, row("Mississippi"), text) == 1.0
    assert reward(FUZZY, row("Mississippi"), "Answer: Missouri") == 0.0
    assert judged(FUZZY, row("Mississippi"), "Answer: Mississippi")["similarity"] == 100.0


def test_without_settings_the_rules_are_gyms() -> None:
    assert reward(GYM, row("Paris"), "Answer:  PARIS ") == 1.0
    assert reward(GYM, row("Paris"), "Answer: Paris.") == 0.0
    assert reward(GYM, row("1000"), "Answer: 1,000") == 0.0
    assert reward(GYM, row("Paris", case_sensitive=True), "Answer: paris") == 0.0


def test_the_row_says_where_the_answer_stands() -> None:
    text = "Answer: one\nso \\boxed{two}\nthree"
    for mode, found in (
        ("final_answer", "one"), ("boxed", "two"), ("last_line", "three"), ("full_response", text),
    ):
        assert judged(GYM, row(found, extraction_mode=mode), text) == {
            "reward": 1.0, "expected_answer": found, "extracted_answer": found,
        }
    assert judged(GYM, row("x"), "nothing declared")["extracted_answer"] is None


def test_a_broken_setting_is_said() -> None:
    with pytest.raises(UsageError, match="match mode"):
        environment("string_match", {"match_mode": "soft"})


def test_all_accepted_answers_stay_in_the_row() -> None:
    assert judged(EXACT, row(["a", "b"]), "Answer: b")["expected_answer"] == ["a", "b"]


RULES = Rules(ignore_articles=True, ignore_punctuation=True, normalize_numbers=True)


@given(st.text(max_size=30))
@settings(max_examples=200, deadline=None)
def test_the_normal_form_ignores_space_and_case_of_plain_letters(text: str) -> None:
    once = normal(text, RULES, False)
    assert normal(f"  {text}\n", RULES, False) == once
    if text.isascii():
        assert normal(text.swapcase(), RULES, False) == once

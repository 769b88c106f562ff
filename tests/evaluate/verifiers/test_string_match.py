"""Text match: forms of the same answer, and answers that only look alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.errors import UsageError
from blade_eval.environment import Unmeasured
from blade_eval.verifiers import environment
from blade_eval.verifiers.string_match import Rules, normal
from tests.evaluate.verifiers.attempts import example, judged, responses, reward, shipped, survives

OURS = {"ignore_articles": True, "ignore_punctuation": True, "normalize_numbers": True}
EXACT = environment("string_match", OURS)
FUZZY = environment("string_match", {**OURS, "match_mode": "fuzzy", "fuzzy_threshold": 85})
GYM = environment("string_match", {})


def row(expected: Any, **more: Any) -> dict[str, Any]:
    return {"expected_answer": expected, **more}


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("Paris", "Answer: paris"), ("Paris", "**Final answer:** *Paris*."),
        ("Paris", "Answer: London\nNo. Final answer:\n\n“Paris”"), ("Paris", "It is \\boxed{\\text{Paris}}"),
        ("Great Wall", "Answer: the  Great\tWall!"), ("1,000", "Answer: 1000"), ("12", "Answer: twelve"),
        ("twenty-one", "Answer: 21."), ("-5", "Answer: −5"), ("2", "Answer: 2.0"), ("ﬁlm", "Answer: film"),
        ("x^2", "Answer: x²"), ("Zürich", "Answer: Zu\u0308rich"), ("Paris", "Answer: Par\u200bis"),
        ("(Paris)", "Answer: Paris"), ("A", "Answer: A"), (["colour", "color"], "Answer: Color"), (7, "Answer: 7"),
    ],
)
def test_the_same_answer_in_another_form(expected: Any, text: str) -> None:
    assert reward(EXACT, row(expected), text) == 1.0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("Paris", "Paris"), ("Paris", "Answer: not Paris"), ("Paris", "Answer: Paris or London"),
        ("Paris", "Answer: Paris\nFinal answer: London"), ("Paris", "<think>Answer: Paris"), ("Paris", "Answer:"),
        ("5", "Answer: -5"), ("314", "Answer: 3.14"), ("102", "Answer: 10²"), ("15", "Answer: 1,5"), ("3.10", "Answer: 3.1"),
        ("7", "Answer: 007"), ("C", "Answer: C#"), ("C", "Answer: C++"), ("10", "Answer: 10%"), ("yes", "Answer: yes, but no"),
        ("the", "Answer: a"), ("12", "Answer: 1 2"),
    ],
)
def test_another_answer_that_looks_alike(expected: Any, text: str) -> None:
    assert reward(EXACT, row(expected), text) == 0.0


def test_near_is_enough_only_where_the_settings_say_so() -> None:
    for text in ("Answer: Mississipi", "Answer: the Missisippi"):
        assert reward(EXACT, row("Mississippi"), text) == 0.0
        assert reward(FUZZY, row("Mississippi"), text) == 1.0
    assert reward(FUZZY, row("Mississippi"), "Answer: Missouri") == 0.0
    assert judged(FUZZY, row("Mississippi"), "Answer: Mississippi")["similarity"] == 100.0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("The treaty of 1648 ended the long war", "Answer: The treaty of 1649 ended the long war"),
        ("the defendant was found guilty by the court", "Answer: the defendant was not found guilty by the court"),
        ("it does work with every version of it", "Answer: it doesn't work with every version of it"),
        ("the balance is -250 euros on the account", "Answer: the balance is 250 euros on the account"),
        ("it is possible to open the box with that key", "Answer: it is impossible to open the box with that key"),
        ("ships with the battery in the box", "Answer: ships without the battery in the box"),
    ],
)
def test_near_forgives_no_number_and_no_negation(expected: str, text: str) -> None:
    assert reward(FUZZY, row(expected), text) == 0.0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("King Charles II of England", "Answer: King Charles I of England"),
        ("World War II in the Pacific", "Answer: World War III in the Pacific"),
        ("Pope Benedict XVI of Rome", "Answer: Pope Benedict XIV of Rome"),
        ("Queen Elizabeth I of England", "Answer: Queen Elizabeth of England"),
        ("Inscribed in MDCCLXXVI on stone", "Answer: Inscribed in MDCCLXXIV on stone"),
        ("President George H. W. Bush", "Answer: President George W. Bush"),
        ("President George W. Bush", "Answer: President George H. W. Bush"),
        ("the hepatitis B virus infection", "Answer: the hepatitis C virus infection"),
        ("deficiency of vitamin A", "Answer: deficiency of vitamin"),
    ],
)
def test_near_forgives_no_numeral_and_no_initial(expected: str, text: str) -> None:
    assert reward(FUZZY, row(expected), text) == 0.0
    assert reward(FUZZY, row(expected), f"Answer: {expected}") == 1.0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("King Charles II of England", "Answer: King Charls II of England"),
        ("President George H. W. Bush", "Answer: President Goerge H.W. Bush"),
        ("President George H. W. Bush", "Answer: President George HW Bush"),
        ("the U.S. Senate in Washington", "Answer: the US Senate in Washington"),
        ("it is a very large animal", "Answer: it is very large animal"),
        ("Hobson's choice of horses", "Answer: Hobsons choice of horses"),
        ("a mix of the civil and the vivid", "Answer: a mix of the civl and the vivid"),
    ],
)
def test_near_forgives_spelling_beside_numerals_and_initials(expected: str, text: str) -> None:
    assert reward(FUZZY, row(expected), text) == 1.0


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


def test_a_broken_task_or_setting_is_said() -> None:
    for bad in ({}, row([]), row("  "), row("x", extraction_mode="tea leaves")):
        with pytest.raises(Unmeasured, match="task_invalid"):
            judged(EXACT, bad, "Answer: x")
    with pytest.raises(UsageError, match="match mode"):
        environment("string_match", {"match_mode": "soft"})


@pytest.mark.parametrize("sign", ["(", "answer: ", "*", "1,000,", "-", "'", "²", "final "])
def test_no_rule_goes_astray_in_a_long_text(sign: str) -> None:
    closing = ")" if sign == "(" else ""
    for mode in ("final_answer", "boxed", "last_line", "full_response"):
        text = "Answer: " + sign * 30_000 + closing * 30_000
        assert reward(FUZZY, row("x", extraction_mode=mode), text) == 0.0


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


@given(responses)
@settings(max_examples=60, deadline=None)
def test_nothing_a_model_puts_out_breaks_it(response: Any) -> None:
    survives(FUZZY, row("Paris"), response)


def test_the_shipped_example_is_judged() -> None:
    env = shipped("string_match")
    for task in example("string_match"):
        expected = task["expected_answer"]
        first = expected[0] if isinstance(expected, list) else expected
        assert reward(env, task, f"Answer: {first}") == 1.0
        assert reward(env, task, "Answer: something else") == 0.0

"""Answers that are equal once decoration is gone, and those that are not."""

from __future__ import annotations

import pytest

from blade import answers


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("$4.00", "4", True),
        ("1,000", "1000", True),
        ("**Paris**.", "paris", True),
        ("The Hague", "hague", True),
        ("12 cm", "12", True),
        ("\\text{B}", "b", True),
        ("4.5", "45", False),
        ("Paris", "London", False),
        ("3 or 4", "3", False),
        ("", "", False),
    ],
)
def test_equal_answers(one: str, other: str, equal: bool) -> None:
    assert answers.same(one, other) is equal


def test_the_answer_a_text_gives() -> None:
    assert answers.answer_in(r"so \boxed{\frac{1}{2}} it is, no: \boxed{3}") == "3"
    assert answers.boxed(r"\boxed{\frac{1}{2}}") == r"\frac{1}{2}"
    assert answers.boxed(r"\boxed{open") is None
    assert answers.answer_in("After thought, the answer is: 42") == "42"
    assert answers.answer_in("short") == "short"
    assert answers.answer_in("long " * 40) is None
    assert answers.answer_in("  ") is None


def test_an_answer_is_mentioned_as_words_of_its_own() -> None:
    assert answers.mentions("it is 42, I think", "42") == 6
    assert answers.mentions("it is 142", "42") == -1
    assert answers.mentions("it is 42.5", "42") == -1
    assert answers.mentions("anything", " ") == -1

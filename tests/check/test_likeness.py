"""What two printed numbers have to do with each other: the same at their precision, or another one."""

from __future__ import annotations

import pytest

from blade.check.likeness import same_slot, word_differences
from blade.prose.slots import slots


def same(one: str, other: str) -> bool:
    (first,), (second,) = slots(one), slots(other)
    return same_slot(first, second)


@pytest.mark.parametrize(
    ("one", "other"), [("0.96", "0.962"), ("67%", "67.2%"), ("1.0", "1"), ("12", "12.4"), ("0%", "0.4%")]
)
def test_a_coarser_number_is_the_same(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"), [("1", "0.96"), ("0.96", "1"), ("0", "0.04"), ("67.2", "67.8"), ("99.6%", "100%")]
)
def test_a_bare_one_or_nought_is_no_rounded_share(one: str, other: str) -> None:
    assert not same(one, other)


ONE_REPEAT = "With one repeat per task a task cannot be seen to pass sometimes."


@pytest.mark.parametrize(
    "text",
    [
        "With one repeat per task no task passes sometimes.",
        "With one repeat per task no task can be seen to pass sometimes.",
        "With one repeat per task tasks never pass sometimes.",
    ],
)
def test_a_negation_in_another_place_of_the_clause_denies_the_same(text: str) -> None:
    assert not word_differences(text, ONE_REPEAT)


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("With one repeat per task a task can be seen to pass sometimes.", ONE_REPEAT),
        ("With one repeat per task a task is seen to pass sometimes.", ONE_REPEAT),
        ("With one repeat per task no task cannot be seen to pass sometimes.", ONE_REPEAT),
        ("With one repeat per task a task cannot be seen to pass always.", ONE_REPEAT),
        (
            "The first rule does not fire here and the second one does.",
            "The first rule does fire here and the second one does not.",
        ),
    ],
)
def test_a_negation_more_or_less_or_in_another_clause_turns_it_round(text: str, reference: str) -> None:
    assert word_differences(text, reference)

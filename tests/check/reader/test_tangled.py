"""True sentences that say less, or something else, than their numbers: none is called false."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.model import CONTRADICTED
from tests.check.conftest import Told

TRUE = [
    "Three rollouts failed with a 503.",
    "Two rollouts failed because of the token limit.",
    "Six rollouts fail because update_order is never called.",
    "11 rollouts failed after an ignored error.",
    "One rollout of task 12 failed.",
    "Three rollouts of task 14 failed.",
    "No rollout of task 8 passed.",
    "Neither 8/0 nor 8/1 passes.",
    "None of the four rollouts of task 8 passed.",
    "It is false that task 8 passed.",
    "If task 8 passed, the score would be higher.",
    "All tasks except task 8 and task 17 passed at least once.",
    "Rollout 8/0 passed a wrong argument to `update_order`.",
    "1 in 3 rollouts fails.",
    "Four tasks have only three scored rollouts: 5, 7, 11 and 22.",
]


@pytest.mark.parametrize("text", TRUE)
def test_a_true_sentence_is_not_called_false(told: Told, text: str) -> None:
    assert not [one for one in checked(text, told.world) if one.verdict == CONTRADICTED]


@pytest.mark.parametrize(
    "text",
    ["40 rollouts failed.", "Task 8 passed.", "Rollout 8/0 passed.", "12 tasks always pass.", "Task 14 never passes."],
)
def test_the_plain_false_sentence_still_is(told: Told, text: str) -> None:
    assert [one for one in checked(text, told.world) if one.verdict == CONTRADICTED]

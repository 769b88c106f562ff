"""What a person says of a slice, a behaviour or a kind of row: true and false twins on a simulated run."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.model import CONTRADICTED, SUPPORTED
from tests.check.conftest import Told

# A sentence, what is true in it and what is not.
TWINS = [
    ("Hard tasks pass in {} of cases.", "41.7%", "47.1%"),
    ("The weakest slice is hard at {}.", "42%", "24%"),
    ("Easy ones do best ({}).", "91.7%", "41.7%"),
    ("ignored_error fires in {} of 28 failing rollouts.", "11", "12"),
    ("ignored_error fires in 11 of 28 failing rollouts and in {} of the passing ones.", "none", "2"),
    ("ignored_error fires on none of the {} passing rollouts.", "61", "60"),
    ("`wrong_arg_field` shows in {} of the failing rollouts.", "39%", "93%"),
    ("There are {} lost rows.", "2", "3"),
    ("We count {} errored rollouts.", "three", "five"),
    ("Of the lost score, infrastructure accounts for {}.", "10.5%", "15%"),
]


@pytest.mark.parametrize(("text", "true", "false"), TWINS)
def test_the_true_one_is_no_fault_and_the_false_one_is(told: Told, text: str, true: str, false: str) -> None:
    right, wrong = (checked(text.format(each), told.world) for each in (true, false))
    assert not [one for one in right if one.verdict == CONTRADICTED]
    assert [one for one in wrong if one.verdict == CONTRADICTED]
    if true != "none":
        assert [one for one in right if one.verdict == SUPPORTED]


@pytest.mark.parametrize(
    "text",
    [
        "Task 2 fails because of ignored_error.",
        "Rollout 2/2 fails: ignored_error at step 8.",
        "Task 14 fails due to an ignored error (ignored_error), as does task 6.",
        "On the hard slice the pass rate is 39%, counted by rows.",
        "32 of 35 easy rollouts pass (91.4%).",
        "Hard tasks take 47% of the tokens.",
        "Hard tasks make up 25% of the tasks.",
        "Hard tasks fell by 12 points.",
        "Of the hard tasks that call search_policy 73% pass.",
        "In task 4 there are 3 lost rows.",
        "ignored_error and wrong_arg_field together fire in 22 failing rollouts.",
        "Infrastructure accounts for 40% of our costs.",
    ],
)
def test_what_may_be_another_number_is_no_fault(told: Told, text: str) -> None:
    assert not [one for one in checked(text, told.world) if one.verdict == CONTRADICTED]

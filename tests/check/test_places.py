"""A number behind `step`, `repeat` or `row` says which one is meant; before it, it counts them."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.check.places import numbered
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE

from .conftest import Told


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("the summary at step 37 has none", [(37,)]),
        ("the failing repeat 1 calls it at step 10.", [(1,), (10,)]),
        ("steps 4 and 7", [(4, 7)]),
        ("steps 12-18 of it", [(12, 18)]),
        ("step 4 to 7", [(4, 7)]),
        ("rows 3, 5, and 9", [(3, 5, 9)]),
        ("4 tasks fail at step 4", [(4,)]),
        ("at step 4 and 7 tasks fail", [(4,)]),
        ("at steps 4, 5, 12 failing tasks pass", [(4, 5)]),
        ("line 3, turn 4, index 5", [(3,), (4,), (5,)]),
        # near by: what is counted, measured or spread
        ("4 steps, 3 repeats", []),
        ("rollouts 200, repeats 4, steps 12", []),
        ("it repeats 3 times", []),
        ("in turn 3 tasks fail", []),
        ("mean step 12.4, per step 4", []),
        ("steps: 4; step 40%", []),
    ],
)
def test_numbers_that_name_are_told_from_those_that_count(text: str, numbers: list[tuple[int, ...]]) -> None:
    assert [one.numbers for one in numbered(text)] == numbers


def verdicts(told: Told, text: str) -> list[tuple[str, str, str]]:
    return [(one.verdict, one.kind, one.found) for one in checked(text, told.world)]


@pytest.mark.parametrize(
    "text",
    [
        "The summary at step 37 has none of the failing rollouts.",
        "The failing repeat 1 says at step 10 that it passed.",
        "At step 4 the model states the wrong count and fails.",
        "Rows 3 and 5 fail, and so does the rollout in line 7.",
    ],
)
def test_the_number_of_a_step_is_no_amount(told: Told, text: str) -> None:
    assert verdicts(told, text) == []


@pytest.mark.parametrize(
    ("text", "found", "verdict"),
    [
        ("24 tasks reach step 4.", "24", SUPPORTED),
        ("9 tasks fail at step 4.", "9", UNVERIFIABLE),
        ("Of 24 tasks, 9 passed in every repeat; see step 4.", "9", SUPPORTED),
        ("12 tasks always pass; see step 4.", "12", CONTRADICTED),
        ("The run has 25 tasks; see repeat 1 and step 4.", "25", CONTRADICTED),
    ],
)
def test_a_count_beside_a_step_is_still_held_against_the_rows(
    told: Told, text: str, found: str, verdict: str
) -> None:
    assert (verdict, "count", found) in verdicts(told, text)
    assert not any(kind == "count" and what in ("1", "4") for _, kind, what in verdicts(told, text))


@pytest.mark.parametrize(
    ("text", "kind", "found", "verdict"),
    [
        ("`4/1` calls it at step 4.", "step", "step 4", SUPPORTED),
        ("`4/1` calls it at step 99.", "step", "step 99", CONTRADICTED),
        ("`4/1` calls it at steps 2 and 50.", "step", "steps 2 and 50", CONTRADICTED),
        ("`4/1` calls it at steps 2 to 5.", "step", "steps 2 to 5", SUPPORTED),
        ("`4/1` calls it. It stops at step 99.", "step", "step 99", CONTRADICTED),
        ("## Task 4\n\nIt stops at step 99.", "step", "step 99", CONTRADICTED),
        ("## Task 4\n\nIt stops at step 12.", "step", "step 12", SUPPORTED),
        ("In task 4 repeat 1 stops at step 12.", "step", "step 12", CONTRADICTED),
        ("In task 4 repeat 0 stops at step 12.", "step", "step 12", SUPPORTED),
        ("In task 4 repeat 1 stops.", "id", "repeat 1", SUPPORTED),
        ("In task 4 repeat 9 stops.", "id", "repeat 9", CONTRADICTED),
        ("It stops at step 8 in `8/0` and at step 60 of `4/1`.", "step", "step 60", CONTRADICTED),
        ("It stops at step 8 in `8/0` and at step 60 of `4/1`.", "step", "step 8", SUPPORTED),
    ],
)
def test_a_step_is_held_against_the_rollout_that_is_named(
    told: Told, text: str, kind: str, found: str, verdict: str
) -> None:
    assert (verdict, kind, found) in verdicts(told, text)


@pytest.mark.parametrize(
    "text",
    [
        "It stops at step 99.",
        "In task 4 they repeat 12 calls.",
        "Training step 500 of the model that made `4/1`.",
        "In `4/1` it reads “at step 99 it is all over”, so to speak.",
    ],
)
def test_what_is_no_step_or_repeat_of_a_rollout_is_left_alone(told: Told, text: str) -> None:
    assert not any(kind == "step" or what.startswith("repeat") for _, kind, what in verdicts(told, text))

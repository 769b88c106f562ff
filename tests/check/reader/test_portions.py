"""Sentences about a part of a run: true ones raise no alarm, and a wrong one is found where it is sure."""

from __future__ import annotations

import pytest

from blade.check.world import World
from tests.check.reader.worlds import said

# of 12 tasks with four repeats each, 5 pass sometimes (9 of 20 rollouts), 4 never, 8 at least once (21 of 32)
SUPPORTED = (
    "Flaky tasks pass 9 of 20 rollouts.",
    "The 5 flaky tasks pass 9 of 20 rollouts, i.e. 45.0%.",
    "Never-passing tasks fail 16 of 16 rollouts.",
    "The 8 solved tasks pass 21 of 32 rollouts.",
    "Solved tasks pass 65.6% of rollouts.",
    "The number of tasks solved 4/4 (3) is lower than that solved 0/4 (4).",
)
FALSE = (
    "Flaky tasks pass 12 of 20 rollouts.",
    "Never-passing tasks fail 14 of 16 rollouts.",
    "The number of tasks solved 4/4 (5) is higher than that solved 0/4 (4).",
    "alpha passes 12 of 22 rollouts.",
    "Task 10 passes 3 times out of 4.",
)
OPEN = (
    "Flaky tasks pass 9 of all 48 rollouts.",
    "All 48 of 48 rollouts were scored.",
    "Task 10 passes two times in eight.",
    "Task 10 fails six times out of eight.",
    "Tasks 0 to 3 pass 12 of 16 rollouts.",
    "Of the rollouts that never call `find` 0% pass (0 of 9), against 54% (21 of 39) of those that do.",
    "Nine never look the customer up (0 of 9 pass).",
)
# alpha fails 4 tasks for good, of which beta solves 2; beta solves all 8 that alpha solves
TWO = (
    ("Of the 4 tasks alpha fails, beta solves 2 (50%).", "Of the 4 tasks alpha fails, beta solves 2 (80%)."),
    ("alpha gains 0 tasks over beta and loses 2.", "alpha gains 0 tasks over beta and loses 6."),
    ("2 tasks are lost against beta.", "6 tasks are lost against beta."),
    ("Of the 4 tasks that alpha fails, beta solves 2.", "Of the 4 tasks that alpha fails, beta solves 3."),
    ("beta solves 8 of the 8 tasks that alpha solves.", "beta solves 5 of the 8 tasks that alpha solves."),
    ("beta solves 2 of the 4 tasks that alpha fails.", "beta solves 4 of the 4 tasks that alpha fails."),
    ("Moving from beta to alpha loses 2 tasks.", "With beta, 4 tasks are lost."),
    ("With alpha, 2 tasks are lost.", "With alpha, 6 tasks are lost."),
    ("Compared with beta, 2 tasks are lost.", "Compared with alpha, 2 tasks are lost."),
)


@pytest.mark.parametrize("text", SUPPORTED)
def test_a_part_of_a_run_is_held_against_its_own_rollouts(alpha: World, text: str) -> None:
    assert said(text, alpha, "supported")
    assert not said(text, alpha, "contradicted")


@pytest.mark.parametrize("text", FALSE)
def test_a_wrong_number_of_a_part_is_found(alpha: World, text: str) -> None:
    assert said(text, alpha, "contradicted")


@pytest.mark.parametrize("text", OPEN)
def test_what_may_be_said_of_another_part_raises_no_alarm(alpha: World, text: str) -> None:
    assert not said(text, alpha, "contradicted")


@pytest.mark.parametrize(("true", "false"), TWO)
def test_one_run_over_what_the_other_does(both: World, true: str, false: str) -> None:
    assert said(true, both, "supported")
    assert not said(true, both, "contradicted")
    assert said(false, both, "contradicted")


def test_the_measure_behind_a_number_says_what_it_is(alpha: World) -> None:
    assert said("The score is 43.8% at pass@1.", alpha, "supported")
    assert not said("The score is 43.8% at pass@4.", alpha, "supported")


def test_a_threshold_is_no_count(alpha: World) -> None:
    found = said(
        "Nine tasks fail at least once, and only two of them more than three times.", alpha, "supported"
    )
    assert "more than three" not in [one.found for one in found]

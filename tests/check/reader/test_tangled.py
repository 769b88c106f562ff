"""True sentences that say less, or something else, than their numbers: none is called false."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade import pipeline
from blade.check import checked
from blade.check.world import World, world
from blade.model import CONTRADICTED
from blade.pipeline.comparing import compare
from blade.store.index import Silent
from tests.builders import make_run
from tests.check.conftest import Told
from tests.check.reader.worlds import ALPHA, rows

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
    # how often each passed
    "Three tasks pass exactly once.",
    "Five tasks pass at most once.",
    "Four tasks with four scored rollouts pass twice, six pass three times.",
    "Tasks with three passes: 6.",
    # a part that is named before
    "12 rollouts call `issue_refund`; 5 of those fail and 7 pass.",
    "I read 20 rollouts by hand: 12 fail, 8 pass.",
    "The 10 refund tasks: 31 passes, 9 failures.",
    "We looked at 10 tasks. 6 fail and 4 pass.",
    "28 rollouts fail: 20 are long, 8 are short.",
    "31 rows score 0.",
    "31 rows (34%) get 0.",
    "20 tasks have four rows.",
    # a share of no set
    "Two out of three rollouts pass.",
    "7 of 10 attempts succeed.",
    "Roughly two in three rollouts pass.",
    "Three rollouts in ten fail.",
    "Out of every hundred rollouts, 66 pass.",
    "Almost three quarters of the rollouts pass (66%).",
    # a task that another clause names
    "Nine tasks pass every time, 13 pass some of the time, and only tasks 8 and 17 never pass.",
    "Nine tasks pass every time, 13 are flaky, and task 8 never passes.",
    # exceptions and denials
    "All but two tasks pass at least once.",
    "Not even three quarters of the rollouts pass.",
    # another time, another source, a wish
    "Last month the pass rate was 58%.",
    "The paper reports a pass rate of 71%.",
    "Smith et al. (2024) report a pass rate of 71%.",
    "We want a pass rate of 80%.",
    "An earlier version of the agent passed 50 of 92 rollouts.",
    "With a better prompt we hope to pass 80 of 92 rollouts.",
]


@pytest.mark.parametrize("text", TRUE)
def test_a_true_sentence_is_not_called_false(told: Told, text: str) -> None:
    assert not [one for one in checked(text, told.world) if one.verdict == CONTRADICTED]


FALSE = [
    "40 rollouts failed.",
    "Task 8 passed.",
    "Rollout 8/0 passed.",
    "12 tasks always pass.",
    "Task 14 never passes.",
    "One out of three rollouts passes.",
    "9 of 22 tasks always pass.",
    "The run has 30 tasks.",
    "Most rollouts fail (34%).",
    "Nine tasks pass every time; 15 are flaky.",
]


@pytest.mark.parametrize("text", FALSE)
def test_the_plain_false_sentence_still_is(told: Told, text: str) -> None:
    assert [one for one in checked(text, told.world) if one.verdict == CONTRADICTED]


CAVEATS = [
    "alpha is not worse on every task: it wins none.",
    "beta is better than alpha, but the difference may be noise.",
    "beta is ahead by 35.4 points, though not on every task.",
    "alpha is worse than beta, but not dramatically so.",
]


@pytest.mark.parametrize("text", CAVEATS)
def test_a_caveat_does_not_turn_a_true_direction_round(both: World, text: str) -> None:
    assert not [one for one in checked(text, both) if one.verdict == CONTRADICTED]


def test_a_difference_that_is_not_significant_may_still_be_one(tmp_path: Path) -> None:
    close = {task: passed + (task == 2) for task, passed in ALPHA.items()}
    files = [
        make_run(tmp_path / name, rows(passes, name), name=name)
        for name, passes in (("alpha", ALPHA), ("gamma", close))
    ]
    loaded = pipeline.load([str(file) for file in files], Silent())
    known = world(compare(loaded, "test"), loaded)
    for text in (
        "gamma is slightly better, but the difference is not significant.",
        "gamma is ahead by 2.1 points, which is not statistically significant.",
        "gamma is 2.1 points better and this is not significant.",
        "gamma leads, but not by a significant margin.",
    ):
        assert not [one for one in checked(text, known) if one.verdict == CONTRADICTED], text
    wrong = "gamma is significantly better than alpha."
    assert [one for one in checked(wrong, known) if one.verdict == CONTRADICTED]

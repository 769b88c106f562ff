"""Flags about the evaluation itself: each fires on its fault and is silent on a sound run."""

from __future__ import annotations

from typing import Any

import pytest

from blade.measure.health import health, share
from blade.measure.scoring import scoring
from blade.model import Evidence, Health, Level
from tests.measure.builders import F1_A, make_coverage, make_rollouts

SOUND = {str(i): [1.0, 0.0] for i in range(20)}
ROWS = 40


def flags(rewards: Any, missing: Any = None, threshold: float | None = None, **columns: Any) -> dict[str, Health]:
    rollouts = make_rollouts(rewards, **columns)
    coverage = make_coverage(rollouts, **(missing or {}))

    def quote(position: int, field: str) -> Evidence | None:
        task = rollouts.task_keys[rollouts.task[position]]
        return Evidence("run", task, int(rollouts.repeat[position]), field=field, quote="…")

    return {each.flag: each for each in health(rollouts, coverage, scoring(rollouts, threshold), quote)}


def some(n: int, of: int = ROWS) -> list[bool]:
    return [i < n for i in range(of)]


def test_a_sound_run_has_no_flag() -> None:
    assert flags(F1_A) == {}


def test_lost_rows_are_named_by_their_keys() -> None:
    found = flags(SOUND, {"lost": [("0", 2), ("1", 2), ("2", 2), ("3", 2)]})["lost_rows"]
    assert found.level is Level.PROBLEM
    assert found.text == "4 of 44 rows (9.1%) are missing and not counted."
    assert (found.value, found.n) == (pytest.approx(4 / 44), 44)
    assert found.evidence == tuple(Evidence("run", task, 2) for task in "012")
    assert flags(SOUND, {"lost": [("0", 2)]})["lost_rows"].level is Level.WARNING


def test_failed_and_masked_rows() -> None:
    found = flags(SOUND, {"failed": [("0", 2)]}, masked=some(2))
    assert found["failed_rows"].text.startswith("1 of 41 rows (2.4%)")
    masked = found["masked_rows"]
    assert masked.text.startswith("2 of 41 rows (4.9%)")
    assert [each.field for each in masked.evidence] == ["mask_sample", "mask_sample"]


def numbered(*absent: int, first: int = 0, n: int = 60, expected_from: str = "inferred: tasks x modal repeats") -> Health | None:
    """The flag of a run whose tasks are numbered, some of them left out."""
    rewards = {str(task): [1.0, 0.0] for task in range(first, first + n) if task not in absent}
    return flags(rewards, {"expected_from": expected_from}).get("absent_tasks")


@pytest.mark.parametrize("first", [0, 1])
def test_a_gap_in_the_numbers_of_tasks_is_told(first: int) -> None:
    found = numbered(17, 41, first=first)
    assert found is not None
    assert found.level is Level.WARNING
    assert found.text == "No row has the task index 17, 41: 2 of 60 tasks may be missing altogether and not counted."
    assert (found.value, found.n) == (pytest.approx(2 / 60), 60)


def test_of_many_absent_tasks_the_first_are_named() -> None:
    found = numbered(*range(50, 150, 10), n=300)
    assert found is not None
    assert found.text.startswith("No row has the task index 50, 60, 70, 80, 90, …: 10 of 300 tasks")


def test_tasks_that_were_chosen_or_are_listed_have_no_gap() -> None:
    assert numbered() is None
    assert numbered(10, 20, 30, 40) is None  # more than one in twenty: somebody's choice
    assert numbered(17, first=2) is None  # a part of a longer list
    assert numbered(5, n=20) is None  # 19 tasks are few
    assert numbered(5, n=21) is not None
    assert numbered(17, expected_from="materialized inputs") is None
    named = {f"desk-{task}": [1.0, 0.0] for task in range(60) if task != 17}
    assert "absent_tasks" not in flags(named, {"expected_from": "inferred: tasks x modal repeats"})


def test_expected_inferred_unexpected_and_superseded() -> None:
    found = flags(SOUND, {"expected_from": "inferred: tasks x modal repeats", "unexpected": 3, "superseded": 2})
    assert found["expected_inferred"].level is Level.INFO
    assert found["expected_inferred"].text.endswith("40 are inferred: tasks x modal repeats.")
    assert found["unexpected_keys"].level is Level.WARNING
    assert found["superseded_attempts"].value == pytest.approx(2 / 40)


def test_duplicates() -> None:
    rows = [("a", 0, 1.0), ("a", 0, 0.0), ("a", 1, 0.0), ("b", 0, 1.0), ("b", 1, 1.0)]
    found = flags(rows, {"duplicates": 4, "identical_duplicates": 3})
    assert found["identical_duplicates"].level is Level.WARNING
    differing = found["differing_duplicates"]
    assert differing.text.startswith("1 rows share task and repeat with a row that differs (1 keys)")
    assert [(each.task, each.repeat) for each in differing.evidence] == [("a", 0), ("a", 0)]


def test_unscored_rewards() -> None:
    found = flags({"a": [1.0, None], "b": [0.0, 1.0]})["unscored_rewards"]
    assert found.level is Level.PROBLEM
    assert found.text == "1 of 4 rows (25.0%) have no usable reward; they count as 0 and do not pass."
    nothing = flags({"a": [None, None]})
    assert nothing["unscored_rewards"].text.startswith("2 of 2 rows (100%)")
    assert "constant_reward" not in nothing


def test_constant_copied_and_unbounded_rewards() -> None:
    assert flags({"a": [0.0, 0.0]})["constant_reward"].text.startswith("All 2 rewards are 0, so")
    copied = flags({"a": [0.0571, 0.0571]})["batch_copied_reward"]
    assert (copied.level, copied.value) == (Level.PROBLEM, pytest.approx(0.0571))
    unbounded = flags({"a": [-1.0, 0.0], "b": [1.0, 9.0]})["unbounded_reward"]
    assert unbounded.text == "Rewards run from -1 to 9; there is no pass rate until a pass threshold is given."
    assert [each.task for each in unbounded.evidence] == ["a", "b"]
    given = flags({"a": [-1.0, 0.0], "b": [1.0, 9.0]}, threshold=5.0)["unbounded_reward"]
    assert given.text.endswith("a row passes at 5.")


def test_graded_rewards() -> None:
    found = flags({"a": [0.1, 0.4, 0.7]})["graded_reward"]
    assert found.text.startswith("0 of 3 rows (0%) reach a reward of 1: the score is the mean reward.")
    assert found.level is Level.WARNING
    assert flags({"a": [1.0, *[0.1, 0.4] * 20]})["graded_reward"].level is Level.INFO


def test_errored_rows_scored_as_failures() -> None:
    # Task 0 loses both rows, task 1 its failing one.
    rewards = {"0": [0.0, 0.0], "1": [0.0, 1.0], "2": [1.0, 0.0]}
    bad = [True, True, True, False, False, False]
    found = flags(rewards, errored=bad, n_items=[0 if is_bad else 2 for is_bad in bad])
    errored = found["errored_scored_zero"]
    assert errored.level is Level.PROBLEM
    assert errored.text == (
        "3 of 6 rows (50.0%) carry an error, have no output and are scored as failures; "
        "without them pass_at_1 is 75.0% over 2 tasks (3 rows)."
    )
    assert {each.field for each in errored.evidence} == {"error"}
    assert "empty_outputs" not in found  # they are told once


def test_a_run_of_errors_leaves_no_row() -> None:
    found = flags({"a": [0.0, 0.0]}, errored=[True, True], n_items=[0, 0])
    assert "no row is left without them" in found["errored_scored_zero"].text


def test_few_empty_outputs_warn_and_passing_ones_are_suspicious() -> None:
    found = flags(SOUND, n_items=[0, 0, *[1] * (ROWS - 2)])
    assert found["empty_outputs"].text == "2 of 40 rows (5.0%) have no output and no error; 1 of them score nothing."
    assert found["empty_outputs"].level is Level.WARNING
    assert found["passes_without_output"].level is Level.PROBLEM
    assert found["passes_without_output"].text.startswith("1 of 40 rows (2.5%) pass without any output")


def test_endings() -> None:
    found = flags(SOUND, truncated=some(4), last_kind=["call"] * 2 + ["reasoning"] * 3 + ["message"] * (ROWS - 5))
    assert found["truncated_rows"].text == "4 of 40 rows (10.0%) hit their token limit; 2 of them pass."
    assert found["truncated_rows"].level is Level.WARNING
    assert found["ended_on_call"].text.startswith("2 of 40 rows (5.0%) end on a tool call")
    assert found["ended_on_call"].level is Level.INFO
    assert found["ended_on_reasoning"].n == 40


def test_one_repeat() -> None:
    assert "sometimes-pass cannot be seen" in flags({"a": [1.0], "b": [0.0]})["single_repeat"].text


def test_missing_rows_that_matter() -> None:
    rewards = {str(i): [1.0] for i in range(18)} | {"18": [0.0], "19": [0.0]}
    lost = [(str(i), repeat) for i in range(20) for repeat in (1,)]
    found = flags(rewards, {"lost": lost})["missing_rows_matter"]
    assert found.level is Level.PROBLEM
    assert found.text.startswith("Missing rows matter: pass_at_1 is 90.0% over 20 tasks without them and 45.0%")
    assert "missing_rows_matter" not in flags(SOUND | {"20": [1.0, 1.0]}, {"lost": [("0", 2)]})


@pytest.mark.parametrize(("lost", "matters"), [(1, False), (10, True)])
def test_missing_rows_of_a_run_without_spread(lost: int, matters: bool) -> None:
    rewards = {str(i): [1.0, 1.0] for i in range(20)}
    found = flags(rewards, {"lost": [(str(i), 2) for i in range(lost)]})
    assert ("missing_rows_matter" in found) is matters


def test_without_a_way_to_open_rows_flags_stand_alone() -> None:
    rollouts = make_rollouts({"a": [None, 1.0]})
    found = list(health(rollouts, make_coverage(rollouts), scoring(rollouts, None)))
    assert [each.evidence for each in found] == [()]


def test_rows_that_cannot_be_quoted_are_passed_over() -> None:
    rollouts = make_rollouts(SOUND, masked=some(20))
    asked: list[int] = []

    def quote(position: int, field: str) -> Evidence | None:
        asked.append(position)
        return Evidence("run", "0", 0, field=field, quote="true") if position > 1 else None

    found = {each.flag: each for each in health(rollouts, make_coverage(rollouts), scoring(rollouts, None), quote)}
    assert len(found["masked_rows"].evidence) == 3
    assert asked == [0, 1, 2, 3, 4], "no row is opened that is not needed"


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 40, "0 of 40 rows (0%)"),
        (40, 40, "40 of 40 rows (100%)"),
        (3, 40, "3 of 40 rows (7.5%)"),
        (1, 100_000, "1 of 100,000 rows (<0.1%)"),
        (99_999, 100_000, "99,999 of 100,000 rows (>99.9%)"),
        (0, 0, "0 of 0 rows"),
    ],
)
def test_shares_are_exact_at_the_ends(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text

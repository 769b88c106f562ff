"""Tasks, rollouts, repeats and steps: they exist, they do not, or nobody can say which is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade import pipeline
from blade.check import checked, world_of
from blade.check.row_ids import mentions, numbered
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE
from blade.tables.index import Silent
from tests.builders import make_row, make_run

from .conftest import Desk


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("the summary at step 37 has none", [(37,)]),
        ("the failing repeat 1 calls it at step 10.", [(1,), (10,)]),
        ("steps 4 and 7", [(4, 7)]),
        ("steps 12-14 of it", [(12, 13, 14)]),
        ("step 4 to 6", [(4, 5, 6)]),
        ("rows 3, 5, and 9", [(3, 5, 9)]),
        ("4 tasks fail at step 4", [(4,)]),
        ("at step 4 and 7 tasks fail", [(4,)]),
        ("at steps 4, 5, 12 failing tasks pass", [(4, 5)]),
        ("line 3, turn 4, index 5", [(3,), (4,), (5,)]),
        # near misses: what is counted, measured or spread
        ("4 steps, 3 repeats", []),
        ("rollouts 200, repeats 4, steps 12", []),
        ("it repeats 3 times", []),
        ("in turn 3 tasks fail", []),
        ("mean step 12.4, per step 4", []),
        ("steps: 4; step 40%", []),
    ],
)
def test_numbers_that_name_are_told_from_those_that_count(text: str, numbers: list[tuple[int, ...]]) -> None:
    assert [name.numbers for name in numbered(text)] == numbers


@pytest.mark.parametrize(
    ("text", "printed", "verdict"),
    [
        ("Task 4 fails.", "Task 4", SUPPORTED),
        ("Task 999 fails.", "Task 999", CONTRADICTED),
        ("Tasks 4 and 8 fail.", "4", SUPPORTED),
        ("Tasks 4 and 998 fail.", "998", CONTRADICTED),
        ("It stops in `4/1`.", "`4/1`", SUPPORTED),
        ("It stops in `4/9`.", "`4/9`", CONTRADICTED),
        ("It stops in rollout 4/9.", "rollout 4/9", CONTRADICTED),
        ("It stops in 4/1 and goes on.", "4/1", SUPPORTED),
        ("The name of it is `desk-0004`.", "`desk-0004`", SUPPORTED),
        ("A row that is lost, `5/0`.", "`5/0`", SUPPORTED),  # expected, and it left no row
        ("| Task | Rate |\n|---|---|\n| 4 | low |\n", "task 4", SUPPORTED),
        ("| Task | Rate |\n|---|---|\n| 444 | low |\n", "task 444", CONTRADICTED),
        ("In task 4 repeat 1 stops.", "task 4 repeat 1", SUPPORTED),
        ("In task 4 repeat 9 stops.", "task 4 repeat 9", CONTRADICTED),
        ("## Task 4\n\nThe failing repeat 1 stops.", "repeat 1", SUPPORTED),
        ("## Task 4\n\nThe failing repeat 9 stops.", "repeat 9", CONTRADICTED),
        ("`4/1` calls it at step 4.", "step 4", SUPPORTED),
        ("`4/1` calls it at step 99.", "step 99", CONTRADICTED),
        ("`4/1` calls it at steps 2 and 50.", "steps 2 and 50", CONTRADICTED),
        ("`4/1` calls it at steps 2 to 5.", "steps 2 to 5", SUPPORTED),
        ("`4/1` calls it. It stops at step 99.", "step 99", CONTRADICTED),
        ("## Task 4\n\nIt stops at step 99.", "step 99", CONTRADICTED),
        ("## Task 4\n\nIt stops at step 12.", "step 12", SUPPORTED),
        ("In task 4 repeat 1 stops at step 12.", "step 12", CONTRADICTED),
        ("In task 4 repeat 0 stops at step 12.", "step 12", SUPPORTED),
        ("It stops at step 8 in `8/0` and at step 60 of `4/1`.", "step 60", CONTRADICTED),
        ("It stops at step 8 in `8/0` and at step 60 of `4/1`.", "step 8", SUPPORTED),
    ],
)
def test_what_is_named_exists_or_not(desk: Desk, text: str, printed: str, verdict: str) -> None:
    assert (verdict, printed) in [(item.verdict, item.printed) for item in desk.check(text, "id")]


@pytest.mark.parametrize(
    "text",
    [
        "It stops at step 99.",
        "In task 4 they repeat 12 calls.",
        "Training step 500 of the model that made `4/1`.",
        "In `4/1` it reads “at step 99 it is all over”, so to speak.",
        "The pass rate is `11/28` here.",
        "It passes 3/44 of them, and fails `2/44`.",
        "In 7/9 (78%) of the cases it stops.",
        "The tasks 40 and more fail; of the tasks 99% pass.",
        "Model gpt-4/2024 and v3/99 are no rollouts.",
        "It leaves out customer 00000605 and task 00000949, and tasks 000948 and 001037.",
    ],
)
def test_what_is_not_surely_an_id_is_never_wrong(desk: Desk, text: str) -> None:
    assert CONTRADICTED not in desk.verdicts(text, "id")


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Tasks 2 and 10 fail, and so does `17/1`.", ["2", "10", "17/1"]),
        ("See 12/0#4 and task `3/1#error`.", ["12/0", "3/1"]),
        ("Rollout 1 of task 4; task 7, repeat 2.", ["4/1", "7/2"]),
        ("It passes 3/4 of them (2/3).", ["2/3"]),
        ("Nothing is named: 24 tasks, 3 of 4 repeats.", []),
    ],
)
def test_the_tasks_of_a_text(desk: Desk, text: str, keys: list[str]) -> None:
    assert [str(item.address.rollout) for item in mentions(text, desk.world.rows)] == keys


def test_the_step_and_the_field_of_an_address_are_looked_up(desk: Desk) -> None:
    for text, why in (("See 4/1#77.", "no such step"), ("See 4/1#nothing.", "no row has the field nothing")):
        (item,) = desk.check(text, "id")
        assert (item.verdict, why in item.why) == (CONTRADICTED, True)
    assert [item.verdict for item in desk.check("See 4/1#0.", "id")] == [SUPPORTED]


def test_an_index_that_is_the_name_of_another_task_is_never_supported(tmp_path: Path) -> None:
    rows = [make_row(task, 0, 1.0, task_id=str(3 - task)) for task in range(4)]  # task 0 is called 3
    world = world_of(pipeline.load([str(make_run(tmp_path, rows))], Silent()))
    assert world.rows.keys("3") == ("0", "3")
    for text in ("Task 3 fails.", "In `3/0` it stops."):
        assert {item.verdict for item in checked(text, world) if item.kind == "id"} == {UNVERIFIABLE}
    quoted = "Task `3/0` says:\n\n```text\nthe answer\n```\n"
    assert {item.verdict for item in checked(quoted, world)} == {UNVERIFIABLE}
    (pinned,) = [item for item in checked("See 3/0#0.", world) if item.kind == "id"]  # our notation: the key
    assert pinned.verdict == SUPPORTED


@pytest.mark.parametrize("text", ["Task 4711 does not exist.", "Tasks 100 to 150 were not run.", "Task 77 of another benchmark set is harder."])
def test_what_is_said_not_to_be_here_is_not_contradicted(desk: Desk, text: str) -> None:
    assert CONTRADICTED not in desk.verdicts(text, "id")

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
from tests.case_tables import cases

from .conftest import Desk


@pytest.mark.parametrize(("text", "numbers"), cases(__file__, "numbers_that_name_are_told_from_those_that_count"))
def test_numbers_that_name_are_told_from_those_that_count(text: str, numbers: list[list[int]]) -> None:
    assert [list(name.numbers) for name in numbered(text)] == numbers


@pytest.mark.parametrize(("text", "printed", "verdict"), cases(__file__, "what_is_named_exists_or_not"))
def test_what_is_named_exists_or_not(desk: Desk, text: str, printed: str, verdict: str) -> None:
    assert (verdict, printed) in [(item.verdict, item.printed) for item in desk.check(text, "id")]


@pytest.mark.parametrize("text", cases(__file__, "what_is_not_surely_an_id_is_never_wrong"))
def test_what_is_not_surely_an_id_is_never_wrong(desk: Desk, text: str) -> None:
    assert CONTRADICTED not in desk.verdicts(text, "id")


@pytest.mark.parametrize(("text", "keys"), cases(__file__, "the_tasks_of_a_text"))
def test_the_tasks_of_a_text(desk: Desk, text: str, keys: list[str]) -> None:
    assert [str(item.address.rollout) for item in mentions(text, desk.world.rows)] == keys


def test_the_step_and_the_field_of_an_address_are_looked_up(desk: Desk) -> None:
    for text, why in (("See 4/1#77.", "no such step"), ("See 4/1#nothing.", "no row has the field nothing")):
        (item,) = desk.check(text, "id")
        assert (item.verdict, why in item.why) == (CONTRADICTED, True)
    assert desk.verdicts("See 4/1#0.", "id") == [SUPPORTED]


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

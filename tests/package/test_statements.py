"""What a report prints and names: numbers in digits and words, tasks, rollouts, table columns."""

from __future__ import annotations

import pytest

from blade.package.matching import Tasks, figures, mentions, passages, visible
from tests.case_tables import cases

KNOWN = Tasks(
    {str(n): str(n) for n in range(20)} | {"desk-07": "7", "set/x-3": "12"},
    {str(n): frozenset(range(4)) for n in range(20)},
)


def named(text: str, known: Tasks = KNOWN) -> set[str]:
    return {name for _, _, name in mentions(text, known)}


@pytest.mark.parametrize(("text", "names"), cases(__file__, "tasks_are_named_where_they_are_said_to_be_tasks"))
def test_tasks_are_named_where_they_are_said_to_be_tasks(text: str, names: set[str]) -> None:
    assert named(text) == set(names)


def test_without_rollouts_any_id_will_do() -> None:
    assert named("Tasks 3 and 99 fail, see 99/1; 29/72 pass.", Tasks()) == {"3", "99", "99/1"}


@pytest.mark.parametrize(("text", "values"), cases(__file__, "numbers_are_read_as_printed"))
def test_numbers_are_read_as_printed(text: str, values: list[list[object]]) -> None:
    assert [[each.number, each.is_percent, each.whole] for each in figures(text, KNOWN)] == values


@pytest.mark.parametrize(("table", "tasks", "numbers"), cases(__file__, "columns_of_ids_count_nothing"))
def test_columns_of_ids_count_nothing(table: str, tasks: set[str], numbers: list[float]) -> None:
    rows = passages(f"# x\n\n{table}", KNOWN)[1:]
    assert {task for row in rows for task in row.tasks} == set(tasks)
    assert [figure.number for row in rows for each in row.statements for figure in each.figures] == numbers


def test_what_is_struck_or_hidden_is_not_read() -> None:
    text = "a ~~b\nc~~ d\n<div hidden>\n\ne\n\n</div>\nf"
    assert visible(text).split() == ["a", "d", "f"]
    assert visible(text).count("\n") == text.count("\n")

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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Task 3 fails; rollouts `4/1` and 5/0 pass.", {"3", "4/1", "5/0"}),
        ("tasks 3, 4 and 17", {"3", "4", "17"}),
        ("In tasks 1 (tries 1 and 3), 12 (1 to 3) and 17 (0, 1, 3) it is so.", {"1", "12", "17"}),
        ("16 tasks were run 4 times; 3 of 5 passed", set()),
        ("Perfect: 0, 5, 7, 14.", {"0", "5", "7", "14"}),
        ("three never (2, 10, 12)", {"2", "10", "12"}),
        ("counts of 12, 5 and 4", set()),
        ("29/72 rollouts pass, 2/9 is no rollout", set()),
        ("desk-07 and desk-07/2 are worse", {"7", "7/2"}),
        ("set/x-3/1 fails at 12/0#4.", {"12/1", "12/0"}),
        ("tasks 3 and 99", {"3"}),
    ],
)
def test_tasks_are_named_where_they_are_said_to_be_tasks(text: str, names: set[str]) -> None:
    assert named(text) == names


def test_without_rollouts_any_id_will_do() -> None:
    assert named("Tasks 3 and 99 fail, see 99/1; 29/72 pass.", Tasks()) == {"3", "99", "99/1"}


@pytest.mark.parametrize(("text", "values"), cases(__file__, "numbers_are_read_as_printed"))
def test_numbers_are_read_as_printed(text: str, values: list[list[object]]) -> None:
    assert [[each.number, each.is_percent, each.whole] for each in figures(text, KNOWN)] == values


@pytest.mark.parametrize(
    ("table", "tasks", "numbers"),
    [
        ("| Task | Why |\n|---|---|\n| `4` | x |\n", {"4"}, []),
        ("| Bucket | Tasks |\n|---|---|\n| always | 4 |\n", set(), [4]),
        ("| Mode | Rollouts | Tasks |\n|---|---:|---|\n| a | 12 | 3, 4, 8 |\n| b | 4 | 2 |\n", {"2", "3", "4", "8"}, [12, 4]),
        ("| Transcript | What |\n|---|---|\n| 2/0, 2/1 | asks 3 times |\n", {"2"}, [3]),
        ("| Category | Tasks | pass@1 |\n|---|---:|---:|\n| crm | 4<!--blade: tasks--> | 50.0% |\n", set(), [4, 50.0]),
    ],
)  # fmt: skip
def test_columns_of_ids_count_nothing(table: str, tasks: set[str], numbers: list[float]) -> None:
    rows = passages(f"# x\n\n{table}", KNOWN)[1:]
    assert {task for row in rows for task in row.tasks} == tasks
    assert [figure.number for row in rows for each in row.statements for figure in each.figures] == numbers


def test_a_passage_is_a_paragraph_an_item_or_a_row_under_its_heading() -> None:
    text = "# T\n\n## Habit (five tries)\n\nOne two. Three four.\n\n- item one. More.\n- item two\n"
    found = [[each.text for each in passage.all] for passage in passages(text, KNOWN)]
    assert found == [
        ["T"],
        ["Habit (five tries)"],
        ["Habit (five tries)", "One two.", "Three four."],
        ["Habit (five tries)", "item one.", "More."],
        ["Habit (five tries)", "item two"],
    ]


def test_what_is_struck_or_hidden_is_not_read() -> None:
    text = "a ~~b\nc~~ d\n<div hidden>\n\ne\n\n</div>\nf"
    assert visible(text).split() == ["a", "d", "f"]
    assert visible(text).count("\n") == text.count("\n")

"""Rung 10: on which tasks are the points lost?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.diagnose.builders import desk_row, quiz_row, rewards
from tests.diagnose.diagnosed import Diagnose, Diagnosed, each
from tests.diagnose.rows import Row, grid, make_row, struck


def significant(run: Diagnosed) -> list[tuple[str, str]]:
    """Slices whose rate differs from the rest beyond chance."""
    return [(piece.field, piece.value) for piece in run.report.slices if piece.p_adjusted is not None and piece.p_adjusted <= 0.05]


@struck
def halls(gold_of_some: Any, n_repeats: int = 3, n_tasks: int = 30) -> Iterator[tuple[Row, bool]]:
    """A quiz where a third of the golds are of another class, on which the reader nearly always answers a number."""
    for place, (task, repeat) in enumerate(grid(n_tasks, n_repeats)):
        is_special = task % 3 == 0
        value = task * 13 + 41
        gold = gold_of_some if is_special else str(value)
        passes = (place * 7) % 10 < (2 if is_special else 9)
        answer = str(gold) if passes else str(value + 3 + repeat)
        yield quiz_row(task, repeat, float(passes), answer, gold), is_special and not passes


@pytest.mark.parametrize(("gold", "n_tasks"), [("None", 30), ("unknown", 30), ("true", 60), ("False", 60)])
def test_gold_of_another_class(diagnose: Diagnose, gold: str, n_tasks: int) -> None:
    """Row 7 of "why a new core"; the class is shown as the rows spell it."""
    rows, special = halls(gold, n_tasks=n_tasks)
    run = diagnose(rows)
    group = run.shows(special, "kinds BI", gold, "another is given")
    n = sum(row["expected_answer"] == gold for row in rows)
    assert f"{round(100 * (n - len(special)) / n)}%" in group.text
    assert group.passed_rows == 0  # no pass gives another answer than the expected one
    assert n_tasks == 30 or ("expected answer is", gold) in significant(run)  # so many tasks that the golds themselves are no slices


@pytest.mark.parametrize("gold", [None, "", []])
def test_gold_that_is_absent_is_a_slice(diagnose: Diagnose, gold: object) -> None:
    rows, _ = halls(gold)
    assert [field for field, value in significant(diagnose(rows)) if value.lower() in ("empty", "none", "null", "[]", "")]


@pytest.mark.parametrize("is_same", [True, False])
def test_slices_of_the_same_tasks_are_shown_once(diagnose: Diagnose, is_same: bool) -> None:
    """The class of the golds, their value and a field about the task name the same ten tasks; or they have eight in common."""
    rows, _ = halls("None")
    closed = {1, 4, *range(6, 30, 3)}
    for row in rows:
        row["lends"] = "no" if (row["expected_answer"] == "None" if is_same else row["_ng_task_index"] in closed) else "yes"
    slices = [(piece.field, piece.n_tasks) for piece in diagnose(rows).report.slices]
    assert sorted(n for _, n in slices) == ([10, 20] if is_same else [10, 10, 20, 20])
    assert is_same or [field for field, _ in slices].count("lends") == 2


def with_the_same_rate() -> Iterator[Row]:
    for (task, repeat), reward in rewards(30, 3, 0.7).items():
        gold = "None" if task % 3 == 0 else str(task * 13 + 41)
        yield quiz_row(task, repeat, reward, gold if reward else str(task * 13 + 50 + repeat), gold)


def by_chance() -> Iterator[Row]:
    """Five of six tasks without an answer fail, and seven of eighteen others: p = 0.15 before any correction."""
    for task in range(24):
        gold = "None" if task % 4 == 0 else str(task * 13 + 41)
        passes = task == 8 if task % 4 == 0 else task % 5 in (1, 2, 3)
        yield quiz_row(task, 0, float(passes), gold if passes else str(task * 13 + 50), gold)


def of_the_expected_class() -> Iterator[Row]:
    """Texts are harder than numbers here, and every wrong answer to one is a text as well: the class explains nothing."""
    for place, (task, repeat) in enumerate(grid(30, 3)):
        is_text = task % 3 == 0
        gold = f"'hall {task}'" if is_text else str(task * 13 + 41)
        passes = (place * 7) % 10 < (2 if is_text else 9)
        wrong = f"'hall {task + repeat + 1}'" if is_text else str(task * 13 + 44 + repeat)
        yield quiz_row(task, repeat, float(passes), gold if passes else wrong, gold)


def by_field(n_repeats: int, **change: Any) -> Iterator[Row]:
    """A desk that settles parcels and mostly fails letters; the kind is a field of the task."""
    for place, (task, repeat) in enumerate(grid(40, n_repeats)):
        kind = "letter" if task % 4 == 0 else "parcel"
        passes = (place * 7) % 10 < (1 if kind == "letter" else 8)
        fields = {"kind": kind, "task_id": f"{kind}s-{task:03d}", "weight": task % 3}
        yield desk_row(task, repeat, float(passes), **{**fields, **change})


@pytest.mark.parametrize("n_repeats", [1, 3])
def test_field_about_the_task_is_a_slice(diagnose: Diagnose, n_repeats: int) -> None:
    run = diagnose(by_field(n_repeats))
    assert ("kind", "letter") in significant(run)
    assert not any(field == "weight" for field, _ in significant(run))
    # agent rollouts without an answer: the slice says where and not why
    assert run.report.unexplained[0].rows == len(run.failing)


@each({"healthy": lambda: by_field(3), "rate": with_the_same_rate, "chance": by_chance, "class": of_the_expected_class})
def test_what_is_no_group(diagnose: Diagnose, case: Callable[[], list[Row]]) -> None:
    assert diagnose(case()).of_rung("kinds") == []


def test_part_of_the_id_is_a_slice(diagnose: Diagnose) -> None:
    rows = [{name: value for name, value in row.items() if name != "kind"} for row in by_field(3)]
    assert any("letters" in value for _, value in significant(diagnose(rows)))


@pytest.mark.parametrize("is_hard", [True, False])
def test_beginning_of_a_compound_id_is_a_slice(diagnose: Diagnose, is_hard: bool) -> None:
    """`desk_abroad` is neither a word of its own nor the whole id: the tasks go on in many ways."""
    rows = []
    for place, (task, repeat) in enumerate(grid(40, 3)):
        is_abroad = task % 3 == 0
        what = ("lost_label", "late_fee", "wrong_hall", "torn_box")[task % 4]
        passes = (place * 7) % 10 < (2 if is_abroad and is_hard else 8)
        rows.append(desk_row(task, repeat, float(passes), task_id=f"desk_{'abroad' if is_abroad else 'home'}_{what}_{task:03d}"))
    assert (("task id contains", "desk_abroad") in significant(diagnose(rows))) == is_hard


def of_two_tasks() -> list[Row]:
    return [
        desk_row(*key, float(key[0] not in (3, 17) and place % 6 > 0), kind="letter" if key[0] in (3, 17) else "parcel")
        for place, key in enumerate(grid(40, 4))
    ]


def of_length() -> Iterator[Row]:
    """Long errands fail more often; their number of turns and of notes is no kind of task."""
    for place, (task, repeat) in enumerate(grid(40, 1)):
        n = 2 + task % 5
        passes = (place * 7) % 10 < (9 if n < 4 else 1)
        acts = [("read_notice", {"page": task * 9 + page}, f"Page {page}.") for page in range(n)]
        fields = {"n_turns": n + 1, "notes": [f"note {k}" for k in range(n)]}
        yield make_row(task, repeat, float(passes), [*acts, f"Errand {task} settled."], **fields)


def of_verdicts() -> Iterator[Row]:
    """With one try per task, a field whose values all pass or all fail was set by the grader."""
    for task in range(60):
        passes = (task * 7) % 10 < 6
        code = ("settled", "delivered")[task % 2] if passes else ("lost", "returned", "held")[task % 3]
        yield desk_row(task, 0, float(passes), outcome=code)


@each({"letter": of_two_tasks, "n_turns notes length": of_length, "outcome": of_verdicts})
def test_what_is_no_slice(diagnose: Diagnose, case: Callable[[], list[Row]], request: pytest.FixtureRequest) -> None:
    told = [f"{field} {value}" for field, value in significant(diagnose(case()))]
    assert not [text for text in told for word in request.node.callspec.id.split() if word in text]


@pytest.mark.parametrize("is_graders", [True, False])
def test_field_of_the_graders_object_is_no_kind_of_task_with_one_try(diagnose: Diagnose, is_graders: bool) -> None:
    """Beside the verdict stands what the grader noted, which goes with it now and then; in a field of its own it may be a kind."""
    rows = []
    for task in range(80):
        passes = (task * 7) % 10 < 6
        tone = "plain" if (task * 3) % 11 < (9 if passes else 2) else "ornate"
        fields = {"judgement": {"accepted": passes, "tone": tone}} if is_graders else {"judgement": {"accepted": passes}, "tone": tone}
        rows.append(desk_row(task, 0, float(passes), **fields))
    found = significant(diagnose(rows))
    assert any(field == ("judgement.tone" if is_graders else "tone") for field, _ in found) == (not is_graders)

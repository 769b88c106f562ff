"""The difference from the expected calls in words: what a task's sentence says of its own row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.diagnose.builders import Act, Diagnose, Diagnosed, Key, Row, desk_row, grid, make_row

TOOLS = ("move_parcel", "pay_fee", "hold_parcel", "read_notice")
FAULTY: set[Key] = {(task, task % 4) for task in range(12)}
Acts = Callable[[int], list[Act]]


def move(task: int, **change: Any) -> Act:
    """The call that every errand expects; a change of None leaves an argument out."""
    whole = {"parcel": f"P-{task}", "hall": f"H-{task + 20}", **change}
    return ("move_parcel", {name: value for name, value in whole.items() if value is not None}, "Moved.")


def errands(wrong: Acts, right: Acts = lambda task: [move(task)], faulty: set[Key] = FAULTY) -> list[Row]:
    """Rows that do what is expected, and some that do something else; every third task expects a hold as well."""
    rows = []
    for task, repeat in grid(12, 4):
        hold: list[Act] = [("hold_parcel", {"parcel": f"P-{task}"}, "Held.")] if task % 3 == 0 else []
        due = [*right(task), *hold]
        is_faulty = (task, repeat) in faulty
        look: Act = ("read_notice", {"page": task + repeat}, f"Page {task + repeat}.")
        acts = [look, *([*wrong(task), *hold] if is_faulty else due), f"Errand {task} is done." + " Goodbye." * (repeat % 3)]
        gold = [{"name": act[0], "arguments": act[1]} for act in due if isinstance(act, tuple)]
        rows.append(make_row(task, repeat, float(not is_faulty), acts, tools=TOOLS, expected_actions=gold))
    return rows


def sentence(run: Diagnosed, task: int) -> str:
    """What is said of a task."""
    return next(entry.mechanism for entry in run.report.attributions if entry.task == str(task))


# ---- One difference, one sentence ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda t: [move(t, hall=f"H-{t + 70}")], "`move_parcel` is called with `hall` H-75 instead of H-25"),
        (lambda t: [move(t, hall=None)], "`move_parcel` is called with no `hall` (H-25 expected)"),
        (lambda t: [move(t, floor=3)], "`move_parcel` is called with `floor` 3, not expected"),
        (lambda t: [], "`move_parcel(parcel=P-5, hall=H-25)` is expected and never made"),
        (
            lambda t: [("move_parcel", {"parcel": "?"}, "error: the number of the parcel is malformed")],
            "`move_parcel(parcel=P-5, hall=H-25)` is expected and was refused (error: the number of the parcel is malformed)",
        ),
        (lambda t: [move(t), ("hold_parcel", {"parcel": f"P-{t}"}, "Held.")], "`hold_parcel(parcel=P-5)` is called and not expected"),
    ],
)
def test_sentence_states_the_difference(diagnose: Diagnose, wrong: Acts, said: str) -> None:
    run = diagnose(errands(wrong))
    assert run.labels(run.failing) == {"BI"}
    assert _plain(said) in _plain(sentence(run, 5))


def _plain(text: str) -> str:
    """Arguments of a call in whatever order."""
    return text.replace("parcel=P-5, hall=H-25", "hall=H-25, parcel=P-5")


def moves(task: int, *numbers: int) -> Act:
    return ("move_parcel", {"parcels": [f"P-{task}-{number}" for number in numbers]}, "Moved.")


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1, 2, 3, 9), "`parcels` with P-5-9"),
        ((1, 3), "`parcels` without P-5-2"),
        ((1, 2, 9), '`parcels` ["P-5-9"] instead of ["P-5-3"]'),
        ((3, 2, 1), "`parcels` in another order or number"),
    ],
)
def test_of_two_lists_only_what_one_of_them_holds(diagnose: Diagnose, numbers: tuple[int, ...], said: str) -> None:
    run = diagnose(errands(lambda t: [moves(t, *numbers)], lambda t: [moves(t, 1, 2, 3)]))
    assert said in sentence(run, 5)
    assert "P-5-1" not in sentence(run, 5)


def test_of_two_objects_only_the_member_that_differs(diagnose: Diagnose) -> None:
    def packed(task: int, weight: int) -> list[Act]:
        return [("move_parcel", {"lines": [{"parcel": f"P-{task}", "weight": weight}]}, "Moved.")]

    run = diagnose(errands(lambda t: packed(t, t + 9), lambda t: packed(t, t)))
    assert "`lines.weight` 14 instead of 5" in sentence(run, 5)


def test_sentence_is_bounded(diagnose: Diagnose) -> None:
    """Two arguments of a call and three calls are told, the rest is counted."""

    def labelled(task: int, n: int) -> list[Act]:
        return [("move_parcel", {name: f"{name} {task}-{n}" for name in ("hall", "owner", "shelf", "weight")}, "Moved.")]

    run = diagnose(errands(lambda t: labelled(t, 2), lambda t: labelled(t, 1)))
    assert "`hall` hall 5-2 instead of hall 5-1, `owner` owner 5-2 instead of owner 5-1 and 2 more arguments" in sentence(run, 5)
    run = diagnose(errands(lambda t: [], lambda t: [moves(t, number) for number in range(5)]))
    assert sentence(run, 5).count("is expected and never made") == 3
    assert "; and 2 more" in sentence(run, 5)


def test_sentence_speaks_of_its_own_row(diagnose: Diagnose) -> None:
    """Every task goes to another wrong hall: none of the sentences tells of a hall of another task."""
    run = diagnose(errands(lambda t: [move(t, hall=f"H-{t + 70}")]))
    for task in range(12):
        others = [f"H-{other + 70} " for other in range(12) if other != task]
        assert f"H-{task + 70} instead of H-{task + 20}" in sentence(run, task)
        assert not [hall for hall in others if hall in sentence(run, task)]


def test_sentence_names_the_row_where_several_fail(diagnose: Diagnose) -> None:
    """Two repeats of a task go wrong: the sentence counts both and says which one it describes."""
    both = FAULTY | {(task, (task + 1) % 4) for task in range(12)}
    told = sentence(diagnose(errands(lambda t: [move(t, hall=f"H-{t + 70}")], faulty=both)), 5)
    assert "2 of its 4 rollouts" in told
    assert "5/1: `move_parcel` is called with `hall` H-75 instead of H-25" in told


# ---- The arguments that are most often wrong -----------------------------------------------------


def test_group_lists_the_arguments_that_are_most_often_wrong(diagnose: Diagnose) -> None:
    """The hall is wrong in all twelve, the parcel in four of them."""
    run = diagnose(errands(lambda t: [move(t, hall=f"H-{t + 70}", **({"parcel": f"P-{t + 40}"} if t % 3 == 1 else {}))]))
    group = run.group(FAULTY)
    assert "Most often wrong: `hall` in 12, `parcel` in 4." in group.text


def test_argument_that_is_always_right_is_not_listed(diagnose: Diagnose) -> None:
    run = diagnose(errands(lambda t: [move(t, hall=f"H-{t + 70}")]))
    assert run.group(FAULTY).text.endswith("Most often wrong: `hall` in 12.")


def test_failure_that_did_what_is_expected_has_no_difference(diagnose: Diagnose) -> None:
    run = diagnose(errands(lambda t: [move(t)]))
    assert run.of_rung("verdicts") == []
    assert "instead of" not in run.said
    assert "expected and" not in run.said


# ---- Expected calls under any name -----------------------------------------------------------------


@pytest.mark.parametrize("shape", [
    lambda tool, given: {"tool": tool, "kwargs": given}, lambda tool, given: {"op": tool, **given},
    lambda tool, given: {"act": tool, "with": given, "why": "asked"},
])  # fmt: skip
def test_calls_are_expected_under_any_name(diagnose: Diagnose, shape: Callable[[str, dict[str, Any]], dict[str, Any]]) -> None:
    """Records that name a tool of the task are calls; an empty list says that none is due where other rows list some."""
    rows, acted = [], set()
    for place, (task, repeat) in enumerate(grid(24, 3)):
        move: Act = ("move_parcel", {"parcel": f"P-{task}"}, "Moved.")
        look: Act = ("find_parcel", {"number": f"P-{task}"}, f"Shelf {place % 5}.")
        is_due, fails = task % 3 > 0, place % 4 == 0
        due = [shape("move_parcel", {"parcel": f"P-{task}"})] if is_due else []
        acts = [look, *([move] if is_due != fails else []), f"Errand {place} is seen to."]
        if fails and not is_due:
            acted.add((task, repeat))
        rows.append(desk_row(task, repeat, float(not fails), acts, plan={"steps_due": due}))
    run = diagnose(rows)
    assert {group.name for group in run.holders(acted)} <= {"acts although nothing should be changed", "calls `move_parcel` where it is not expected"}
    assert any(group.name == "no change made although one was due" for group in run.groups)


@pytest.mark.parametrize(("n_still", "first"), [(4, "read_notice"), (0, "read_notice"), (4, "pay_fee")])
def test_tasks_that_expect_lookups_expect_no_change(diagnose: Diagnose, n_still: int, first: str) -> None:
    """Each errand begins with a call that passes may do without, in some tasks the only one; some rows hold the parcel all the same."""
    rows, held = [], set()
    for task, repeat in grid(12, 4):
        due: list[Act] = [(first, {"page": task}, f"Page {task}."), *([move(task)] if task >= n_still else [])]
        if task in (1, 2, 5, 6, 9) and repeat == task % 4:
            held.add((task, repeat))
        hold: list[Act] = [("hold_parcel", {"parcel": f"P-{task}"}, "Held.")]
        due += hold if task > 9 else []
        gold = [{"name": act[0], "arguments": act[1]} for act in due if isinstance(act, tuple)]
        made = [*due[repeat % 2 :], *(hold if (task, repeat) in held else []), f"Errand {task} is done." + " Goodbye." * (repeat % 3)]
        rows.append(make_row(task, repeat, float((task, repeat) not in held), made, tools=TOOLS, expected_actions=gold))
    group = diagnose(rows).group(held)
    assert group.name == "calls `hold_parcel` where it is not expected"
    is_still = n_still > 0 and first == "read_notice"
    assert ("In 2 of them no change by the model is expected at all." in group.text) == is_still

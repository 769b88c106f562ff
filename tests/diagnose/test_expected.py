"""The difference from the expected calls in words: what a task's sentence says of its own row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.diagnose.builders import desk_row
from tests.diagnose.diagnosed import Diagnose, Diagnosed
from tests.diagnose.rows import Act, Key, Row, grid, make_row

TOOLS = ("move_parcel", "pay_fee", "hold_parcel", "read_notice")
FAULTY: set[Key] = {(task, task % 4) for task in range(12)}
Acts = Callable[[int], list[Act]]


def move(task: int, **change: Any) -> Act:
    """The call that every errand expects; a change of None leaves an argument out."""
    whole = {"parcel": f"P-{task}", "hall": f"H-{task + 20}", **change}
    return ("move_parcel", {name: value for name, value in whole.items() if value is not None}, "Moved.")


def errands(wrong: Acts, right: Acts = lambda task: [move(task)], faulty: set[Key] = FAULTY) -> Iterator[Row]:
    """Rows that do what is expected, and some that do something else; every third task expects a hold as well."""
    for task, repeat in grid(12, 4):
        hold: list[Act] = [("hold_parcel", {"parcel": f"P-{task}"}, "Held.")] if task % 3 == 0 else []
        due = [*right(task), *hold]
        is_faulty = (task, repeat) in faulty
        look: Act = ("read_notice", {"page": task + repeat}, f"Page {task + repeat}.")
        acts = [look, *([*wrong(task), *hold] if is_faulty else due), f"Errand {task} is done." + " Goodbye." * (repeat % 3)]
        yield make_row(task, repeat, float(not is_faulty), acts, tools=TOOLS, due=due)


def sentence(run: Diagnosed, task: int) -> str:
    """What is said of a task."""
    return next(entry.mechanism for entry in run.report.attributions if entry.task == str(task))


def moves(task: int, *numbers: int) -> list[Act]:
    return [("move_parcel", {"parcels": [f"P-{task}-{number}" for number in numbers]}, "Moved.")]


def labelled(task: int, n: int) -> list[Act]:
    return [("move_parcel", {name: f"{name} {task}-{n}" for name in ("hall", "owner", "shelf", "weight")}, "Moved.")]


def packed(task: int, weight: int) -> list[Act]:
    return [("move_parcel", {"lines": [{"parcel": f"P-{task}", "weight": weight}]}, "Moved.")]


def usual(task: int) -> list[Act]:
    return [move(task)]


def three(task: int) -> list[Act]:
    return moves(task, 1, 2, 3)


# ---- One difference, one sentence ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (usual, lambda t: [move(t, hall=f"H-{t + 70}")], "`move_parcel` is called with `hall` H-75 instead of H-25"),
        (usual, lambda t: [move(t, hall=None)], "`move_parcel` is called with no `hall` (H-25 expected)"),
        (usual, lambda t: [move(t, floor=3)], "`move_parcel` is called with `floor` 3, not expected"),
        (usual, lambda t: [], "`move_parcel(hall=H-25, parcel=P-5)` is expected and never made"),
        (
            usual, lambda t: [("move_parcel", {"parcel": "?"}, "error: the number of the parcel is malformed")],
            "`move_parcel(hall=H-25, parcel=P-5)` is expected and was refused (error: the number of the parcel is malformed)",
        ),
        (usual, lambda t: [move(t), ("hold_parcel", {"parcel": f"P-{t}"}, "Held.")], "`hold_parcel(parcel=P-5)` is called and not expected"),
        # of two lists only what one of them holds, of two objects only the member that differs
        (three, lambda t: moves(t, 1, 2, 3, 9), "`parcels` with P-5-9"),
        (three, lambda t: moves(t, 1, 3), "`parcels` without P-5-2"),
        (three, lambda t: moves(t, 1, 2, 9), '`parcels` ["P-5-9"] instead of ["P-5-3"]'),
        (three, lambda t: moves(t, 3, 2, 1), "`parcels` in another order or number"),
        (lambda t: packed(t, t), lambda t: packed(t, t + 9), "`lines.weight` 14 instead of 5"),
        # two arguments of a call and three calls are told, the rest is counted
        (
            lambda t: labelled(t, 1), lambda t: labelled(t, 2),
            "`hall` hall 5-2 instead of hall 5-1, `owner` owner 5-2 instead of owner 5-1 and 2 more arguments",
        ),
        (lambda t: [act for n in range(5) for act in moves(t, n)], lambda t: [], " is expected and never made; and 2 more"),
    ],
)  # fmt: skip
def test_sentence_states_the_difference(diagnose: Diagnose, right: Acts, wrong: Acts, said: str) -> None:
    run = diagnose(errands(wrong, right))
    assert run.labels(run.failing) == {"BI"}
    assert said in sentence(run, 5).replace("parcel=P-5, hall=H-25", "hall=H-25, parcel=P-5")
    assert right is not three or "P-5-1" not in sentence(run, 5)


def test_sentence_speaks_of_its_own_row(diagnose: Diagnose) -> None:
    """Every task goes to another wrong hall; where two repeats go wrong the sentence counts both and says which one it describes."""
    run = diagnose(errands(lambda t: [move(t, hall=f"H-{t + 70}")]))
    for task in range(12):
        others = [f"H-{other + 70} " for other in range(12) if other != task]
        assert f"H-{task + 70} instead of H-{task + 20}" in sentence(run, task)
        assert not [hall for hall in others if hall in sentence(run, task)]
    both = FAULTY | {(task, (task + 1) % 4) for task in range(12)}
    told = sentence(diagnose(errands(lambda t: [move(t, hall=f"H-{t + 70}")], faulty=both)), 5)
    assert "2 of its 4 rollouts" in told
    assert "5/1: `move_parcel` is called with `hall` H-75 instead of H-25" in told


# ---- The arguments that are most often wrong -----------------------------------------------------


@pytest.mark.parametrize("n", [0, 4])
def test_group_lists_the_arguments_that_are_most_often_wrong(diagnose: Diagnose, n: int) -> None:
    """The hall is wrong in all twelve, the parcel in four of them or never."""
    run = diagnose(errands(lambda t: [move(t, hall=f"H-{t + 70}", **({"parcel": f"P-{t + 40}"} if n and t % 3 == 1 else {}))]))
    listed = "`hall` in 12, `parcel` in 4." if n else "`hall` in 12."
    assert run.group(FAULTY).text.endswith(f"Most often wrong: {listed}")


def test_failure_that_did_what_is_expected_has_no_difference(diagnose: Diagnose) -> None:
    run = diagnose(errands(lambda t: [move(t)]))
    assert run.of_rung("verdicts") == []
    assert "instead of" not in run.said
    assert "expected and" not in run.said


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
        made = [*due[repeat % 2 :], *(hold if (task, repeat) in held else []), f"Errand {task} is done." + " Goodbye." * (repeat % 3)]
        rows.append(make_row(task, repeat, float((task, repeat) not in held), made, tools=TOOLS, due=due))
    group = diagnose(rows).group(held)
    assert group.name == "calls `hold_parcel` where it is not expected"
    is_still = n_still > 0 and first == "read_notice"
    assert ("In 2 of them no change by the model is expected at all." in group.text) == is_still


def test_call_that_is_made_twice_is_blamed_the_second_time(diagnose: Diagnose) -> None:
    run = diagnose(errands(lambda t: [move(t), move(t)]))
    assert {entry.step for entry in run.report.attributions} == {4}  # after a look and the move that is due

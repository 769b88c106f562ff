"""A list of the row says of each call whether it worked, where its result does not read as an error."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.diagnose.builders import (
    Act,
    Diagnose,
    Diagnosed,
    Key,
    Row,
    desk_acts,
    desk_row,
    grid,
    items_of,
    make_row,
    message,
    rewards,
    told_of,
)

REFUSED = "error: a street needs a number"
UNREAD = "Write the street in front of the number."  # an answer to a call that did not work, without a word for an error
VAIN = {(task, task % 4) for task in range(12)}  # no call works, as only the list says of most of them
NAME = "no call ever succeeds"
Flags = Callable[[list[bool], bool], Any]  # from whether each call worked, and whether the row passes


def tried(answers: list[str]) -> list[Act]:
    return [("check_address", {"street": f"Nowhere {at}"}, answer) for at, answer in enumerate(answers)]


def gives_up(answers: list[str]) -> list[Act]:
    return [*tried(answers), "I could not settle this errand."]


def acts_of(key: Key) -> tuple[list[Act], list[bool]]:
    """The acts of a rollout, and whether each call worked: every other one meets an error first, then goes on."""
    task, repeat = key
    if key in VAIN:
        return gives_up([UNREAD, REFUSED, UNREAD, ""]), [False] * 4
    vain = tried([REFUSED][: (task + repeat) % 2])
    work = desk_acts(task, repeat, random.Random(task * 100 + repeat))
    return [*vain, *work], [False] * len(vain) + [True] * (len(work) - 1)


def desk(flags: Flags, inside: str = "") -> list[Row]:
    """A run at the parcel desk in which some rows never get a call right, with what a list says of their calls."""
    rows = []
    for key, reward in rewards(12, 4, 0.8).items():
        acts, worked = acts_of(key)
        passes = key not in VAIN and bool(reward)
        stated = {"marks": flags(worked, passes)}
        rows.append(desk_row(*key, float(passes), acts, **({inside: stated} if inside else stated)))
    return rows


def as_they_are(worked: list[bool], passes: bool) -> list[bool]:
    return worked


def without(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "marks"} for row in rows]


def concluded(run: Diagnosed) -> list[tuple[str, str, set[Key]]]:
    """All groups with their rows: calls that are wrongly taken for failed move rows from one to another."""
    return [(group.rung, group.name, run.keys(group)) for group in run.groups]


def in_vain(run: Diagnosed) -> set[Key]:
    """The rows that are told to hold no call that succeeds."""
    return {key for group in run.groups if group.name == NAME for key in run.keys(group)}


# ---- What such a list says -----------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["", "log"])
@pytest.mark.parametrize("flags", [as_they_are, lambda worked, passes: list(map(int, worked))], ids=["truths", "numbers"])
def test_calls_that_a_list_says_did_not_work(diagnose: Diagnose, flags: Flags, inside: str) -> None:
    group = diagnose(desk(flags, inside)).group(VAIN)
    assert (group.rung, group.label.value, group.name) == ("delivered", "BI", NAME)
    assert UNREAD in told_of(group)


def test_result_that_reads_as_an_error_stays_one(diagnose: Diagnose) -> None:
    """The list calls one error in thirteen true."""
    rows = desk(as_they_are)
    row = next(row for row in rows if (row["_ng_task_index"], row["_ng_rollout_index"]) in VAIN)
    row["marks"] = [False, True, False, False]
    assert in_vain(diagnose(rows)) == VAIN


def test_call_that_is_answered_with_nothing(diagnose: Diagnose) -> None:
    rows = desk(as_they_are)
    for row in rows:
        if (row["_ng_task_index"], row["_ng_rollout_index"]) in VAIN:
            row["response"]["output"] = items_of(gives_up(["", REFUSED, "", ""]))
    group = diagnose(rows).group(VAIN)
    assert group.name == "no call ever succeeds"
    assert "no result" not in told_of(group)  # nothing came back, which is no message to quote


def test_calls_that_are_spoken(diagnose: Diagnose) -> None:
    """Messages that somebody answers are calls too; the last one, which nobody answers, has its flag as well."""
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.8).items():
        is_vain = (task, repeat) in VAIN
        answers = [UNREAD, REFUSED, UNREAD] if is_vain else [*[REFUSED][: (task + repeat) % 2], "Shelf 4.", f"Route {task}."]
        street = f"{task} Nowhere {repeat}" if is_vain else f"Elm Rise {task}"  # the same words must not work elsewhere
        talk = [part for at, text in enumerate(answers) for part in (message(f"look {street} {at}"), message(text, "user"))]
        marks = [text not in (UNREAD, REFUSED) for text in answers]
        passes = 0.0 if is_vain else reward
        rows.append(make_row(task, repeat, passes, [*talk, f"Settled {task}."], marks=[*marks, not is_vain]))
    assert in_vain(diagnose(rows)) == VAIN


# ---- What it does not say ------------------------------------------------------------------------


def solved(worked: list[bool], passes: bool) -> list[bool]:
    """Whether a call solved the task, which only the last one of a pass does."""
    return [*[False] * (len(worked) - 1), passes]


def without_last(worked: list[bool], passes: bool) -> list[bool]:
    return worked[:-1]


def with_a_third_value(worked: list[bool], passes: bool) -> list[int]:
    return [2 * ok for ok in worked]


def of_another_kind(worked: list[bool], passes: bool) -> list[bool]:
    """True of half of the calls, whatever became of them."""
    return [at % 2 == 0 for at in range(len(worked))]


@pytest.mark.parametrize("flags", [solved, without_last, with_a_third_value, of_another_kind])
def test_list_that_states_something_else(diagnose: Diagnose, flags: Flags) -> None:
    rows = desk(flags)
    assert concluded(diagnose(rows)) == concluded(diagnose(without(rows)))


def test_list_that_too_few_rows_hold(diagnose: Diagnose) -> None:
    rows = desk(as_they_are)
    for row in rows[::5]:
        del row["marks"]
    assert concluded(diagnose(rows)) == concluded(diagnose(without(rows)))


def test_list_that_too_few_errors_test(diagnose: Diagnose) -> None:
    rows = desk(as_they_are)
    for row in rows:
        if (row["_ng_task_index"], row["_ng_rollout_index"]) in VAIN:
            row["response"]["output"] = items_of(gives_up([UNREAD] * 4))
        elif row["_ng_task_index"] > 3:
            calls = [item for item in row["response"]["output"] if item.get("output") == REFUSED]
            for item in calls:
                item["output"] = "Alder Lane is on route 2."
    assert concluded(diagnose(rows)) == concluded(diagnose(without(rows)))


def test_healthy_run_stays_as_it_is(diagnose: Diagnose) -> None:
    """The list says what the results say."""
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.75).items():
        acts, worked = acts_of((task + 20, repeat))
        rows.append(desk_row(task, repeat, reward, acts, marks=worked))
    assert concluded(diagnose(rows)) == concluded(diagnose(without(rows)))


# ---- A pass without a call that succeeds ---------------------------------------------------------


@pytest.mark.parametrize(("n_passes", "is_told"), [(1, True), (2, False)])
def test_pass_whose_only_call_did_not_work(diagnose: Diagnose, n_passes: int, is_told: bool) -> None:
    """One such pass in seventy leaves the group, with less confidence; two are more than the exception."""
    vain = {(task, task % 4) for task in range(24)}
    odd = [key for key in grid(24, 4) if key not in vain][:n_passes]
    rows = []
    for key in grid(24, 4):
        acts, worked = (gives_up([REFUSED, UNREAD]), [False] * 2) if key in vain else acts_of((key[0] + 20, key[1]))
        acts, worked = (gives_up([UNREAD]), [False]) if key in odd else (acts, worked)
        rows.append(desk_row(*key, float(key not in vain), acts, marks=worked))
    assert in_vain(diagnose(rows)) == (vain if is_told else set())

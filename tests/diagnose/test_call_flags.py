"""A list of the row says of each call whether it worked, where its result does not read as an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.diagnose.builders import desk_acts, desk_row, rewards
from tests.diagnose.diagnosed import Diagnose, Diagnosed
from tests.diagnose.rows import Act, Key, Row, grid, items_of, key_of, make_row, message

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
    work = desk_acts(task, repeat, task * 100 + repeat)
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
    diagnose(desk(flags, inside)).shows(VAIN, "delivered BI", NAME, UNREAD)


def test_result_that_reads_as_an_error_stays_one(diagnose: Diagnose) -> None:
    """The list calls one error in thirteen true."""
    rows = desk(as_they_are)
    row = next(row for row in rows if key_of(row) in VAIN)
    row["marks"] = [False, True, False, False]
    assert in_vain(diagnose(rows)) == VAIN


def answer_vain(rows: list[Row], answers: list[str]) -> list[Row]:
    for row in rows:
        if key_of(row) in VAIN:
            row["response"]["output"] = items_of(gives_up(answers))
    return rows


def test_call_that_is_answered_with_nothing(diagnose: Diagnose) -> None:
    group = diagnose(answer_vain(desk(as_they_are), ["", REFUSED, "", ""])).shows(VAIN, "delivered BI", NAME)
    assert "no result" not in group.text  # nothing came back, which is no message to quote


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

OTHERS: dict[str, Flags] = {
    "solved": lambda worked, passes: [*[False] * (len(worked) - 1), passes],  # which only the last call of a pass does
    "without the last": lambda worked, passes: worked[:-1],
    "a third value": lambda worked, passes: [2 * ok for ok in worked],
    "half of the calls": lambda worked, passes: [at % 2 == 0 for at in range(len(worked))],
}


def held_by_few() -> list[Row]:
    return [row if place % 5 else without([row])[0] for place, row in enumerate(desk(as_they_are))]


def few_errors() -> list[Row]:
    """Too few results read as an error."""
    rows = answer_vain(desk(as_they_are), [UNREAD] * 4)
    for row in rows:
        for item in row["response"]["output"] if row["_ng_task_index"] > 3 else ():
            item.update({"output": "Alder Lane is on route 2."} if item.get("output") == REFUSED else {})
    return rows


def healthy() -> list[Row]:
    """The list says what the results say."""
    made = [(key, reward, *acts_of((key[0] + 20, key[1]))) for key, reward in rewards(12, 4, 0.75).items()]
    return [desk_row(*key, reward, acts, marks=worked) for key, reward, acts, worked in made]


@pytest.mark.parametrize("what", [*OTHERS, held_by_few, few_errors, healthy])
def test_list_that_states_something_else(diagnose: Diagnose, what: str | Callable[[], list[Row]]) -> None:
    rows = desk(OTHERS[what]) if isinstance(what, str) else what()
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

"""Rung 4: did the world around the rollout work?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.diagnose.builders import desk, desk_acts, desk_row
from tests.diagnose.diagnosed import Diagnose
from tests.diagnose.rows import Act, Key, Made, Row, grid, key_of, make_row, struck

HIT = {(task, task % 4) for task in range(12)} | {(task, (task + 2) % 4) for task in range(4)}
BUSY = "error: the address server closed the connection"


def errand(task: int, repeat: int, answer: str | None = None, street: str = "") -> list[Act]:
    """The same first acts in all repeats of a task; the address server answers, or gives what is told instead."""
    named = street or f"street {task}"
    acts: list[Act] = [
        ("find_parcel", {"number": task}, f"Parcel {task} is on shelf {task % 5}."),
        ("check_address", {"street": named}, answer or f"{named} is on route {task % 4 + 1}."),
    ]
    if answer is not None:
        return [*acts, f"I could not settle errand {task}." + " Sorry." * (repeat % 3)]
    end: Act = ("redirect_parcel", {"number": task, "street": named}, f"Parcel {task} goes there.")
    return [*acts, *desk_acts(task, repeat, task * 9 + repeat)[1:-3], end, f"Errand {task} is settled."]


def run_of(hit: set[Key], acts: dict[Key, list[Act]], rate: int = 6) -> list[Row]:
    """Rows that fail where they are hit and otherwise pass but for one in `rate`."""
    keys = enumerate(grid(12, 4))
    return [desk_row(*key, float(key not in hit and (5 * place + key[0]) % rate > 0), acts[key]) for place, key in keys]


def dropped(hit: set[Key] = HIT, rate: int = 6, street: str = "") -> Made:
    """A call that works elsewhere after the same acts; or a street that does not exist, with which no call ever works."""
    acts = {key: errand(*key, BUSY if key in hit else None, street if key in hit else "") for key in grid(12, 4)}
    return run_of(hit, acts, rate), hit


@struck
def printing(n_works: int = 0, calls: int = 2, declared: bool = True) -> Iterator[tuple[Row, bool]]:
    """Errands of which some print labels; the printer answers with one error, but for the first `n_works` calls."""
    printed = 0
    for place, (task, repeat) in enumerate(grid(12, 4)):
        acts = errand(task, 0)
        prints = (task + repeat) % 3 == 0
        labels: list[Act] = []
        for number in range(calls if prints else 0):
            labels.append(("print_label", {"text": f"{task}-{repeat}-{number}"}, "Printed." if printed < n_works else "error: the label printer is not configured"))
            printed += 1
        tools = sorted({act[0] for act in acts if isinstance(act, tuple)} | ({"print_label"} if declared else set()))
        reward = 0.0 if prints else float(place % 6 > 0)
        yield make_row(task, repeat, reward, [*acts[:-1], *labels, *acts[-1:]], tools=tools), prints


def scattered(is_state: bool) -> list[Row]:
    """Two tools drop calls, each in half of the struck rows; or what precedes the calls differs from all that work."""
    acts: dict[Key, list[Act]] = {}
    for task, repeat in grid(12, 4):
        is_hit = (task, repeat) in HIT
        first: Act = ("find_parcel", {"number": f"{task} again" if is_hit and is_state else task}, f"Parcel {task} is here.")
        at_server = is_hit and task % 2 == 0
        at_scanner = is_hit and task % 2 == 1
        checked: Act = ("check_address", {"street": f"street {task}"}, BUSY if at_server else f"Route {task % 4}.")
        scanned: Act = ("scan_shelf", {"shelf": task % 5}, "error: the shelf scanner timed out" if at_scanner else f"Shelf {task % 5} is full.")
        end: list[Act] = [f"I could not settle errand {task}."] if is_hit else [f"Errand {task} is settled." + " Bye." * (repeat % 3)]
        acts[task, repeat] = [first, checked, *([] if at_server else [scanned]), *end]
    return run_of(HIT, acts)


@struck
def placed(field: str, is_by_task: bool = False) -> Iterator[tuple[Row, bool]]:
    """Desks that are run by four workers; what `east` runs mostly fails, be it that it runs only the hard tasks."""
    for place, (task, repeat) in enumerate(grid(20, 4)):
        is_hard = is_by_task and task % 4 == 0
        is_east = is_hard if is_by_task else (task + repeat) % 4 == 0
        fails = place % 20 > 0 if is_east else place % 6 == 0
        rest = ("west", "north", "south")[(task * 2 + repeat) % 3]
        yield {**desk_row(task, repeat, float(not fails)), field: "east" if is_east else rest}, is_east and fails


@struck
def machines() -> Iterator[tuple[Row, bool]]:
    """Two of six machines break what runs on them; together they are one finding."""
    for place, key in enumerate(grid(24, 6)):
        number = (place * 7 + key[0]) % 6
        yield desk_row(*key, 0.0 if number in (1, 4) else float(place % 6 > 0), exec={"box": f"m-{number}"}), number in (1, 4)


def log(task: int, repeat: int, *last: str) -> str:
    """A long log of a stage around the agent, another one in each row but for its end."""
    chance = random.Random(task * 77 + repeat)
    return "\n".join([f"stage for desk {task}.{repeat}"] + [f"unit {chance.random():.9f} ready" for _ in range(9)] + [*last])


@struck
def staged(field: str, line: str) -> Iterator[tuple[Row, bool]]:
    """The clerk did everything as in the passing repeats of the same tasks; the stage around it broke."""
    for place, key in enumerate(grid(12, 4)):
        is_hit = key in HIT
        reward = 0.0 if is_hit else float((place + key[0]) % 8 > 0)
        yield desk_row(*key, reward, errand(key[0], 0), **{field: log(*key, line if is_hit else "stage complete")}), is_hit


def fenced(is_same: bool) -> Iterator[Row]:
    """Rules in a fence, with words around them that differ in every row; the stage of the struck ones broke."""
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_hit = (task, repeat) in HIT
        rule = f"def route(parcel):\n    return {task} + parcel.weight" + ("" if is_same or not is_hit else f" * {repeat + 2}")
        text = f"{'Well. ' * (place % 5)}Here is rule {place}:\n```python\n{rule}\n```\nI tried it {place % 7} times."
        reward = 0.0 if is_hit else float((place + task) % 8 > 0)
        line = "ERROR: the stage lost its database" if is_hit else "stage complete"
        yield make_row(task, repeat, reward, [text], prompt=f"Write rule {task}.", test_log=log(task, repeat, line))


EVERY = ("resolved", "grade.code", "report")


def graded(ungraded: set[Key], absent: Iterable[str] = EVERY) -> Iterator[Row]:
    for key, row in desk(rate=0.7).items():
        passed = bool(row["reward"]) and key not in ungraded
        report = {"weight": "right" if passed else "wrong"}
        verdict = {"resolved": passed, "grade.code": "settled" if passed else "open", "report": report}
        kept = {name: value for name, value in verdict.items() if key not in ungraded or name not in absent}
        yield {**row, "reward": float(passed), **kept}


@pytest.mark.parametrize("is_loop", [True, False])
def test_a_loop_comes_before_the_missing_grade(diagnose: Diagnose, is_loop: bool) -> None:
    """What asks for one thing again and again was ended for that; what asks for another each time was simply not graded."""
    rows = list(graded(HIT))
    drawers = [7 if is_loop else 7 + n for n in range(9)]
    for row in rows:
        if key_of(row) in HIT:
            acts: list[Act] = [("look_up", {"drawer": drawer}, f"Drawer {drawer} is empty.") for drawer in drawers]
            row["response"] = desk_row(*key_of(row), 0.0, acts)["response"]
    assert ("TI" in diagnose(rows).labels(HIT)) == (not is_loop)


def handing_in(ungraded: set[Key], is_made: bool) -> Iterator[Row]:
    """Errands that end by handing in a form; those without a verdict talk at the end, or hand in as well."""
    for (task, repeat), row in zip(grid(12, 4), graded(ungraded), strict=True):
        is_late = (task, repeat) in ungraded and not is_made
        end: list[Act] = [] if is_late else [("hand_in", {"form": f"F-{task}"}, f"Form F-{task} received.")]
        acts = [*desk_acts(task, repeat, task * 100 + repeat)[:-1], *end, f"That was errand {task}."]
        yield {**row, "response": desk_row(task, repeat, 0.0, acts)["response"]}


def test_rows_that_never_ran_lack_more_than_their_verdict(diagnose: Diagnose) -> None:
    """Crashed rows lack the fields of a rollout too; that must not hide the rows that only lack their verdict."""
    down = {(task, (task + 1) % 4) for task in range(8)}
    ungraded = {(task, (task + 2) % 4) for task in range(12)}
    rows = []
    for row in graded(ungraded):
        task, repeat = key = key_of(row)
        crash = make_row(task, repeat, 0.0, (), fault="error: the desk was closed")
        rows.append(crash if key in down else {**row, "weight": task * 3 + repeat, "counter": f"counter {task % 3}"})
    run = diagnose(rows)
    assert run.shows(ungraded, "environment TI").name == "never graded"
    assert run.group(down).rung == "ran"


# ---- One line for each claim -----------------------------------------------------------------------

FEW = {(1, 1), (5, 2), (9, 0), (10, 3)}
PROVED = {
    "a call that works elsewhere": (dropped, "environment IR alarm", "check_address", "closed the connection"),
    "few rows": (lambda: dropped(FEW, 2), "environment IR warning"),
    "a tool that never works": (
        printing, "environment TI alarm", "`print_label` never works", "label printer is not configured", "32, with 32 different arguments",
    ),
    "several tools": (
        lambda: (scattered(is_state=False), HIT),
        "environment IR alarm", "`check_address`", "`scan_shelf`", "closed the connection", "timed out",
    ),
    "worker": (lambda: placed("worker"), "environment IR alarm", "`worker` = `east`", "elsewhere"),
    "node": (lambda: placed("node_name"), "environment IR alarm", "`node_name` = `east`"),
    "set-up": (
        lambda: staged("setup_log", "ERROR: could not install scale-driver: connection reset by peer"),
        "environment IR alarm", "could not install scale-driver",
    ),
    "tests": (
        lambda: staged("test_log", "test stage: timed out after 600 s while the counter database was starting"),
        "environment IR alarm", "test stage: timed out",
    ),
    "code that passes with other words around it": (
        lambda: (fenced(is_same=True), HIT),
        "environment IR alarm", "the stage lost its database", "handed in exactly what a passing repeat",
    ),
    "never graded": (lambda: (graded(HIT), HIT), "environment TI alarm", "grade"),
    "several machines": (machines, "environment IR", "`m-1`", "`m-4`"),
    "never handed in, so that there was nothing to grade": (lambda: (handing_in(HIT, is_made=False), HIT), "delivered BI"),
    "handed in and never graded": (lambda: (handing_in(HIT, is_made=True), HIT), "environment TI alarm"),
}  # fmt: skip
INNOCENT: dict[str, Callable[[], Any]] = {
    "healthy": lambda: graded(set(), ()),
    "the model's own mistake": lambda: dropped(street="the usual place"),
    "a tool that there is not": lambda: printing(declared=False),
    "a tool that works once": lambda: printing(n_works=1),
    "a tool that costs nothing": lambda: [
        {**row, "reward": float((3 * place + place // 7) % 5 > 1)} for place, row in enumerate(printing()[0])
    ],
    "errors after other acts": lambda: scattered(is_state=True),  # the calls work elsewhere, but never after what precedes these errors
    "a worker that only runs hard tasks": lambda: placed("worker", is_by_task=True),
    "a value that the model chooses": lambda: placed("approach"),
    "code that no passing repeat has": lambda: fenced(is_same=False),
    "one absent verdict field": lambda: graded(HIT, ("resolved",)),
}

"""Rung 4: did the world around the rollout work?"""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from tests.diagnose.builders import Act, Diagnose, Key, Row, desk, desk_acts, desk_row, grid, told_of

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
    return [*acts, *desk_acts(task, repeat, random.Random(task * 9 + repeat))[1:-3], end, f"Errand {task} is settled."]


def run_of(hit: Iterable[Key], acts: dict[Key, list[Act]], rate: int = 6) -> list[Row]:
    """Rows that fail where they are hit and otherwise pass but for one in `rate`."""
    struck = set(hit)
    return [
        desk_row(*key, 0.0 if key in struck else float((5 * place + key[0]) % rate > 0), acts[key])
        for place, key in enumerate(grid(12, 4))
    ]


# ---- Tools ---------------------------------------------------------------------------------------


def test_call_that_works_elsewhere_after_the_same_acts(diagnose: Diagnose) -> None:
    acts = {key: errand(*key, BUSY if key in HIT else None) for key in grid(12, 4)}
    group = diagnose(run_of(HIT, acts)).proved(HIT, "environment", "IR", "alarm")
    assert "check_address" in told_of(group)
    assert "closed the connection" in told_of(group)
    assert group.quote is not None
    assert "closed the connection" in (group.quote.quote or "")


def test_few_rows_are_a_warning(diagnose: Diagnose) -> None:
    few = {(1, 1), (5, 2), (9, 0), (10, 3)}
    acts = {key: errand(*key, BUSY if key in few else None) for key in grid(12, 4)}
    run = diagnose(run_of(few, acts, rate=2))
    run.proved(few, "environment", "IR", "warning")


def test_error_that_answers_the_models_own_mistake_is_behaviour(diagnose: Diagnose) -> None:
    """The same template, but only for streets that do not exist: no call with such an argument ever works."""
    acts = {}
    for task, repeat in grid(12, 4):
        hit = (task, repeat) in HIT
        acts[task, repeat] = errand(task, repeat, BUSY if hit else None, "the usual place" if hit else "")
    run = diagnose(run_of(HIT, acts))
    assert run.of_rung("environment") == []
    assert "IR" not in run.labels(HIT)


def test_error_from_which_passing_rows_recover_is_innocent(diagnose: Diagnose) -> None:
    """The server drops a call now and then; the clerk calls again, and all goes on as usual."""
    acts = {}
    for task, repeat in grid(12, 4):
        whole = errand(task, repeat)
        dropped: list[Act] = [("check_address", {"street": f"street {task}"}, BUSY)]
        acts[task, repeat] = [whole[0], *dropped, *whole[1:]] if (task, repeat) in HIT else whole
    rows = [desk_row(*key, float(place % 4 > 0), acts[key]) for place, key in enumerate(grid(12, 4))]
    run = diagnose(rows)
    assert run.of_rung("environment") == []
    assert run.alarms == []


# ---- Logs ----------------------------------------------------------------------------------------


def log(task: int, repeat: int, *last: str) -> str:
    """A long log of a stage around the agent, another one in each row but for its end."""
    chance = random.Random(task * 77 + repeat)
    return "\n".join([f"stage for desk {task}.{repeat}"] + [f"unit {chance.random():.9f} ready" for _ in range(9)] + [*last])


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("setup_log", "ERROR: could not install scale-driver: connection reset by peer"),
        ("test_log", "test stage: timed out after 600 s while the counter database was starting"),
    ],
)
def test_log_of_rows_that_did_what_passing_rows_did(diagnose: Diagnose, field: str, line: str) -> None:
    """The clerk did everything as in the passing repeats of the same tasks; the stage around it broke."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        hit = (task, repeat) in HIT
        reward = 0.0 if hit else float((place + task) % 8 > 0)
        fields = {field: log(task, repeat, line if hit else "stage complete")}
        rows.append(desk_row(task, repeat, reward, errand(task, 0), **fields))
    group = diagnose(rows).proved(HIT, "environment", "IR", "alarm")
    assert line.partition(" after ")[0] in told_of(group)


def test_log_line_that_passing_rows_have_too_is_innocent(diagnose: Diagnose) -> None:
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        line = "ERROR: could not install scale-driver: connection reset by peer"
        fields = {"setup_log": log(task, repeat, line if place % 3 else "stage complete")}
        rows.append(desk_row(task, repeat, float(place % 4 > 0), errand(task, 0), **fields))
    run = diagnose(rows)
    assert run.of_rung("environment") == []
    assert "scale-driver" not in run.said


def test_error_text_of_the_grader_in_some_failures_is_a_verdict(diagnose: Diagnose) -> None:
    """Half of the failures carry what the checker found wrong with the work; its words read like an error of a server."""
    rows = []
    for place, row in enumerate(desk(16, 4, 0.5).values()):
        is_told = not row["reward"] and place % 2 == 0
        words = ("invalid street, not found in the register", "failed: two labels on one parcel")[place % 4 // 2]
        rows.append({**row, "finding": words} if is_told else row)
    run = diagnose(rows)
    assert "IR" not in {group.label.value for group in run.groups}
    assert run.alarms == []
    assert "rerun" not in run.said.lower()


# ---- Never graded --------------------------------------------------------------------------------


def graded(ungraded: set[Key], absent: Iterable[str]) -> list[Row]:
    rows = []
    for key, row in desk(rate=0.7).items():
        passed = bool(row["reward"]) and key not in ungraded
        verdict = {
            "resolved": passed,
            "grade.code": "settled" if passed else "open",
            "report": {"weight": "right" if passed else "wrong"},
        }
        kept = {name: value for name, value in verdict.items() if key not in ungraded or name not in absent}
        rows.append({**row, "reward": float(passed), **kept})
    return rows


def test_rows_without_any_verdict_were_never_graded(diagnose: Diagnose) -> None:
    run = diagnose(graded(HIT, ("resolved", "grade.code", "report")))
    group = run.proved(HIT, "environment", "TI", "alarm")
    assert "grade" in told_of(group)


def test_one_absent_verdict_field_is_not_enough(diagnose: Diagnose) -> None:
    run = diagnose(graded(HIT, ("resolved",)))
    assert run.of_rung("environment") == []
    assert "TI" not in run.labels(HIT)


def test_healthy_run_is_silent(diagnose: Diagnose) -> None:
    run = diagnose(graded(set(), ()))
    assert run.of_rung("environment") == []

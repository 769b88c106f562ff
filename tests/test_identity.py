"""Task identity through the command: repeats numbered as tasks are an alarm, what only looks so stays silent."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.builders import DROP, Row, make_input, make_message, make_response, make_row, make_run
from tests.conftest import Blade, Said
from tools.planted import write_run

Alarms = Callable[..., list[dict[str, Any]]]


def ask(text: str) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": text}]}


def make_task_row(task: int, repeat: int, number: int | None = None, **changed: Any) -> Row:
    """A row whose content is that of task `number`, whatever its index."""
    n = task if number is None else number
    told = {"question": f"question {n}", "responses_create_params": ask(f"question {n}"), "expected_answer": f"answer {n}"}
    return make_row(task, repeat, float((n + repeat) % 2), **{**told, **changed})


@pytest.fixture
def identity(diagnosed: Blade) -> Alarms:
    """What is said about the data of a run before its score is used."""

    def found(path: Path) -> list[dict[str, Any]]:
        said: Said = diagnosed(f"x={path}")
        return [entry for entry in said.report["trust"] if entry["label"] == "DA"]

    return found


# -- planted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"expected_answer": DROP}, {"expected_answer": DROP, "question": DROP}])
@pytest.mark.parametrize("lost", [0, 3])
def test_repeats_numbered_as_tasks(tmp_path: Path, identity: Alarms, fields: dict[str, Any], lost: int) -> None:
    rows = [make_task_row(4 * n + at, 0, n, **fields) for n in range(20) for at in range(4)]
    (alarm,) = identity(make_run(tmp_path, rows[lost:]))
    assert (alarm["level"], alarm["rows"]) == ("alarm", 80 - lost)
    assert "20 different prompts, 4 rollouts each" in alarm["text"]
    assert alarm["fix"]


def test_rows_numbered_by_position(tmp_path: Path, blade: Blade, diagnosed: Blade) -> None:
    """Each index holds three prompts, and each prompt lies under three indices."""
    rows = [make_task_row(at // 3, at % 3, at % 12) for at in range(36)]
    path = make_run(tmp_path, rows)
    said = diagnosed(f"x={path}")
    (alarm,) = [entry for entry in said.report["trust"] if entry["label"] == "DA"]
    assert "12 of 12 indices mix up to 3 different prompts" in alarm["text"]
    assert "By prompt there are 12 tasks with 3 rollouts each" in alarm["text"]
    (cause,) = [one for one in said.report["run_causes"] if one["cause"] == "DA"]
    assert cause["n_rollouts"] == 36
    found = json.loads(blade("query", "--json", f"x={path}", alarm["query"]).out)
    assert len(found) == 36
    assert (said.run["n_tasks"], said.run["n_rollouts"], said.run["score"]) == (12, 36, 0.5)  # counted all the same


ALIKE = ["simulated_user_opening", "sparse_indices", "missing_repeat_index", "two_agents", "duplicate_differing"]


@pytest.mark.parametrize(
    ("fault", "repeats"),
    [*product(ALIKE, (1, 2, 4)), *product([""], (1, 2, 5)), ("two_tasks_one_index", 4), ("one_task_two_indices", 4)],
)
def test_planted_near_misses_and_sound_runs(tmp_path: Path, identity: Alarms, fault: str, repeats: int) -> None:
    """One index that is wrong is no alarm about all of them."""
    assert identity(write_run(tmp_path, repeats=repeats, faults=[fault] if fault else []).path) == []


# -- near misses ----------------------------------------------------------------------------------


def opening(text: Callable[[int, int], object], **others: Any) -> Callable[[int, int], Row]:
    return lambda n, at: {"responses_create_params": ask(f"opening {n} {text(n, at)}"), **others}


def without_question(prompt: Callable[[int], Any]) -> Callable[[int, int], Row]:
    return lambda n, at: {"question": DROP, "expected_answer": DROP, "responses_create_params": prompt(n)}


def spoken(n: int, at: int) -> Row:
    """What the model made mostly agrees between repeats; where it does not, several fields change together."""
    text = f"{n} or so" if (n, at) == (5, 3) else str(n)
    response = make_response([make_message(text)])
    return {**dict.fromkeys(("extracted_answer", "model_output", "predicted_label", "answer"), text), "response": response}


RNG = random.Random(0)
GONE = {"question": None, "expected_answer": "", "options": None, "responses_create_params": None}
# what it is -> tasks, repeats, what a row has
NEAR_MISSES: dict[str, tuple[int, int, Callable[[int, int], Row]]] = {
    "a simulated user without ids": (20, 4, opening(lambda n, at: at)),
    "a simulated user who sometimes says the same": (20, 8, opening(lambda n, at: RNG.randrange(2))),
    "coarse fields: domain, level and letter repeat, nothing names a task": (60, 3, lambda n, at: {
        **opening(lambda n, at: at, question=DROP)(n, at), "expected_answer": "ABCD"[n % 4], "domain": f"d{n % 3}",
        "level": n % 5, "gold_action": f"a{n % 7}",
    }),
    "temperature zero": (40, 4, spoken),
    "a game with one prompt for all tasks": (20, 4, without_question(lambda n: ask("play"))),
    **{f"a game of {levels} levels, {repeats} repeats": (30, repeats, without_question(lambda n, levels=levels: ask(f"level {n % levels}")))
       for levels in (2, 3, 5) for repeats in (2, 4)},
    **{f"multiple choice, {repeats} repeats": (40, repeats, lambda n, at: {"expected_answer": "ABCD"[n % 4], "options": ["yes", "no"]})
       for repeats in (1, 4)},
    # sums have few answers; where the prompt does not tell, that two agree says nothing
    "answers that coincide": (30, 2, lambda n, at: {"question": DROP, "responses_create_params": DROP, "expected_answer": n if n != 9 else 4}),
    **{f"{field} of the row, {repeats} repeats": (20, repeats, lambda n, at, field=field: {field: f"{n}-{at}-{hash((n, at)) % 997}"})
       for field in ("id", "uuid", "row_id", "sample_id", "example_id") for repeats in (1, 4)},
    "an error row that does not echo the task": (40, 4, lambda n, at: {"options": [n], **(GONE if (n, at) == (5, 3) else {})}),
    # the object and its member change together: that is one change, not two
    "a counter inside an object": (40, 4, lambda n, at: {"metadata": {"level": n, "tries": 1 + ((n, at) == (5, 3))}}),
    # the run went past midnight; two tasks have repeats on both sides
    "a date in the prompt": (60, 4, lambda n, at: {"responses_create_params": ask(f"day {n + at / 4 > 20.3}: question {n}")}),
    "the seed of the repeat": (20, 4, lambda n, at: {"seed": at}),
}  # fmt: skip
WITHOUT_INPUTS = ("temperature zero", "answers that coincide", "a date in the prompt")


@pytest.mark.parametrize("case", NEAR_MISSES)
def test_what_only_looks_like_it_is_no_alarm(tmp_path: Path, identity: Alarms, case: str) -> None:
    n_tasks, repeats, changed = NEAR_MISSES[case]
    rows = [make_task_row(n, at, **changed(n, at)) for n in range(n_tasks) for at in range(repeats)]
    assert identity(make_run(tmp_path / "plain", rows)) == []
    if case not in WITHOUT_INPUTS:
        assert identity(make_run(tmp_path / "inputs", rows, inputs=map(make_input, rows))) == []

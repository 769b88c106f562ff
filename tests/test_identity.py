"""Task identity through the command: repeats numbered as tasks are an alarm, what only looks so stays silent."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
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
    told = {
        "question": f"question {n}",
        "responses_create_params": ask(f"question {n}"),
        "expected_answer": f"answer {n}",
    }
    return make_row(task, repeat, float((n + repeat) % 2), **{**told, **changed})


@pytest.fixture
def identity(diagnosed: Blade) -> Alarms:
    """What is said about the data of a run before its score is used."""

    def found(path: Path) -> list[dict[str, Any]]:
        said: Said = diagnosed(f"x={path}")
        return [entry for entry in said.report["trust"] if entry["label"] == "DA"]

    return found


# -- planted --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields", [{}, {"expected_answer": DROP}, {"expected_answer": DROP, "question": DROP}]
)
@pytest.mark.parametrize("lost", [0, 3])
def test_repeats_numbered_as_tasks(
    tmp_path: Path, identity: Alarms, fields: dict[str, Any], lost: int
) -> None:
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


def test_counts_do_not_change_with_an_alarm(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [make_task_row(4 * n + at, 0, n) for n in range(20) for at in range(4)]
    said = diagnosed(make_run(tmp_path, rows))
    assert any(entry["level"] == "alarm" for entry in said.report["trust"])
    assert (said.run["n_tasks"], said.run["n_rollouts"], said.run["score"]) == (80, 80, 0.5)


@pytest.mark.parametrize(
    "fault",
    ["simulated_user_opening", "sparse_indices", "missing_repeat_index", "two_agents", "duplicate_differing"],
)
@pytest.mark.parametrize("repeats", [1, 2, 4])
def test_planted_near_misses(tmp_path: Path, identity: Alarms, fault: str, repeats: int) -> None:
    assert identity(write_run(tmp_path, repeats=repeats, faults=[fault]).path) == []


@pytest.mark.parametrize("fault", ["two_tasks_one_index", "one_task_two_indices"])
def test_one_index_that_is_wrong_is_no_alarm_about_all(tmp_path: Path, identity: Alarms, fault: str) -> None:
    assert identity(write_run(tmp_path, faults=[fault]).path) == []


def test_sound_runs(tmp_path: Path, identity: Alarms) -> None:
    for repeats in (1, 2, 5):
        assert identity(write_run(tmp_path / str(repeats), n_tasks=30, repeats=repeats).path) == []


# -- near misses ----------------------------------------------------------------------------------


def silent(folder: Path, identity: Alarms, rows: list[Row], inputs: bool = False) -> None:
    assert identity(make_run(folder / "plain", rows)) == []
    if inputs:
        assert identity(make_run(folder / "inputs", rows, inputs=map(make_input, rows))) == []


def test_simulated_user_without_ids(tmp_path: Path, identity: Alarms) -> None:
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"opening {n} {at}"))
        for n in range(20)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_simulated_user_who_sometimes_says_the_same(tmp_path: Path, identity: Alarms) -> None:
    rng = random.Random(0)
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"opening {n} {rng.randrange(2)}"))
        for n in range(20)
        for at in range(8)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_simulated_user_and_coarse_fields(tmp_path: Path, identity: Alarms) -> None:
    """Domain, level and letter repeat from task to task; nothing here names a task."""
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"opening {n} {at}"), question=DROP, expected_answer="ABCD"[n % 4],
                      domain=f"d{n % 3}", level=n % 5, gold_action=f"a{n % 7}")
        for n in range(60) for at in range(3)
    ]  # fmt: skip
    silent(tmp_path, identity, rows, inputs=True)


def test_temperature_zero(tmp_path: Path, identity: Alarms) -> None:
    """What the model made mostly agrees between repeats, and where it does not, several fields change together."""
    rows = []
    for n in range(40):
        for at in range(4):
            said = f"{n} or so" if (n, at) == (5, 3) else str(n)
            told = {
                "extracted_answer": said,
                "model_output": said,
                "predicted_label": said,
                "answer": said,
                "response": make_response([make_message(said)]),
            }
            rows.append(make_task_row(n, at, **told))
    silent(tmp_path, identity, rows)


def test_game_with_one_prompt_for_all_tasks(tmp_path: Path, identity: Alarms) -> None:
    rows = [
        make_row(n, at, question=DROP, responses_create_params=ask("play"))
        for n in range(20)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


@pytest.mark.parametrize("n_levels", [2, 3, 5])
@pytest.mark.parametrize("repeats", [2, 4])
def test_game_with_a_few_levels(tmp_path: Path, identity: Alarms, n_levels: int, repeats: int) -> None:
    rows = [
        make_row(n, at, question=DROP, responses_create_params=ask(f"level {n % n_levels}"))
        for n in range(30)
        for at in range(repeats)
    ]
    silent(tmp_path, identity, rows, inputs=True)


@pytest.mark.parametrize("repeats", [1, 4])
def test_multiple_choice_with_shared_letters(tmp_path: Path, identity: Alarms, repeats: int) -> None:
    rows = [
        make_task_row(n, at, expected_answer="ABCD"[n % 4], options=["yes", "no"])
        for n in range(40)
        for at in range(repeats)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_answers_that_coincide(tmp_path: Path, identity: Alarms) -> None:
    """Sums have few answers; where the prompt does not tell, that two agree says nothing."""
    rows = [
        make_row(n, at, question=DROP, responses_create_params=DROP, expected_answer=n if n != 9 else 4)
        for n in range(30)
        for at in range(2)
    ]
    silent(tmp_path, identity, rows)


@pytest.mark.parametrize("field", ["id", "uuid", "row_id", "sample_id", "example_id"])
@pytest.mark.parametrize("repeats", [1, 4])
def test_id_of_the_row(tmp_path: Path, identity: Alarms, field: str, repeats: int) -> None:
    rows = [
        make_task_row(n, at, **{field: f"{n}-{at}-{hash((n, at)) % 997}"})
        for n in range(20)
        for at in range(repeats)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_error_rows_that_do_not_echo_the_task(tmp_path: Path, identity: Alarms) -> None:
    gone = {"question": None, "expected_answer": "", "options": None, "responses_create_params": None}
    rows = [
        make_task_row(n, at, **{"options": [n], **(gone if (n, at) == (5, 3) else {})})
        for n in range(40)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_counter_inside_an_object(tmp_path: Path, identity: Alarms) -> None:
    """The object and its member change together: that is one change, not two."""
    rows = [
        make_task_row(n, at, metadata={"level": n, "tries": 1 + ((n, at) == (5, 3))})
        for n in range(40)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_date_in_the_prompt(tmp_path: Path, identity: Alarms) -> None:
    """The run went past midnight; two tasks have repeats on both sides."""
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"day {n + at / 4 > 20.3}: question {n}"))
        for n in range(60)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows)


def test_seed_of_the_repeat(tmp_path: Path, identity: Alarms) -> None:
    rows = [make_task_row(n, at, seed=at) for n in range(20) for at in range(4)]
    silent(tmp_path, identity, rows, inputs=True)

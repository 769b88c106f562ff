"""Task identity through the command: what disagrees with the index is found, what only looks so stays silent."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blade.planted import write_run
from tests.builders import DROP, Row, make_input, make_message, make_response, make_row, make_run
from tests.conftest import Blade, Said

Findings = Callable[..., list[dict[str, Any]]]


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
def identity(diagnosed: Blade) -> Findings:
    """The identity findings of a run, each with its evidence checked."""

    def found(path: Path) -> list[dict[str, Any]]:
        said: Said = diagnosed(f"x={path}")
        told = [finding for finding in said.report["findings"] if finding["detector"] == "task-identity"]
        for finding in told:
            assert finding["evidence"]
            assert all(
                entry["quote"] and entry["field"] and entry["step"] is None for entry in finding["evidence"]
            )
        return told

    return found


# -- planted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sidecars", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_two_tasks_under_one_index(tmp_path: Path, identity: Findings, sidecars: bool, count: int) -> None:
    planted = write_run(
        tmp_path, n_tasks=20 * count, faults=[f"two_tasks_one_index:{count}"], sidecars=sidecars
    )
    found = identity(planted.path)
    assert {finding["task"] for finding in found} == {str(place["task"]) for place in planted.faults}
    assert all("covers 2 different tasks" in finding["summary"] for finding in found)
    assert all(finding["severity"] == 3 for finding in found)
    quotes = {entry["quote"] for finding in found for entry in finding["evidence"]}
    assert {place["task_id"] for place in planted.faults} <= quotes


@pytest.mark.parametrize("sidecars", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_one_task_under_two_indices(tmp_path: Path, identity: Findings, sidecars: bool, count: int) -> None:
    planted = write_run(tmp_path, faults=[f"one_task_two_indices:{count}"], sidecars=sidecars)
    found = identity(planted.path)
    assert [finding["task"] for finding in found] == [str(place["tasks"][0]) for place in planted.faults]
    for finding, place in zip(found, planted.faults, strict=True):
        assert f"2 indices ({place['tasks'][0]}, {place['tasks'][1]})" in finding["summary"]


def test_findings_are_data_artifacts(tmp_path: Path, loaded: Callable[..., Any]) -> None:
    from blade import pipeline

    planted = write_run(tmp_path, faults=["two_tasks_one_index", "one_task_two_indices"])
    report = pipeline.diagnose(loaded(planted.path), "test")
    assert [finding.cause.value for finding in report.findings if finding.detector == "task-identity"] == [
        "DA",
        "DA",
    ]


def test_counts_do_not_change_with_a_finding(tmp_path: Path, diagnosed: Blade) -> None:
    planted = write_run(tmp_path, faults=["two_tasks_one_index"])
    run = diagnosed(planted.path).run
    assert (run["n_tasks"], run["n_rollouts"]) == (20, 80)


@pytest.mark.parametrize(
    "fault",
    ["simulated_user_opening", "sparse_indices", "missing_repeat_index", "two_agents", "duplicate_differing"],
)
@pytest.mark.parametrize("repeats", [1, 2, 4])
def test_planted_near_misses(tmp_path: Path, identity: Findings, fault: str, repeats: int) -> None:
    assert identity(write_run(tmp_path, repeats=repeats, faults=[fault]).path) == []


def test_sound_runs(tmp_path: Path, identity: Findings) -> None:
    for repeats in (1, 2, 5):
        assert identity(write_run(tmp_path / str(repeats), n_tasks=30, repeats=repeats).path) == []


# -- faults of other shapes -----------------------------------------------------------------------


@pytest.mark.parametrize("fields", [{}, {"expected_answer": DROP}, {"question": DROP}])
def test_two_data_sets_under_the_same_indices(
    tmp_path: Path, identity: Findings, fields: dict[str, Any]
) -> None:
    """Every index covers two tasks, so no field holds still within any."""
    rows = [make_task_row(n, at, n + 100 * (at // 2), **fields) for n in range(10) for at in range(4)]
    found = identity(make_run(tmp_path, rows))
    assert [finding["task"] for finding in found] == [str(n) for n in range(10)]
    assert all("covers 2 different tasks" in finding["summary"] for finding in found)


def test_many_findings_are_counted(tmp_path: Path, identity: Findings) -> None:
    rows = [make_task_row(n, at, n + 100 * (at // 2)) for n in range(50) for at in range(4)]
    found = identity(make_run(tmp_path, rows))
    assert len(found) == 21
    assert found[-1]["summary"].startswith("30 more task indices cover several tasks")


def test_one_index_of_two_tasks_without_ids(tmp_path: Path, identity: Findings) -> None:
    rows = [
        make_task_row(n, at, 99 if (n, at) in ((7, 2), (7, 3)) else n) for n in range(30) for at in range(4)
    ]
    (finding,) = identity(make_run(tmp_path, rows))
    assert finding["task"] == "7"


def test_one_index_of_two_prompts_where_nothing_else_is_known(tmp_path: Path, identity: Findings) -> None:
    rows = [
        make_row(n, at, question=DROP, responses_create_params=ask(f"q {99 if (n, at) == (7, 3) else n}"))
        for n in range(30)
        for at in range(4)
    ]
    (finding,) = identity(make_run(tmp_path, rows))
    assert (finding["task"], finding["confidence"]) == ("7", "suspected")


@pytest.mark.parametrize(
    "fields", [{}, {"expected_answer": DROP}, {"expected_answer": DROP, "question": DROP}]
)
@pytest.mark.parametrize("lost", [0, 3])
def test_repeats_numbered_as_tasks(
    tmp_path: Path, identity: Findings, fields: dict[str, Any], lost: int
) -> None:
    rows = [make_task_row(4 * n + at, 0, n, **fields) for n in range(20) for at in range(4)]
    found = identity(make_run(tmp_path, rows[lost:]))
    assert len(found) == (19 if lost else 20)
    assert "4 indices (4, 5, 6, 7)" in found[0 if lost else 1]["summary"]


def test_repeats_numbered_as_tasks_by_id(tmp_path: Path, identity: Findings) -> None:
    rows = [
        make_task_row(4 * n + at, 0, n, task_id=f"t{n}", responses_create_params=ask(f"{n} {at}"))
        for n in range(20)
        for at in range(4)
    ]
    found = identity(make_run(tmp_path, rows))
    assert len(found) == 20
    assert found[0]["evidence"][0]["field"] == "task_id"


def test_a_doubled_task_without_ids(tmp_path: Path, identity: Findings) -> None:
    rows = [make_task_row(n, at, 3 if n == 17 else n) for n in range(30) for at in range(4)]
    (finding,) = identity(make_run(tmp_path, rows))
    assert "2 indices (3, 17)" in finding["summary"]


# -- near misses ----------------------------------------------------------------------------------


def silent(folder: Path, identity: Findings, rows: list[Row], inputs: bool = False) -> None:
    assert identity(make_run(folder / "plain", rows)) == []
    if inputs:
        assert identity(make_run(folder / "inputs", rows, inputs=map(make_input, rows))) == []


def test_simulated_user_without_ids(tmp_path: Path, identity: Findings) -> None:
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"opening {n} {at}"))
        for n in range(20)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_simulated_user_who_sometimes_says_the_same(tmp_path: Path, identity: Findings) -> None:
    rng = random.Random(0)
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"opening {n} {rng.randrange(2)}"))
        for n in range(20)
        for at in range(8)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_simulated_user_and_coarse_fields(tmp_path: Path, identity: Findings) -> None:
    """Domain, level and letter repeat from task to task; nothing here names a task."""
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"opening {n} {at}"), question=DROP, expected_answer="ABCD"[n % 4],
                      domain=f"d{n % 3}", level=n % 5, gold_action=f"a{n % 7}")
        for n in range(60) for at in range(3)
    ]  # fmt: skip
    silent(tmp_path, identity, rows, inputs=True)


def test_temperature_zero(tmp_path: Path, identity: Findings) -> None:
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


def test_game_with_one_prompt_for_all_tasks(tmp_path: Path, identity: Findings) -> None:
    rows = [
        make_row(n, at, question=DROP, responses_create_params=ask("play"))
        for n in range(20)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


@pytest.mark.parametrize("n_levels", [2, 3, 5])
@pytest.mark.parametrize("repeats", [1, 4])
def test_game_with_a_few_levels(tmp_path: Path, identity: Findings, n_levels: int, repeats: int) -> None:
    rows = [
        make_row(n, at, question=DROP, responses_create_params=ask(f"level {n % n_levels}"))
        for n in range(30)
        for at in range(repeats)
    ]
    silent(tmp_path, identity, rows, inputs=True)


@pytest.mark.parametrize("repeats", [1, 4])
def test_multiple_choice_with_shared_letters(tmp_path: Path, identity: Findings, repeats: int) -> None:
    rows = [
        make_task_row(n, at, expected_answer="ABCD"[n % 4], options=["yes", "no"])
        for n in range(40)
        for at in range(repeats)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_answers_that_coincide(tmp_path: Path, identity: Findings) -> None:
    """Sums have few answers; where the prompt does not tell, that two agree says nothing."""
    rows = [
        make_row(n, at, question=DROP, responses_create_params=DROP, expected_answer=n if n != 9 else 4)
        for n in range(30)
        for at in range(2)
    ]
    silent(tmp_path, identity, rows)


@pytest.mark.parametrize("field", ["id", "uuid", "row_id", "sample_id", "example_id"])
@pytest.mark.parametrize("repeats", [1, 4])
def test_id_of_the_row(tmp_path: Path, identity: Findings, field: str, repeats: int) -> None:
    rows = [
        make_task_row(n, at, **{field: f"{n}-{at}-{hash((n, at)) % 997}"})
        for n in range(20)
        for at in range(repeats)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_error_rows_that_do_not_echo_the_task(tmp_path: Path, identity: Findings) -> None:
    gone = {"question": None, "expected_answer": "", "options": None, "responses_create_params": None}
    rows = [
        make_task_row(n, at, **{"options": [n], **(gone if (n, at) == (5, 3) else {})})
        for n in range(40)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_counter_inside_an_object(tmp_path: Path, identity: Findings) -> None:
    """The object and its member change together: that is one change, not two."""
    rows = [
        make_task_row(n, at, metadata={"level": n, "tries": 1 + ((n, at) == (5, 3))})
        for n in range(40)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows, inputs=True)


def test_date_in_the_prompt(tmp_path: Path, identity: Findings) -> None:
    """The run went past midnight; two tasks have repeats on both sides."""
    rows = [
        make_task_row(n, at, responses_create_params=ask(f"day {n + at / 4 > 20.3}: question {n}"))
        for n in range(60)
        for at in range(4)
    ]
    silent(tmp_path, identity, rows)


def test_seed_of_the_repeat(tmp_path: Path, identity: Findings) -> None:
    rows = [make_task_row(n, at, seed=at) for n in range(20) for at in range(4)]
    silent(tmp_path, identity, rows, inputs=True)

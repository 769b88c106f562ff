"""`blade health`: can the score be trusted, asked of small files through the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.builders import Row, make_input, make_message, make_response, make_row, make_run
from tests.conftest import Blade


def answered(task: int, repeat: int, reward: float, answer: str, gold: str) -> Row:
    said = make_response([make_message(f"The {repeat}th time I find \\boxed{{{answer}}} for question {task}.")])
    return make_row(task, repeat, reward, response=said, expected_answer=gold)


def sound() -> list[Row]:
    """Six tasks of which one fails with another answer each time."""
    return [answered(t, r, float(t != 5), str(t if t != 5 else r + 70), str(t)) for t in range(6) for r in range(2)]


def test_a_verifier_that_rejects_right_answers_is_an_alarm_in_text_and_json(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [answered(t, r, 0.0, str(t), str(t)) for t in range(6) for r in range(2)])
    said = blade("health", path)
    assert said.code == 0, said.err
    assert "Can the score be trusted? No." in said.out
    assert "\nalarm    " in said.out
    assert "[TI, task, verifier or harness; 12 rows]" in " ".join(said.out.split())
    document = json.loads(blade("health", "--json", path).out)
    assert document["schema"] == "blade.health/2"
    (run,) = document["runs"]
    assert list(run) == ["name", "score_name", "score", "n_tasks", "n_rollouts", "trust", "flags"]
    assert (run["score"], run["n_tasks"], run["n_rollouts"]) == (0.0, 6, 12)
    first = run["trust"][0]
    assert (first["level"], first["label"], first["rows"]) == ("alarm", "TI", 12)
    assert first["query"].startswith("select run, task, repeat, row from rollouts where run = 'rollouts'")
    assert first["fix"]


def test_a_sound_run_raises_neither_alarm_nor_warning(blade: Blade, tmp_path: Path) -> None:
    rows = sound()
    path = make_run(tmp_path, rows, inputs=map(make_input, rows))
    (run,) = json.loads(blade("health", "--json", path).out)["runs"]
    assert {one["level"] for one in run["trust"]} <= {"note"}
    assert {flag["level"] for flag in run["flags"]} <= {"info"}
    assert "Can the score be trusted? Yes" in blade("health", path).out


def test_missing_rows_are_a_flag_that_asks_for_care(blade: Blade, tmp_path: Path) -> None:
    rows = sound()
    path = make_run(tmp_path, rows[:-3], inputs=map(make_input, rows))
    said = blade("health", path).out
    assert "Can the score be trusted? Yes" not in said
    assert "\nproblem  3 of 12 rows (25.0%)" in said
    (run,) = json.loads(blade("health", "--json", path).out)["runs"]
    assert "lost_rows" in [flag["flag"] for flag in run["flags"] if flag["level"] == "problem"]


def test_each_run_has_its_own_part(blade: Blade, tmp_path: Path) -> None:
    paths = [make_run(tmp_path / name, sound(), name=name) for name in ("one", "two")]
    said = blade("health", *paths).out
    assert said.count("Can the score be trusted?") == said.count("Flags of the columns") == 2
    assert [run["name"] for run in json.loads(blade("health", "--json", *paths).out)["runs"]] == ["one", "two"]


def test_a_threshold_changes_the_verdict(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [make_row(task, at, (task + at) % 5 / 4) for task in range(6) for at in range(3)])
    (run,) = json.loads(blade("health", "--json", path, "--pass-threshold", "0.5").out)["runs"]
    assert (run["score_name"], round(run["score"], 3)) == ("pass_at_1", 0.556)


def test_nothing_to_read_is_refused_as_everywhere(blade: Blade, tmp_path: Path) -> None:
    assert blade("health").code == 2
    assert blade("health", tmp_path / "none.jsonl").code == 3

"""`blade health`: planted faults in files, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.builders import Row, make_message, make_response, make_row, make_run
from tests.conftest import Blade


def answered(task: int, repeat: int, reward: float, answer: str, gold: str) -> Row:
    said = make_response([make_message(f"The {repeat}th time I find {answer} for question {task}.")])
    return make_row(task, repeat, reward, response=said, extracted_answer=answer, expected_answer=gold)


def test_a_broken_verifier_is_told_in_text_and_json(blade: Blade, tmp_path: Path) -> None:
    rows = [answered(t, r, 0.0, str(t), str(t)) for t in range(6) for r in range(2)]
    path = make_run(tmp_path, rows)
    said = blade("health", path)
    assert said.code == 0, said.err
    assert "! gold_rejected: 12 of 12 rows (100%)" in said.out
    told = json.loads(blade("health", "--json", path).out)
    (run,) = told["runs"]
    assert "gold_rejected" in [flag["flag"] for flag in run["flags"] if flag["level"] == "problem"]
    assert len(run["suspects"]) == 6
    assert run["score_without_suspects"]["n"] == 0
    assert run["score_without_suspects"]["value"] is None


def test_a_sound_run_has_neither_problem_nor_suspect(blade: Blade, tmp_path: Path) -> None:
    rows = [answered(t, r, float(t != 5), str(t if t != 5 else r + 70), str(t)) for t in range(6) for r in range(2)]
    (run,) = json.loads(blade("health", "--json", make_run(tmp_path, rows)).out)["runs"]
    assert run["levels"]["problem"] == 0
    assert run["suspects"] == []
    assert run["score_without_suspects"] is None


def test_several_runs_are_held_against_each_other(blade: Blade, tmp_path: Path) -> None:
    right = [answered(t, r, float(t > 0), "77" if t == 0 else str(t), str(t)) for t in range(8) for r in range(2)]
    paths = [make_run(tmp_path / name, right, name=name) for name in ("one", "two")]
    told = json.loads(blade("health", "--json", *paths).out)
    flags = [flag["flag"] for run in told["runs"] for flag in run["flags"]]
    assert "unanimous_wrong_answer" in flags


def test_nothing_to_read_is_told_as_everywhere(blade: Blade, tmp_path: Path) -> None:
    assert blade("health").code == 2
    assert blade("health", tmp_path / "none.jsonl").code == 3

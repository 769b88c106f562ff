"""Oddities that real environments write, one by one: what the report says of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import DROP, make_response, make_row, make_run
from tests.cases import cases
from tests.conftest import Blade, Said

Load = Callable[..., Any]


def flags(said: Said) -> set[str]:
    return {entry["flag"] for entry in said.report["health"]}


def outcomes(said: Said) -> list[str]:
    return [entry["outcome"] for task in said.report["tasks"] for entry in task["repeats"]]


def test_evaluation_that_did_not_complete(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [make_row(0, 0, 0.0, evaluation_completed=False, model_patch="diff " * 40_000), make_row(1, 0, 0.0, evaluation_completed=True)]
    assert outcomes(diagnosed(make_run(tmp_path, rows))) == ["errored", "failed"]


@pytest.mark.parametrize(("fields", "outcome"), cases("formats", "codes of failure"))
def test_codes_of_failure(tmp_path: Path, diagnosed: Blade, fields: dict[str, Any], outcome: str) -> None:
    said = diagnosed(make_run(tmp_path, [make_row(0, 0, 0.0, **fields), make_row(1, 0, 1.0)]))
    assert outcomes(said) == [outcome, "passed"]


def test_other_reasons_of_incompleteness_are_no_truncation(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [make_row(0, 0, 0.0, response=make_response(incomplete_details={"reason": "content_filter"})), make_row(1, 0)]
    assert "truncated_rows" not in flags(diagnosed(make_run(tmp_path, rows)))


@pytest.mark.parametrize("rewards", [(-1, 0, 1), (-0.49, 0.9, 1.0), (-2, 3.5, 10), (-100, 0, 1), (0.0, 0.5, 19.4)])
def test_negative_and_unbounded_rewards(tmp_path: Path, diagnosed: Blade, rewards: tuple[float, ...]) -> None:
    rows = [make_row(n, 0, value) for n, value in enumerate(rewards)]
    said = diagnosed(make_run(tmp_path, rows))
    assert (said.run["reward_kind"], said.run["score_name"]) == ("unbounded", "mean_reward")
    assert said.report["losses"] == []
    assert any("leave [0, 1]" in gap["why"] for gap in said.report["gaps"])
    given = diagnosed(make_run(tmp_path, rows), "--pass-threshold", "0.5")
    assert given.run["score_name"] == "pass_at_1"


def test_integers_and_almost_one(tmp_path: Path, diagnosed: Blade) -> None:
    said = diagnosed(make_run(tmp_path, [make_row(0, 0, 1), make_row(1, 0, 0.9999999999999998), make_row(2, 0, 0)]))
    assert outcomes(said) == ["passed", "passed", "failed"]
    assert said.run["reward_kind"] == "binary"


def test_named_parts_of_a_reward(tmp_path: Path, loaded: Load) -> None:
    rows = [make_row(n, 0, 2.0, reward_components={"format": 1.0, "answer": 1.0}) for n in range(3)]
    assert {"reward_components.format", "reward_components.answer"} <= set(loaded(make_run(tmp_path, rows))[0].run.rollouts.fields)


@pytest.mark.parametrize(("fields", "counts"), cases("formats", "counted trajectories"))
def test_trajectories_are_counted_wherever_they_stand(tmp_path: Path, loaded: Load, blade: Blade, fields: dict[str, Any], counts: list[int]) -> None:
    path = make_run(tmp_path, [make_row(n, 0, 1.0, **{"response": make_response([]), **fields}) for n in range(3)])
    rollouts = loaded(path)[0].run.rollouts
    assert [rollouts.n_items[0], rollouts.n_calls[0], rollouts.n_turns[0]] == counts
    assert not {"empty_outputs", "passes_without_output"} & flags(blade("diagnose", "--json", path))
    source = "" if "response" in fields else f" from {next(iter(fields))}"  # it is named where it is another
    assert f"{counts[0]} steps{source}" in blade("show", path, "0/0").out


def test_keys_with_spaces_and_slashes(tmp_path: Path, loaded: Load) -> None:
    name = "OCRBench/Regular Text Recognition"
    rows = [make_row(n, 0, **{name: n / 4}) for n in range(4)]
    rollouts = loaded(make_run(tmp_path, rows))[0].run.rollouts
    assert rollouts.fields[name].number.tolist() == [0, 0.25, 0.5, 0.75]


def test_host_paths_stay_out_of_settings(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [make_row(n, 0, deliverables_dir="/home/someone/x", instance_config={"path": "/home/someone/y"}) for n in range(2)]
    assert "/home/someone" not in str(diagnosed(f"x={make_run(tmp_path, rows)}").run["settings"])


def test_rows_without_request_response_or_reward(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [make_row(n, 0, response=DROP, reward=DROP) for n in range(3)]
    said = diagnosed(make_run(tmp_path, rows))
    assert outcomes(said) == ["malformed"] * 3
    assert said.run["score"] == 0.0 or said.run["score"] is None


@pytest.mark.parametrize(("usage", "tokens"), cases("formats", "usage"))
def test_usage_in_its_shapes(tmp_path: Path, loaded: Load, usage: Any, tokens: list[int] | None) -> None:
    rollouts = loaded(make_run(tmp_path, [make_row(0, 0, response=make_response(usage=usage))]))[0].run.rollouts
    told = [rollouts.input_tokens[0], rollouts.output_tokens[0], rollouts.total_tokens[0]]
    assert told == tokens if tokens else [value != value for value in told] == [True] * 3


def test_empty_model_name(tmp_path: Path, diagnosed: Blade) -> None:
    rows = [make_row(n, 0, response=make_response(model="")) for n in range(2)]
    assert diagnosed(make_run(tmp_path, rows)).run["model"] is None


def test_a_number_that_counts_is_no_status() -> None:
    """The place of a case begins with 0 and 1; only its own word says what became of it."""
    from blade.formats.check_records import of_list

    cases = [{"case": place, "st": word, "wall": 0.5} for place, word in enumerate(("AC", "TLE", "AC", "WA"))]
    assert [status for _, status, _ in of_list(cases)] == ["passed", "failed", "passed", "failed"]

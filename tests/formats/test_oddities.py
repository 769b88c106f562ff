"""Oddities that real environments write, one by one: what the report says of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import DROP, make_response, make_row, make_run
from tests.case_tables import cases
from tests.conftest import Blade

Load = Callable[..., Any]


# rewards and fields of rows, what comes of each, what the run says
OUTCOMES: list[tuple[list[tuple[Any, dict[str, Any]]], str, dict[str, Any]]] = [
    ([(0.0, {"evaluation_completed": False, "model_patch": "diff " * 40_000}), (0.0, {"evaluation_completed": True})], "errored failed", {}),
    ([(1, {}), (0.9999999999999998, {}), (0, {})], "passed passed failed", {"reward_kind": "binary"}),
    ([(DROP, {"response": DROP})] * 3, "malformed malformed malformed", {"score": None}),
    ([(1.0, {"response": make_response(model="")})] * 2, "passed passed", {"model": None}),
    # another reason of incompleteness is no truncation
    ([(0.0, {"response": make_response(incomplete_details={"reason": "content_filter"})}), (1.0, {})], "failed passed", {}),
    *(([(0.0, fields), (1.0, {})], f"{outcome} passed", {}) for fields, outcome in cases(__file__, "codes of failure")),
]


@pytest.mark.parametrize(("rows", "outcomes", "run"), OUTCOMES)
def test_what_comes_of_a_row(tmp_path: Path, diagnosed: Blade, rows: list[Any], outcomes: str, run: dict[str, Any]) -> None:
    said = diagnosed(make_run(tmp_path, [make_row(n, 0, reward, **fields) for n, (reward, fields) in enumerate(rows)]))
    assert [entry["outcome"] for task in said.report["tasks"] for entry in task["repeats"]] == outcomes.split()
    assert {name: said.run[name] for name in run} == run
    assert "truncated_rows" not in said.flags


@pytest.mark.parametrize("rewards", [(-1, 0, 1), (-0.49, 0.9, 1.0), (-2, 3.5, 10), (-100, 0, 1), (0.0, 0.5, 19.4)])
def test_negative_and_unbounded_rewards(tmp_path: Path, diagnosed: Blade, rewards: tuple[float, ...]) -> None:
    rows = [make_row(n, 0, value) for n, value in enumerate(rewards)]
    said = diagnosed(make_run(tmp_path, rows))
    assert (said.run["reward_kind"], said.run["score_name"]) == ("unbounded", "mean_reward")
    assert said.report["losses"] == []
    assert any("leave [0, 1]" in gap["why"] for gap in said.report["gaps"])
    given = diagnosed(make_run(tmp_path, rows), "--pass-threshold", "0.5")
    assert given.run["score_name"] == "pass_at_1"


def test_parts_of_a_reward_and_keys_with_spaces_are_fields_and_host_paths_no_settings(tmp_path: Path, loaded: Load, diagnosed: Blade) -> None:
    name = "OCRBench/Regular Text Recognition"
    rows = [make_row(n, 0, 2.0, reward_components={"format": 1.0, "answer": n}, **{name: n / 4}) for n in range(4)]
    fields = loaded(make_run(tmp_path, rows))[0].run.rollouts.fields
    assert fields["reward_components.format"].number.tolist() == [1.0] * 4
    assert fields["reward_components.answer"].number.tolist() == [0, 1, 2, 3]
    assert fields[name].number.tolist() == [0, 0.25, 0.5, 0.75]
    rows = [make_row(n, 0, deliverables_dir="/home/someone/x", instance_config={"path": "/home/someone/y"}) for n in range(2)]
    assert "/home/someone" not in str(diagnosed(f"x={make_run(tmp_path / 'paths', rows)}").run["settings"])


@pytest.mark.parametrize(("fields", "counts"), cases(__file__, "counted trajectories"))
def test_trajectories_are_counted_wherever_they_stand(tmp_path: Path, loaded: Load, blade: Blade, fields: dict[str, Any], counts: list[int]) -> None:
    path = make_run(tmp_path, [make_row(n, 0, 1.0, **{"response": make_response([]), **fields}) for n in range(3)])
    rollouts = loaded(path)[0].run.rollouts
    assert [rollouts.n_items[0], rollouts.n_calls[0], rollouts.n_turns[0]] == counts
    assert not {"empty_outputs", "passes_without_output"} & blade("diagnose", "--json", path).flags
    source = "" if "response" in fields else f" from {next(iter(fields))}"  # it is named where it is another
    assert f"{counts[0]} steps{source}" in blade("show", path, "0/0").out


@pytest.mark.parametrize(("usage", "tokens"), cases(__file__, "usage"))
def test_usage_in_its_shapes(tmp_path: Path, loaded: Load, usage: Any, tokens: list[int] | None) -> None:
    rollouts = loaded(make_run(tmp_path, [make_row(0, 0, response=make_response(usage=usage))]))[0].run.rollouts
    told = [rollouts.input_tokens[0], rollouts.output_tokens[0], rollouts.total_tokens[0]]
    assert told == tokens if tokens else [value != value for value in told] == [True] * 3

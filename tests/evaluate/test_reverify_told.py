"""What `blade eval reverify` says where it judges the wrong rows, or rows that are not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from blade.errors import BladeError, NothingToRead
from tests.evaluate.test_reverify import CONFIG, Run, command, lines, write


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def ran_with(run: Run, *verifiers: str, agent: str = "words_agent") -> None:
    """Give the run a manifest that names its verifiers."""
    agents = {agent: {"resources_servers": {name: {"domain": "other"} for name in verifiers}}}
    told = {"schema_version": "1", "identity": {"agents": agents}}
    (run.folder / "run_manifest.json").write_text(json.dumps(told), encoding="utf-8")


def as_mcqa(run: Run) -> None:
    """Have the rows judged by a verifier that needs what they lack."""
    text = CONFIG.replace("string_match:", "mcqa:")
    (run.folder / "c.yaml").write_text(text, encoding="utf-8")


def test_missing_rollouts_are_named_before_their_inputs(run: Run) -> None:
    run.inputs.unlink()
    run.rollouts.unlink()
    told = command(run).exception
    assert isinstance(told, NothingToRead)
    assert told.message == f"there is no file {run.rollouts}"
    # the rollouts are there, and their inputs are not
    write(run.rollouts, run.rows)
    told = command(run).exception
    assert isinstance(told, NothingToRead)
    assert told.message == f"there is no file {run.inputs}"


@pytest.mark.parametrize("agent", ["words_agent", "an_agent_by_another_name"])
def test_another_verifier_than_the_run_had_is_told(run: Run, agent: str) -> None:
    ran_with(run, "math_with_judge", agent=agent)
    assert "the run was judged by math_with_judge, and string_match judges now" in command(run).stderr
    ran_with(run, "string_match", agent=agent)
    assert "judges now" not in command(run, "--overwrite").stderr
    ran_with(run, agent=agent)
    assert "judges now" not in command(run, "--overwrite").stderr
    (run.folder / "run_manifest.json").unlink()
    assert "judges now" not in command(run, "--overwrite").stderr


@pytest.mark.parametrize("identity", [[], {"agents": []}, {"agents": {"words_agent": 1}}])
def test_a_manifest_of_another_shape_tells_nothing(run: Run, identity: Any) -> None:
    (run.folder / "run_manifest.json").write_text(json.dumps({"identity": identity}), encoding="utf-8")
    told = command(run)
    assert told.exit_code == 0, told.output
    assert "judges now" not in told.stderr


def test_where_nothing_got_a_verdict_the_command_fails_and_says_why_once(run: Run) -> None:
    as_mcqa(run)
    told = command(run)
    assert isinstance(told.exception, BladeError)
    assert (told.exception.slug, told.exception.exit_code) == ("nothing-judged", 4)
    assert "none of 8 rollouts got a verdict; 8 times: task_invalid" in told.exception.message
    assert len(lines(run.output.with_name("again_failures.jsonl"))) == 8
    said = [line for line in told.stdout.splitlines() if "task_invalid" in line]
    assert len(said) == 2  # of those that had passed, and of those that had failed
    assert said[0].startswith(
        "passed to none: 4 rollouts, the first task 0, repeat 0: 1 -> none; task_invalid"
    )
    whole = command(run, "--overwrite", "--json")
    assert isinstance(whole.exception, BladeError)
    assert len(json.loads(whole.stdout)["verdicts"]["changes"]) == 8


def test_one_verdict_is_enough_to_end_well(run: Run) -> None:
    rows = [row if at == 0 else {**row, "response": None} for at, row in enumerate(run.rows)]
    write(run.rollouts, rows)
    told = command(run)
    assert told.exit_code == 0, told.output
    assert "7 of them without a verdict now" in told.stdout
    assert told.stdout.count("response_missing") == 2

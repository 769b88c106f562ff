"""The draft of a package: every part is there, true of its own rollouts, and says where it comes from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blade import pipeline
from blade.package import layout as files
from blade.package.drafts import prefixes
from blade.package.validation import validate
from blade.tables.index import Silent
from tests.builders import make_rows, make_run
from tests.case_tables import cases
from tests.conftest import Blade


def test_every_part_is_there_and_filled_from_the_rows(made: Path) -> None:
    names = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert set(cases(__file__, "parts_of_a_draft")) <= names
    text = files.read_text(made / "golden_reports" / "sim_model_a_golden_report.md")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == cases(__file__, "sections")
    assert "<!-- draft: written from rollouts/sim_model_a_rollouts.jsonl by" in text.splitlines()[2]
    told = files.read_json(made / "golden_reports" / "sim_model_a_golden_report_metrics.json")
    head = {"model_name": "sim-model-a", "benchmark": "sim-help-desk", "total_tasks": 16}
    assert head.items() <= told.items()
    assert told["total_rollouts"] == told["passed_rollouts"] + told["failed_rollouts"] == 64
    assert 0 < told["pass_at_1"] < told["pass_at_k"] <= 1
    assert told["always_pass_tasks"] + told["sometimes_pass_tasks"] + told["always_fail_tasks"] == 16
    text = files.read_text(made / "skill" / "SKILL.md")
    assert [line for line in cases(__file__, "lines_of_a_drafted_skill") if line not in text] == []
    for path in made.rglob("*"):
        if path.suffix in (".md", ".json"):
            assert str(made.parent) not in files.read_text(path), path


@pytest.mark.slow
def test_a_package_is_not_written_over_and_the_same_runs_give_the_same_bytes(
    made: Path, package: Path, blade: Blade
) -> None:
    (package / "skill" / "SKILL.md").write_text("mine", encoding="utf-8")
    words = ("package", "init", package, "--run", package / "rollouts", "--name", "sim-help-desk")
    refused = blade(*words)
    assert (refused.code, "output-not-empty" in refused.err) == (2, True)
    assert files.read_text(package / "skill" / "SKILL.md") == "mine"
    assert blade(*words, "--force").code == 0
    for path in sorted(made.rglob("*")):
        if path.is_file():
            assert (package / path.relative_to(made)).read_bytes() == path.read_bytes(), path


def test_runs_of_one_model_and_agents_of_one_file_get_names_of_their_own(tmp_path: Path, blade: Blade) -> None:
    rewards = {task: [1.0, 0.0] for task in range(4)}
    for name, agent in (("one", "agent_x"), ("two", "agent_y"), ("three", "agent_y")):
        rows = make_rows(rewards, agent_ref={"type": "a", "name": agent}, note=name)
        make_run(tmp_path / name, rows, name=name)
    loaded = pipeline.load([str(tmp_path / name) for name in ("one", "two", "three")], Silent())
    assert prefixes(loaded) == ["sim_model_agent_x", "sim_model_agent_y_two", "sim_model_agent_y_three"]
    x, y = (make_rows(rewards, agent_ref={"type": "a", "name": f"agent_{letter}"}) for letter in "xy")
    path = make_run(tmp_path, [*x, *y], compress="gz")
    assert blade("package", "init", tmp_path / "p", "--run", path).code == 0
    for agent in "xy":
        written = tmp_path / "p" / "rollouts" / f"sim_model_agent_{agent}_rollouts.jsonl"
        lines = written.read_text().splitlines()
        assert len(lines) == 8
        assert {json.loads(line)["agent_ref"]["name"] for line in lines} == {f"agent_{agent}"}


def test_hostile_names_stay_text(tmp_path: Path, blade: Blade) -> None:
    evil = "x\n## Injected\n`<img src=x>`|\x1b[31m"
    rows = make_rows({task: [1.0, 0.0] for task in range(6)}, **{evil: "y", "category": evil})
    make_run(tmp_path / "r", rows)
    assert blade("package", "init", tmp_path / "p", "--run", tmp_path / "r", "--name", f"b {evil}").code == 0
    text = files.read_text(tmp_path / "p" / "skill" / "SKILL.md")
    assert "\n## Injected" not in text
    assert "\x1b" not in text
    assert all(check.passed for _, check in validate(tmp_path / "p", "skill", 8, Silent()).checks)

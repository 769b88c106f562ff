"""The drop-in toolkit: every command of the package tutorial, as it is typed, and the two that need no packages."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from blade.package import layout as files
from tests.case_tables import cases
from tests.conftest import ROOT
from tests.package.conftest import DESK

TOOLKIT = ".codex/skills/nemo-gym-blade-analysis/scripts/blade_toolkit.py"


def run(
    *words: object, cwd: Path, path: str | None = None, bare: bool = False, tool: str | Path = ROOT / TOOLKIT
) -> subprocess.CompletedProcess[str]:
    """Run the toolkit; `bare`: without site packages."""
    command = [sys.executable, *(["-S"] if bare else []), str(tool), *map(str, words)]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    env["PATH"] = path if path is not None else env["PATH"]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("name", [".claude", ".codex"])
def test_the_skills_are_linked(name: str) -> None:
    link = ROOT / name / "skills"
    assert link.is_symlink()
    assert os.readlink(link) == "../.agents/skills"


def test_make_shallow_needs_nothing_but_python(tmp_path: Path) -> None:
    shutil.copyfile(Path(__file__).with_name("toolkit_report.md"), tmp_path / "golden_report.md")
    words = ("--input", "golden_report.md", "--output", "shallow.md")
    done = run("make-shallow", *words, cwd=tmp_path, bare=True)
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "shallow.md").read_text(encoding="utf-8")
    assert all(line in made for line in ("| Model | Pass@1 |", "| Phase | Count |", "## Dominant Failure Modes"))
    assert not any(word in made for word in ("wrong_tool", "task_nested_leak"))


def test_validate_skill_needs_nothing_but_python_and_the_rest_says_how_to_install_blade(package: Path, tmp_path: Path) -> None:
    words = ("validate", "--benchmark-dir", package.name, "--phase", "skill")
    done = run(*words, cwd=package.parent, bare=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"[PASS] D1 skill found: {package / 'skill' / 'SKILL.md'}\n")
    assert re.search(r"\n\nSummary: (\d+)/\1 checks passed\n$", done.stdout)
    (package / "skill" / "SKILL.md").unlink()
    done = run(*words, cwd=package.parent, bare=True)
    missing = "[FAIL] D1 skill missing: expected skill/SKILL.md or SKILL.md"
    assert (done.returncode, done.stdout) == (1, f"{missing}\n\nSummary: 0/1 checks passed\n")
    done = run("validate", "--benchmark-dir", "x", "--phase", "all", cwd=tmp_path, path="/nowhere", bare=True)
    assert done.returncode == 1
    words = ("error: BLADE is not installed", "pip install", "Traceback")
    assert [word in done.stderr for word in words] == [True, True, False]


@pytest.mark.parametrize("words", ["make-shallow", "validate", "validate --phase skill", "no-such", ""])
def test_wrong_usage_is_told(tmp_path: Path, words: str) -> None:
    done = run(*words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_tutorial_step_by_step(
    made: Path, tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an empty folder to a package that validates and calibrates, with the words of the tutorial.

    The first command is a process of its own; the others are those of the same file, run in this one.
    """
    bench, golden = tmp_path / "benchmarks" / "evalplus", "benchmarks/evalplus/golden_reports/model_a"
    parts = {name: f"{golden}_{name}" for name in ("golden_report.md", "anchor_facts.json", "shallow.md")}
    report, anchors, shallow = parts.values()
    for letter in "ab":
        raw = made / "rollouts" / f"sim_model_{letter}_rollouts.jsonl"
        files.write_text(bench / "rollouts" / f"model_{letter}_rollouts.jsonl", files.read_text(raw))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    main = runpy.run_path(str(ROOT / TOOLKIT))["main"]

    def tool(*words: str) -> str:
        capfd.readouterr()
        try:
            ended = main([*words])
        except SystemExit as stop:
            ended = stop.code
        out, err = capfd.readouterr()
        assert not ended, out + err
        return out

    validate = ("validate", "--benchmark-dir", "benchmarks/evalplus", "--phase", "all")
    first = run(*validate, cwd=tmp_path)
    assert first.returncode == 1
    assert set(cases(__file__, "lines_of_a_package_of_rollouts")) <= set(first.stdout.splitlines())

    skill = files.read_text(made / "skill" / "SKILL.md").replace("name: sim-help-desk", "name: evalplus-analysis", 1)
    files.write_text(bench / "skill" / "SKILL.md", skill)
    files.write_text(tmp_path / report, files.read_text(DESK / "golden_report.md").replace("sim_model_b", "model_b"))
    sidecar = {"model_name": "model_a", "benchmark": "evalplus", "pass_at_1": 0.672, "total_tasks": 16, "total_rollouts": 64}
    files.write_text(tmp_path / f"{golden}_golden_report_metrics.json", json.dumps(sidecar))
    tool("extract-anchor-facts", "--golden", report, "--benchmark", "evalplus", "--model-name", "model_a", "--output", anchors)
    facts = files.read_json(tmp_path / anchors)
    assert (facts["model"], facts["review_required"]) == ("model_a", True)
    files.write_text(tmp_path / anchors, json.dumps(facts | {"review_required": False}))
    tool("make-shallow", "--input", report, "--output", shallow)
    assert "[FAIL]" not in tool(*validate)
    tool("score", "--report", report, "--golden", report, "--anchor-facts", anchors, "--output-dir", "judged")
    assert files.read_json(tmp_path / "judged" / "reward.json")["final_score"] >= 0.70
    tool("calibrate", "--golden-report", report, "--anchor-facts", anchors, "--shallow-report", shallow,
         "--output-dir", "calibrated", "--seeds", "1")  # fmt: skip
    summary = files.read_json(tmp_path / "calibrated" / "calibration_summary.json")
    assert summary["spread"] >= 0.5
    assert summary["graded"] == [], "graded reports are optional"

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

from blade.agent.skills import split
from blade.package import layout as files
from tests.conftest import ROOT
from tests.package.conftest import DESK

TOOLKIT = ".codex/skills/nemo-gym-blade-analysis/scripts/blade_toolkit.py"
REPORT = Path(__file__).with_name("toolkit_report.md").read_text(encoding="utf-8")


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
    (tmp_path / "golden_report.md").write_text(REPORT, encoding="utf-8")
    done = run(
        "make-shallow", "--input", "golden_report.md", "--output", "shallow.md", cwd=tmp_path, bare=True
    )
    assert done.returncode == 0, done.stderr
    made = (tmp_path / "shallow.md").read_text(encoding="utf-8")
    assert "| Model | Pass@1 |" in made
    assert "| Phase | Count |" in made
    assert "## Dominant Failure Modes" in made
    assert "wrong_tool" not in made
    assert "task_nested_leak" not in made


def test_validate_skill_needs_nothing_but_python(package: Path) -> None:
    words = ("validate", "--benchmark-dir", package.name, "--phase", "skill")
    done = run(*words, cwd=package.parent, bare=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"[PASS] D1 skill found: {package / 'skill' / 'SKILL.md'}\n")
    assert re.search(r"\n\nSummary: (\d+)/\1 checks passed\n$", done.stdout)
    (package / "skill" / "SKILL.md").unlink()
    done = run(*words, cwd=package.parent, bare=True)
    assert done.returncode == 1
    assert (
        done.stdout
        == "[FAIL] D1 skill missing: expected skill/SKILL.md or SKILL.md\n\nSummary: 0/1 checks passed\n"
    )


def test_without_blade_it_says_how_to_install_it(tmp_path: Path) -> None:
    done = run("validate", "--benchmark-dir", "x", "--phase", "all", cwd=tmp_path, path="/nowhere", bare=True)
    assert done.returncode == 1
    assert "error: BLADE is not installed" in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [("make-shallow",), ("validate",), ("validate", "--phase", "skill"), ("no-such",), ()]
)
def test_wrong_usage_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_tutorial_step_by_step(
    made: Path, tmp_path: Path, cache: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From an empty folder to a package that validates and calibrates, with the words of the tutorial.

    The first command is a process of its own; the others are those of the same file, run in this one.
    """
    bench = tmp_path / "benchmarks" / "evalplus"
    for name in ("skill", "rollouts", "golden_reports"):
        (bench / name).mkdir(parents=True)
    for letter in "ab":
        raw = made / "rollouts" / f"sim_model_{letter}_rollouts.jsonl"
        shutil.copyfile(raw, bench / "rollouts" / f"model_{letter}_rollouts.jsonl")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    main = runpy.run_path(str(ROOT / TOOLKIT))["main"]

    def tool(*words: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        try:
            code = main([*words])
        except SystemExit as stop:
            code = stop.code
        return subprocess.CompletedProcess(words, code, *capfd.readouterr())

    validate = ("validate", "--benchmark-dir", "benchmarks/evalplus", "--phase", "all")
    first = run(*validate, cwd=tmp_path)
    assert first.returncode == 1
    assert "[FAIL] D1 skill missing: expected skill/SKILL.md or SKILL.md\n" in first.stdout
    assert "[PASS] At least two scored rollout files: 2\n" in first.stdout
    assert "[FAIL] D3 golden reports found: 0\n" in first.stdout

    head, body = split(files.read_text(made / "skill" / "SKILL.md"))
    assert head is not None
    head = head.replace("name: sim-help-desk", "name: evalplus-analysis")
    (bench / "skill" / "SKILL.md").write_text(f"---\n{head}\n---\n{body}", encoding="utf-8")
    golden = "benchmarks/evalplus/golden_reports/model_a"
    text = files.read_text(DESK / "golden_report.md").replace("sim_model_b", "model_b")
    (tmp_path / f"{golden}_golden_report.md").write_text(text, encoding="utf-8")
    sidecar = {"model_name": "model_a", "benchmark": "evalplus", "pass_at_1": 0.672, "pass_at_k": 0.9375,
               "total_tasks": 16, "total_rollouts": 64}  # fmt: skip
    (tmp_path / f"{golden}_golden_report_metrics.json").write_text(json.dumps(sidecar), encoding="utf-8")

    done = tool(
        "extract-anchor-facts", "--golden", f"{golden}_golden_report.md", "--benchmark", "evalplus",
        "--model-name", "model_a", "--output", f"{golden}_anchor_facts.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    facts = files.read_json(tmp_path / f"{golden}_anchor_facts.json")
    assert (facts["model"], facts["review_required"]) == ("model_a", True)
    (tmp_path / f"{golden}_anchor_facts.json").write_text(json.dumps(facts | {"review_required": False}))
    done = tool("make-shallow", "--input", f"{golden}_golden_report.md", "--output", f"{golden}_shallow.md")
    assert done.returncode == 0
    done = tool(*validate)
    failed = [line for line in done.stdout.splitlines() if line.startswith("[FAIL]")]
    assert not [line for line in failed if "look private" not in line and "Sanitised" not in line], (
        done.stdout
    )
    done = tool(
        "score", "--report", f"{golden}_golden_report.md", "--golden", f"{golden}_golden_report.md",
        "--anchor-facts", f"{golden}_anchor_facts.json", "--output-dir", "judged",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert files.read_json(tmp_path / "judged" / "reward.json")["final_score"] >= 0.70
    done = tool(
        "calibrate", "--golden-report", f"{golden}_golden_report.md", "--anchor-facts", f"{golden}_anchor_facts.json",
        "--shallow-report", f"{golden}_shallow.md", "--output-dir", "calibrated", "--seeds", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    summary = files.read_json(tmp_path / "calibrated" / "calibration_summary.json")
    assert summary["spread"] >= 0.5
    assert summary["graded"] == [], "graded reports are optional"

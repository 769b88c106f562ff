"""The example in the repository: a whole package of two scripted models that validates and calibrates."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from blade.package.calibrate import attacks
from tests.conftest import ROOT, Blade
from tests.package import office
from tests.package.conftest import reviewed

EXAMPLE = ROOT / "benchmarks" / office.NAME
PARTS = ("skill", "rollouts", "golden_reports")  # the rest of the folder defines the benchmark


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for part in PARTS
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }


def test_it_is_what_init_drafts_today_and_a_person_reviewed(cache: Path, tmp_path: Path) -> None:
    today = reviewed(office.drafted(tmp_path), tmp_path / "today")
    if os.environ.get("BLADE_GOLDEN") == "write":
        for part in PARTS:
            shutil.rmtree(EXAMPLE / part, ignore_errors=True)
            shutil.copytree(today / part, EXAMPLE / part)
    made, kept = tree(today), tree(EXAMPLE)
    assert set(made) == set(kept)
    changed = [name for name in kept if made[name] != kept[name]]
    assert not changed, f"{changed} changed: run `make golden` and read the diff"


def test_it_is_ready(blade: Blade) -> None:
    said = blade("package", "validate", "--benchmark-dir", EXAMPLE, "--phase", "all")
    assert said.code == 0, said.out
    assert "[FAIL]" not in said.out
    checklist = said.out.split("Readiness checklist\n")[1].splitlines()
    assert len(checklist) == 7
    assert (
        checklist[5]
        == "[PASS] A shallow baseline exists for each golden report (comparison reports need none)"
    )
    assert checklist[6].startswith("[PASS] Sanitised")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["scripted_careful", "scripted_hasty"])
def test_it_is_calibrated(blade: Blade, tmp_path: Path, model: str) -> None:
    golden = EXAMPLE / "golden_reports"
    said = blade(
        "package", "calibrate", "--golden-report", golden / f"{model}_golden_report.md",
        "--anchor-facts", golden / f"{model}_anchor_facts.json", "--shallow-report", golden / f"{model}_shallow.md",
        "--output-dir", tmp_path / "runs", "--seeds", 1,
    )  # fmt: skip
    assert said.code == 0, said.out
    told = json.loads((tmp_path / "runs" / "calibration_summary.json").read_text())
    assert told["golden_vs_self"] >= 0.85
    assert told["shallow_vs_golden"] <= 0.25
    assert told["spread"] == pytest.approx(told["golden_vs_self"] - told["shallow_vs_golden"])
    scores = {one["name"]: one["score"] for one in told["attacks"]}
    assert set(scores) == {*attacks.ATTACKS, *attacks.WORSE, "flipped rewards", "swapped rollouts"}
    for name in attacks.ATTACKS:
        assert scores[name] <= (0.40 if name in ("false ids", "false quotes") else 0.25), name
    for name, (_, least) in attacks.WORSE.items():
        assert scores[name] <= told["golden_vs_self"] - least, name
    for name in ("flipped rewards", "swapped rollouts"):
        assert scores[name] <= told["golden_vs_self"] - 0.3
    controls = {one["name"]: one["score"] for one in told["controls"]}
    assert abs(controls["sections reordered"] - told["golden_vs_self"]) <= 0.02
    assert controls["paraphrase"] >= 0.75
    assert 0.35 <= controls["half of the facts"] <= 0.65
    for name, score in (("golden-vs-self", "golden_vs_self"), ("shallow-vs-golden", "shallow_vs_golden")):
        reward = json.loads((tmp_path / "runs" / name / "reward.json").read_text())
        assert reward["final_score"] == told[score]

"""The example in the repository: a whole package of two simulated runs that validates and calibrates."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.conftest import ROOT, Blade
from tests.package.conftest import reviewed

EXAMPLE = ROOT / "benchmarks" / "sim-help-desk"


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_it_is_what_init_drafts_today_and_a_person_reviewed(made: Path, tmp_path: Path) -> None:
    if os.environ.get("BLADE_GOLDEN") == "write":
        shutil.rmtree(EXAMPLE, ignore_errors=True)
        reviewed(made, EXAMPLE)
    drafted, kept = tree(reviewed(made, tmp_path / "today")), tree(EXAMPLE)
    assert set(drafted) == set(kept)
    changed = [name for name in kept if drafted[name] != kept[name]]
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


def test_it_is_calibrated(blade: Blade, tmp_path: Path) -> None:
    """The second report; the first is calibrated, from the same bytes, where calibration is tested."""
    golden, model = EXAMPLE / "golden_reports", "sim_model_b"
    said = blade(
        "package", "calibrate", "--golden-report", golden / f"{model}_golden_report.md",
        "--anchor-facts", golden / f"{model}_anchor_facts.json", "--shallow-report", golden / f"{model}_shallow.md",
        "--output-dir", tmp_path / "runs", "--seeds", 1,
    )  # fmt: skip
    assert said.code == 0, said.out

"""Calibration: golden above shallow, attacks low, graded reports in order; enforced and told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blade.package.calibration import ranked
from blade.package.layout import GRADES
from tests.case_tables import cases
from tests.conftest import Blade, Said
from tests.package.conftest import files


def run(blade: Blade, package: Path, to: Path, *more: object) -> Said:
    golden, anchors, shallow = files(package)
    words = ("--golden-report", golden, "--anchor-facts", anchors, "--shallow-report", shallow)
    return blade("package", "calibrate", *words, "--output-dir", to, "--seeds", 1, *more)


def test_the_package_is_calibrated_but_not_with_graded_reports_in_another_order(blade: Blade, package: Path, tmp_path: Path) -> None:
    result = run(blade, package, tmp_path / "out", "--json")
    assert result.code == 0, result.out + result.err
    summary = json.loads((tmp_path / "out" / "calibration_summary.json").read_text())
    assert json.loads(result.out) == summary
    assert summary["golden_vs_self"] >= 0.85
    assert summary["shallow_vs_golden"] <= 0.25
    assert summary["spread"] == pytest.approx(summary["golden_vs_self"] - summary["shallow_vs_golden"])
    assert [trial["name"] for trial in summary["graded"]] == list(GRADES)
    for name, key in (("golden-vs-self", "golden_vs_self"), ("shallow-vs-golden", "shallow_vs_golden")):
        reward = json.loads((tmp_path / "out" / name / "reward.json").read_text())
        assert reward["final_score"] == summary[key]
    graded = package / "golden_reports" / "graded"
    good, wrong = graded / "sim_model_a_2_good.md", graded / "sim_model_a_4_wrong_causes.md"
    text = good.read_text()
    good.write_text(wrong.read_text())
    wrong.write_text(text)
    result = run(blade, package, tmp_path / "again")
    assert result.code == 1
    assert "not calibrated: 3_shallow" in result.out


def test_without_anchors_that_can_be_used_nothing_is_calibrated(blade: Blade, package: Path, tmp_path: Path) -> None:
    golden, _, shallow = files(package)
    shallow.write_text(golden.read_text())  # so that the shallow report has every fact
    assert run(blade, package, tmp_path / "out", "--min-anchor-facts", -3).code == 2
    result = run(blade, package, tmp_path / "out")
    assert result.code == 1
    assert "0 anchor facts can be used" in result.err
    assert "the shallow report has it too" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("scores", "broken"), cases(__file__, "each_graded_report_must_be_clearly_below_the_one_before"))
def test_each_graded_report_must_be_clearly_below_the_one_before(scores: list[float], broken: list[str]) -> None:
    trials = ranked(dict(zip(GRADES, scores, strict=True)))
    assert [trial.name for trial in trials if not trial.held] == broken
    assert ranked({"2_good": 0.5})[0].held, "what is not there is not missed"

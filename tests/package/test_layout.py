"""Where the parts of a package lie, with the names that are accepted beside the usual ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade.package.layout import golden, layout, prefix_of, rollouts_of
from tests.case_tables import cases


def touched(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}", encoding="utf-8")
    return folder


def test_where_skill_and_rollouts_lie_and_whose_a_report_is(tmp_path: Path) -> None:
    assert layout(touched(tmp_path, "SKILL.md")).skill == tmp_path / "SKILL.md"
    assert layout(touched(tmp_path, "skill/SKILL.md")).skill == tmp_path / "skill" / "SKILL.md"
    touched(tmp_path, *cases(__file__, "files_of_data"))
    assert [path.name for path in layout(tmp_path).rollouts] == ["a_rollouts.jsonl"]
    (tmp_path / "rollouts").mkdir()
    found = layout(tmp_path)
    assert found.rollouts == ()
    assert found.source == "rollouts/*.jsonl"
    names = ("model_a_rollouts.jsonl", "model_b_rollouts.jsonl", "model_b2.jsonl")
    paths = [tmp_path / name for name in names]
    assert [prefix_of(path) for path in paths] == ["model_a", "model_b", "model_b2"]
    other = golden(tmp_path / "other_golden_report.md")
    assert rollouts_of(golden(tmp_path / "model-b-golden-report.md"), paths) == paths[1]
    assert rollouts_of(other, paths, ["Model A"]) == paths[0]
    assert rollouts_of(other, paths) is None
    assert rollouts_of(other, paths[:1]) == paths[0]
    assert rollouts_of(golden(tmp_path / "model_golden_report.md"), paths) is None, "two begin with it"


@pytest.mark.parametrize(("report", "sidecar"), cases(__file__, "sidecars_by_their_other_names"))
def test_sidecars_by_their_other_names(tmp_path: Path, report: str, sidecar: str) -> None:
    touched(tmp_path, f"golden_reports/{report}", f"golden_reports/{sidecar}")
    (one,) = layout(tmp_path).goldens
    assert one.metrics.name == sidecar


@pytest.mark.parametrize(("name", "is_comparison"), cases(__file__, "names_of_comparisons"))
def test_reports_on_two_runs(tmp_path: Path, name: str, is_comparison: bool) -> None:
    assert golden(tmp_path / f"{name}_golden_report.md").is_comparison is is_comparison

"""From files to a report, on simulated runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade import pipeline, planted
from blade.report import markdown
from blade.store.index import Silent


@pytest.mark.parametrize("has_file", [True, False])
def test_what_is_inferred_is_said_unless_a_file_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_file: bool
) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    planted.write_run(tmp_path / "run", n_tasks=4, repeats=2)
    if has_file:
        (tmp_path / "run" / "blade.toml").write_text('name = "desk"\n')
    loaded = pipeline.load([str(tmp_path / "run")], Silent())
    said = markdown.render(pipeline.diagnose(loaded, "test"))
    assert ("tasks are told apart by" in said) is not has_file


def test_losses_add_up_to_what_the_score_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    planted.write_run(tmp_path / "run", faults=["lost_rows", "provider_errors"])
    report = pipeline.diagnose(pipeline.load([str(tmp_path / "run")], Silent()), "test")
    assert sum(loss.lost for loss in report.losses) == pytest.approx(1 - report.runs[0].score, abs=1e-9)

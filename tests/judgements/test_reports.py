"""Reports are held against what stood when they were made, wherever their run lies by now."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Blade
from tests.judgements.test_applied import label

PAGES = ("draft.md", "report/report.md", "report/report.json")


@pytest.fixture
def here(path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with reports of a run that lies in a folder below, made from within that one."""
    monkeypatch.chdir(path.parent)
    assert blade("draft", path.name, "-o", "../draft.md").code == 0
    assert blade("diagnose", path.name, "-o", "../report").code == 0
    monkeypatch.chdir(path.parent.parent)
    return path.parent.parent


def test_a_run_by_another_path_is_the_same_run_and_a_later_judgement_makes_no_report_false(here: Path, path: Path, blade: Blade) -> None:
    for page in PAGES:
        said = blade("check", page, "--run", os.path.relpath(path), "--json")
        counts = json.loads(said.out)["counts"]
        assert (counts["contradicted"], counts["unverifiable"]) == (0, 0)
    label(path, "2", "TI")
    for page in PAGES:
        said = blade("check", page, "--run", path, "--json")
        assert json.loads(said.out)["counts"]["contradicted"] == 0
        assert "1 judgement(s) were given since the report was made" in said.err


def test_one_that_a_report_tells_is_not_left_out(path: Path, blade: Blade) -> None:
    label(path, "2", "TI")
    assert blade("draft", path, "-o", path.parent / "draft.md").code == 0
    label(path, "4", "BI")
    text = (path.parent / "draft.md").read_text()
    assert "| `ann` |" in text
    said = blade("check", path.parent / "draft.md", "--run", path, "--json")
    assert json.loads(said.out)["counts"]["contradicted"] == 0

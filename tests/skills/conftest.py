"""Two small simulated runs, made once, and a fresh copy of them for every test that writes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.planted import write_run
from tools.planted.planted_runs import BENCHMARK


@pytest.fixture(scope="session")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs `first` and `second`, each with the facts of its benchmark."""
    folder = tmp_path_factory.mktemp("planted")
    for name, seed, rates in (("first", 0, None), ("second", 7, [0.9, 0.5, 0.7])):
        write_run(folder / name, n_tasks=12, seed=seed, model=f"sim-{name}", rates=rates)
        (folder / name / "blade.toml").write_text(BENCHMARK, encoding="utf-8")
    return folder


@pytest.fixture
def here(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one's own with both runs, in which the test stands; home is another folder."""
    project = tmp_path / "project"
    shutil.copytree(planted, project)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    return project

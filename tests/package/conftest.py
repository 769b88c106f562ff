"""A package of two simulated runs, made once, and copies of it to spoil."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from blade import pipeline
from blade.package.drafts import MARK
from blade.package.scaffold import scaffold
from blade.package.validate.checks import Validation, validate
from blade.planted import write_run
from blade.planted.runs import BENCHMARK
from blade.store.index import Silent

RUNS = (("sim-model-a", 0, None), ("sim-model-b", 7, [0.9, 0.5, 0.7]))


def write_runs(folder: Path) -> list[Path]:
    """Two runs of the same tasks, each with its benchmark facts."""
    found = []
    for model, seed, rates in RUNS:
        here = folder / model
        found.append(write_run(here, n_tasks=16, seed=seed, model=model, rates=rates).path)
        (here / "blade.toml").write_text(BENCHMARK, encoding="utf-8")
    return found


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as `init` drafts it."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder / "cache"))
        loaded = pipeline.load([str(path) for path in write_runs(folder / "runs")], Silent())
        scaffold(folder / "sim-help-desk", loaded, None, None, Silent())
    return folder / "sim-help-desk"


def reviewed(made: Path, to: Path) -> Path:
    """A copy of a package that a person has read: no report of it is marked as a draft."""
    shutil.copytree(made, to)
    for path in (to / "golden_reports").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(rf"^{MARK}.*\n\n", "", text, flags=re.MULTILINE), encoding="utf-8")
    return to


@pytest.fixture
def package(made: Path, tmp_path: Path, cache: Path) -> Path:
    """A copy of the package, reviewed, to be changed."""
    return reviewed(made, tmp_path / "sim-help-desk")


@pytest.fixture
def single(package: Path) -> Path:
    """A copy whose only golden report is that of the first run."""
    for path in (package / "golden_reports").iterdir():
        if not path.name.startswith("sim_model_a_") or "_vs_" in path.name:
            path.unlink()
    return package


@pytest.fixture
def failures(cache: Path) -> Callable[..., list[str]]:
    """The failing checks of a package."""

    def found(folder: Path, phase: str = "all", min_facts: int = 8) -> list[str]:
        told: Validation = validate(folder, phase, min_facts, Silent())
        return [check.text for _, check in told.checks if not check.passed]

    return found

"""A package of two simulated runs, drafted once; a copy of it that a person has written, to spoil."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from blade import pipeline
from blade.package.judge.score import Bench
from blade.package.judge.sources import Case, bench_for, case
from blade.package.layout import GRADES
from blade.package.scaffold import scaffold
from blade.package.shallow import make_shallow
from blade.package.validate.checks import Validation, validate
from blade.planted import write_run
from blade.planted.runs import BENCHMARK
from blade.store.index import Silent

RUNS = (("sim-model-a", 0, None), ("sim-model-b", 7, [0.9, 0.5, 0.7]))
DESK = Path(__file__).with_name("desk")  # a golden report, its anchors and five graded reports, by hand
MODEL = "sim_model_a"


def write_runs(folder: Path) -> list[Path]:
    """Two runs of the same tasks, each with its benchmark facts."""
    paths = []
    for model, seed, rates in RUNS:
        here = folder / model
        paths.append(write_run(here, n_tasks=16, seed=seed, model=model, rates=rates).path)
        (here / "blade.toml").write_text(BENCHMARK, encoding="utf-8")
    return paths


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as `init` drafts it."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder / "cache"))
        loaded = pipeline.load([str(path) for path in write_runs(folder / "runs")], Silent())
        scaffold(folder / "sim-help-desk", loaded, None, None, Silent())
    return folder / "sim-help-desk"


def written(made: Path, to: Path) -> Path:
    """A copy of a draft whose one golden report a person has written, with graded reports beside it."""
    shutil.copytree(made, to)
    reports = to / "golden_reports"
    for path in reports.iterdir():
        if path.name != f"{MODEL}_golden_report_metrics.json":
            path.unlink()
    golden, anchors, shallow = files(to)
    shutil.copyfile(DESK / "golden_report.md", golden)
    shutil.copyfile(DESK / "anchor_facts.json", anchors)
    make_shallow(golden, shallow)
    (reports / "graded").mkdir()
    for grade in GRADES:
        shutil.copyfile(DESK / f"{grade}.md", reports / "graded" / f"{MODEL}_{grade}.md")
    return to


def files(package: Path) -> tuple[Path, Path, Path]:
    """The golden report, its anchors, its shallow baseline."""
    names = (f"{MODEL}_golden_report.md", f"{MODEL}_anchor_facts.json", f"{MODEL}_shallow.md")
    golden, anchors, shallow = (package / "golden_reports" / name for name in names)
    return golden, anchors, shallow


@pytest.fixture
def package(made: Path, tmp_path: Path, cache: Path) -> Path:
    """A copy of the package, written by a person, to be changed."""
    return written(made, tmp_path / "sim-help-desk")


@pytest.fixture(scope="session")
def desk(made: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Bench]:
    """What reports on the first run are judged by, read once."""
    folder = tmp_path_factory.mktemp("desk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder / "cache"))
        held = case(*files(written(made, folder / "sim-help-desk")))
        return held, bench_for(held, Silent())


@pytest.fixture
def failures(cache: Path) -> Callable[..., list[str]]:
    """The failing checks of a package."""

    def found(folder: Path, phase: str = "all", min_facts: int = 8) -> list[str]:
        result: Validation = validate(folder, phase, min_facts, Silent())
        return [check.text for _, check in result.checks if not check.passed]

    return found


def change_anchors(package: Path, **changes: object) -> None:
    """Write other values into the file of anchors."""
    path = files(package)[1]
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")

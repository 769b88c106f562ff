"""A package of two simulated runs, drafted once; a copy of it that a person has written, to spoil."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blade import pipeline
from blade.package.drafts import scaffold
from blade.package.layout import GRADES
from blade.package.report_score import Bench, Case, bench_for, case
from blade.package.shallow import make_shallow
from blade.package.validation import validate
from blade.tables.index import Silent
from tools.planted import write_run
from tools.planted.planted_runs import BENCHMARK

DESK = Path(__file__).with_name("desk")  # a golden report, its anchors and five graded reports, by hand
MODEL = "sim_model_a"


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of a session have in common."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "package"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="package", autouse=True)
def cache(shared: Path) -> Iterator[Path]:
    """One cache for all tests here: they read copies of the same few rollouts again and again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(shared / "cache"))
        yield shared / "cache"


@pytest.fixture(scope="package")
def made(shared: Path, cache: Path) -> Path:
    """The package as `init` drafts it, by the first process that needs it."""

    def draft(to: Path) -> None:
        paths = []
        for model, seed, rates in (("sim-model-a", 0, None), ("sim-model-b", 7, [0.9, 0.5, 0.7])):
            folder = shared / "runs" / model
            paths.append(str(write_run(folder, n_tasks=16, seed=seed, model=model, rates=rates).path))
            (folder / "blade.toml").write_text(BENCHMARK, encoding="utf-8")
        scaffold(to, pipeline.load(paths, Silent()), None, None, Silent())

    return once(shared, "made", draft)


def once(shared: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A package that the first process makes and the others wait for."""
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).exists():
            make(shared / "making" / "sim-help-desk")
            (shared / "making").rename(shared / name)
    return shared / name / "sim-help-desk"


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


@pytest.fixture(scope="package")
def finished(made: Path, shared: Path) -> Path:
    """The package as a person has written it; it stays as it is."""
    return once(shared, "finished", lambda to: written(made, to))


@pytest.fixture
def package(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy to be changed; it lies where it lay before, so that what was read of its rollouts is known."""
    copy = tmp_path_factory.getbasetemp() / "copy" / finished.name
    for path in [path for path in copy.rglob("*") if path.is_file()]:
        same = finished / path.relative_to(copy)
        if not same.exists() or _looks(path) != _looks(same):
            path.unlink()
    for path in [path for path in finished.rglob("*") if path.is_file()]:
        own = copy / path.relative_to(finished)
        own.parent.mkdir(parents=True, exist_ok=True)
        if not own.exists():
            shutil.copy2(path, own)
    return copy


def _looks(path: Path) -> tuple[int, int]:
    return path.stat().st_size, path.stat().st_mtime_ns


@pytest.fixture(scope="package")
def desk(finished: Path) -> tuple[Case, Bench]:
    """What reports on the first run are judged by, read once."""
    held = case(*files(finished))
    return held, bench_for(held, Silent())


@pytest.fixture
def failures(cache: Path) -> Callable[..., list[str]]:
    """The failing checks of a package, in a phase of its validation."""

    def found(folder: Path, phase: str = "all") -> list[str]:
        return [check.text for _, check in validate(folder, phase, 8, Silent()).checks if not check.passed]

    return found


def change_anchors(package: Path, **changes: object) -> None:
    """Write other values into the file of anchors."""
    path = files(package)[1]
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")

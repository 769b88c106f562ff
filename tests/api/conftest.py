"""Two simulated runs with several causes, written once for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import blade
from tools.planted import write_run

FAULTS = ("provider_errors:4", "lost_rows:2", "failed_rows:1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that holds `results/`, and is where paths begin."""
    place = tmp_path_factory.mktemp("api")
    write_run(place / "results", name="before", n_tasks=16, faults=FAULTS)
    write_run(
        place / "results", name="after", n_tasks=16, seed=3, model="sim-model-b", rates=[0.9, 0.7, 0.5, 1.0]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(place / "cache"))
        patch.chdir(place)
        yield place


@pytest.fixture(scope="module")
def run(folder: Path) -> blade.Runs:
    return blade.load("results/before.jsonl")


@pytest.fixture(scope="module")
def runs(folder: Path) -> blade.Runs:
    return blade.load("results/before.jsonl", "results/after.jsonl")

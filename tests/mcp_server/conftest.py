"""One folder with runs, and the tools over it, for all tests of the tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp_server.asking import Asking, here
from tools.planted import write_run


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same tasks in a folder, and a secret beside it."""
    folder = tmp_path_factory.mktemp("served")
    write_run(folder / "runs", name="first", n_tasks=8, repeats=3, faults=("provider_errors:2", "lost_rows:1"))
    write_run(folder / "runs", name="second", n_tasks=8, repeats=3, seed=5)
    write_run(folder / "secret", name="hidden", n_tasks=2, repeats=1)
    (folder / "secret" / "report.md").write_text("# Secret\n\n3 of 2 tasks failed.\n")
    (folder / "runs" / "report.md").write_text("# Report\n\n7 of 5 tasks failed.\n")
    return folder


@pytest.fixture(scope="package", autouse=True)
def cached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("BLADE_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="package")
def ask(folder: Path) -> Asking:
    return here(folder / "runs")

"""A simulated run, its report, and the world the report is held against."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from blade import pipeline
from blade.check.world import World, world
from blade.model import Report
from blade.planted import write_demo
from blade.report import pages
from blade.store.index import Silent


class Told(NamedTuple):
    run: Path
    report: Report
    text: str
    world: World


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        folder = tmp_path_factory.mktemp("demo")
        write_demo(folder)
        loaded = pipeline.load([str(folder)], Silent())
        report = pipeline.with_digests(pipeline.diagnose(loaded, f"blade diagnose {folder}"))
        return Told(folder, report, pages(report), world(report, loaded))

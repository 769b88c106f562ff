"""A simulated run as the world that reports are checked against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from blade import pipeline
from blade.check import Finding, World, checked, world_of
from blade.tables.index import Silent
from tools.planted import write_demo


class Desk(NamedTuple):
    """The run of a help desk: 24 tasks, 92 rollouts, pass@1 67.0%."""

    folder: Path
    world: World

    def check(self, text: str, *kinds: str) -> list[Finding]:
        return [item for item in checked(text, self.world) if not kinds or item.kind in kinds]

    def verdicts(self, text: str, *kinds: str) -> list[str]:
        return [item.verdict for item in self.check(text, *kinds)]


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        folder = tmp_path_factory.mktemp("demo")
        write_demo(folder)
        yield Desk(folder, world_of(pipeline.load([str(folder)], Silent())))

"""The worlds that the tests of the reader share; reading does not change them."""

from __future__ import annotations

import pytest

from blade.check.world import World
from tests.check.reader import worlds


@pytest.fixture(scope="session")
def alpha(tmp_path_factory: pytest.TempPathFactory) -> World:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return worlds.one_run(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> World:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return worlds.two_runs(tmp_path_factory.mktemp("two"))

"""A query reads our tables and nothing else: no file, no setting, no second statement, no end of its limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from blade.errors import UsageError
from blade.query import query_process
from blade.query.query_ground import Ground
from tests.builders import make_rows
from tests.case_tables import cases
from tests.query.grounds import ground

pytestmark = pytest.mark.usefixtures("cache")
ROWS = make_rows({0: [1, 0], 1: [0, 0]})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """One ground for all that is refused or answered in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        told = ground(tmp_path_factory.mktemp("runs"), ROWS)
        told.ask("select count(*) from steps")
    return told


@pytest.fixture
def told(tmp_path: Path) -> Ground:
    return ground(tmp_path, ROWS)


@pytest.mark.parametrize("query", [*cases(__file__, "hostile"), "select " + "(" * 3000 + "1" + ")" * 3000])
def test_refused_in_words_and_without_effect(shared: Ground, query: str) -> None:
    with pytest.raises(UsageError) as refused:
        shared.ask(query)
    assert refused.value.slug == "bad-query"
    assert "\n" not in refused.value.message
    assert not Path("/tmp/blade-leak.csv").exists()
    assert not Path("/tmp/blade-leak").exists()


@pytest.mark.parametrize(("query", "cell"), cases(__file__, "answered"))
def test_answered(shared: Ground, query: str, cell: object) -> None:
    found = shared.ask(query)
    assert found.rows == ((cell,),)  # type: ignore[union-attr]


@pytest.mark.parametrize(("query", "limits", "why"), [
    ("select count(*) from range(100000000) a, range(100000000) b where a.range % 7 = b.range % 5", {"seconds": 1.0}, "1 seconds"),
    ("select sum(length(repeat('x', 1500000000 + range::int))) from range(4)", {"seconds": 20.0, "memory_mb": 300}, ""),
])  # fmt: skip
def test_a_query_that_takes_too_long_or_too_much_is_ended(
    told: Ground, processes: None, query: str, limits: dict[str, Any], why: str
) -> None:
    (outcome,) = query_process.ask(told, [query], **limits)
    assert outcome.error is not None
    assert why in outcome.error


def test_one_that_is_ended_costs_no_other_and_files_of_private_text_are_for_their_owner(told: Ground, processes: None, cache: Path) -> None:
    good, bad, after = query_process.ask(told, ["count", "select * from read_csv('/x')", "pass_at_1"])
    assert good.answers is not None
    assert good.answers[0].value == 4
    assert bad.error is not None
    assert after.answers is not None
    told.ask("select count(*) from steps")
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert files
    assert all(not path.stat().st_mode & 0o077 for path in files)
    folders = [path for path in (cache / "indexes").rglob("*") if path.is_dir()]
    assert all(not path.stat().st_mode & 0o077 for path in folders)
    assert os.access(folders[0], os.W_OK)

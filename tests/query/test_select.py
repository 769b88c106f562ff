"""A query reads our tables and nothing else: no file, no setting, no second statement, no end of its limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blade.errors import UsageError
from blade.query import query_process
from blade.query.query_ground import Ground
from tests.builders import make_rows
from tests.query.grounds import ground

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def told(tmp_path: Path) -> Ground:
    return ground(tmp_path, make_rows({0: [1, 0], 1: [0, 0]}))


HOSTILE = [
    "select * from read_csv('/etc/passwd')",
    "select * from read_text('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from glob('/etc/*')",
    "select content from read_blob('/etc/passwd')",
    "select * from parquet_metadata('/tmp/x.parquet')",
    "select * from sniff_csv('/etc/passwd')",
    "copy (select 1) to '/tmp/blade-leak.csv'",
    "copy rollouts to '/tmp/blade-leak.csv'",
    "export database '/tmp/blade-leak'",
    "attach '/tmp/blade-leak.db'",
    "install httpfs",
    "load httpfs",
    "set threads = 1",
    "reset all",
    "pragma database_list",
    "call pragma_version()",
    "select current_setting('threads')",
    "select * from duckdb_settings()",
    "select * from duckdb_databases()",
    "select * from pragma_table_info('rollouts')",
    "select * from information_schema.tables",
    "select * from r0.rollouts",
    "select * from main.rollouts",
    "select * from query('select 1')",
    "select * from query_table('rollouts')",
    "create table x as select 1",
    "insert into rollouts select * from rollouts",
    "update rollouts set reward = 1",
    "delete from rollouts",
    "drop view rollouts",
    "alter view rollouts rename to x",
    "select 1; select 2",
    "select 1; drop view rollouts",
    "explain select 1",
    "describe rollouts",
    "show tables",
    "summarize rollouts",
    "select random()",
    "select now()",
    "select uuid()",
    "with x as (select * from read_csv('/etc/passwd')) select * from x",
    "select (select content from read_text('/etc/passwd') limit 1)",
    "select * from rollouts where task in (select content from read_text('/etc/passwd'))",
    "select 1 union all select count(*) from glob('/*')",
    "select * from rollouts, lateral (select * from glob('/etc/*'))",
    "begin transaction",
    "vacuum",
    "checkpoint",
    "prepare p as select 1",
    "execute p",
    "select nonsense from rollouts",
    "count where task in (select content from read_text('/etc/passwd'))",
    "count where true) union select * from duckdb_settings() where (true",
    "mean(read_text('/etc/passwd'))",
    "count where",
    "",
    "select " + "(" * 3000 + "1" + ")" * 3000,
]


@pytest.mark.parametrize("query", HOSTILE)
def test_refused_in_words_and_without_effect(told: Ground, query: str) -> None:
    with pytest.raises(UsageError) as refused:
        told.ask(query)
    assert refused.value.slug == "bad-query"
    assert "\n" not in refused.value.message
    assert not Path("/tmp/blade-leak.csv").exists()
    assert not Path("/tmp/blade-leak").exists()


@pytest.mark.parametrize(
    ("query", "cell"),
    [
        ("select count(*) from rollouts", 4),
        ("with few as (select * from rollouts where passed) select count(*) from few", 1),
        ("select count(*) from rollouts r join tasks t using (run, task) where t.bucket = 'never'", 2),
        ("from rollouts select max(repeat)", 1),
        ("select count(*) from (values (1), (2)) v", 2),
        ("select sum(range) from range(4)", 6),
        ("select 'drop table rollouts; --'", "drop table rollouts; --"),
    ],
)
def test_answered(told: Ground, query: str, cell: object) -> None:
    found = told.ask(query)
    assert found.rows == ((cell,),)  # type: ignore[union-attr]


def test_a_query_that_takes_too_long_is_ended(told: Ground, processes: None) -> None:
    endless = "select count(*) from range(100000000) a, range(100000000) b where a.range % 7 = b.range % 5"
    (outcome,) = query_process.ask(told, [endless], seconds=1.0)
    assert outcome.error is not None
    assert "1 seconds" in outcome.error


def test_a_query_that_needs_too_much_memory_is_ended(told: Ground, processes: None) -> None:
    greedy = "select sum(length(repeat('x', 1500000000 + range::int))) from range(4)"
    (outcome,) = query_process.ask(told, [greedy], seconds=20.0, memory_mb=300)
    assert outcome.error is not None


def test_one_that_is_ended_costs_the_others_nothing_but_their_answer(told: Ground, processes: None) -> None:
    good, bad, after = query_process.ask(told, ["count", "select * from read_csv('/x')", "pass_at_1"])
    assert good.answers is not None
    assert good.answers[0].value == 4
    assert bad.error is not None
    assert after.answers is not None


def test_files_of_private_text_are_for_their_owner_alone(told: Ground, cache: Path) -> None:
    told.ask("select count(*) from steps")
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert files
    assert all(not path.stat().st_mode & 0o077 for path in files)
    folders = [path for path in (cache / "indexes").rglob("*") if path.is_dir()]
    assert all(not path.stat().st_mode & 0o077 for path in folders)
    assert os.access(folders[0], os.W_OK)

"""Queries judged by their rows, on databases that they can only read."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from blade_eval.environment import Unmeasured
from blade_eval.sandbox import holds
from blade_eval.sandbox.sql import differs
from blade_eval.verifiers.bird_sql import _run, environment, extracted
from tests.case_tables import tables
from tests.evaluate.verifiers.attempts import example, judged, shipped

MISSING = [f"{check.name}: {check.seen}" for check in holds() if not check.holds]
boxed = pytest.mark.skipif(bool(MISSING), reason=f"no box on this machine: {'; '.join(MISSING)}")

SCRIPT = "CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (2, 'y');"
ROW = {"gt_sql": "SELECT a, b FROM t", "db_id": "t", "db_script": SCRIPT}


def block(query: str) -> str:
    return f"So:\n\n```sql\n{query}\n```\n"


def database(place: Path) -> Path:
    place.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(SCRIPT)
    return place


@boxed
def test_the_gold_queries_of_the_examples_match_themselves() -> None:
    env = shipped("bird_sql")
    for row in example("bird_sql"):
        fields = judged(env, row, block(row["gt_sql"]))
        assert (fields["reward"], fields["execution_match"], fields["failure_reason"]) == (1.0, True, "none")
        assert fields["had_codeblock"] is True


@boxed
@pytest.mark.parametrize(("query", "reward", "reason", "detail"), tables(__file__, "fields.yaml")["queries"])
def test_queries_and_what_becomes_of_them(query: str, reward: float, reason: str, detail: str | None) -> None:
    limit = 5 if "rows" in (detail or "") else 0.3
    fields = judged(environment({"sql_execution_timeout_s": limit}), ROW, block(query))
    assert (fields["reward"], fields["execution_match"], fields["failure_reason"]) == (reward, bool(reward), reason)
    assert fields["failure_detail"] is None if detail is None else detail in fields["failure_detail"]


@boxed
def test_an_order_counts_where_the_setting_and_the_gold_query_have_one() -> None:
    turned = block("SELECT a, b FROM t ORDER BY a DESC")
    for is_ordered, gold, worth in ((True, " ORDER BY a", 0.0), (False, " ORDER BY a", 1.0), (True, "", 1.0)):
        row = {**ROW, "gt_sql": ROW["gt_sql"] + gold}
        assert judged(environment({"ordered": is_ordered}), row, turned)["reward"] == worth


@boxed
def test_a_database_of_a_file_is_read_and_stays_as_it_was(tmp_path: Path) -> None:
    place = database(tmp_path / "t" / "t.sqlite")
    before = hashlib.sha256(place.read_bytes()).hexdigest()
    by_path = {"gt_sql": "SELECT a FROM t", "db_id": "other", "db_path": str(place)}  # within the folder
    by_name = {"gt_sql": "SELECT a FROM t", "db_id": "t"}
    env = environment({"bird_sql_dir": str(tmp_path)})
    for row in (by_path, by_name):
        assert judged(env, row, block("SELECT a FROM t"))["reward"] == 1.0
        assert judged(env, row, block("UPDATE t SET a = 0 RETURNING a"))["failure_reason"] == "execution_error"
    assert hashlib.sha256(place.read_bytes()).hexdigest() == before
    assert {path.name for path in place.parent.iterdir()} == {"t.sqlite"}


@boxed
@pytest.mark.parametrize(("row", "kind"), tables(__file__, "fields.yaml")["queries of no task"])
def test_the_tasks_own_faults_are_not_measured(row: dict[str, Any], kind: str) -> None:
    with pytest.raises(Unmeasured) as missing:
        judged(environment({"sql_execution_timeout_s": 0.3}), row, block("SELECT 1"))
    assert missing.value.kind == kind


@boxed
def test_rows_are_compared_in_the_box_and_stay_there() -> None:
    """A model may ask for hundreds of megabytes; what leaves the box is a verdict of one line."""
    many = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 20000) SELECT n, n + 1 FROM r"
    held = {"compare": "set", "is_ordered": False}

    def said(query: str) -> list[Any]:
        outcome = asyncio.run(_run({"queries": [many, query], **held}, SCRIPT, None, 5))
        assert len(outcome.stdout) < 200
        return [msgspec.json.decode(line) for line in outcome.stdout.splitlines()]

    assert said(many) == [{}, {"difference": None}]
    short = "19999 rows of the expected 20000 are missing, 0 are not expected"
    assert said("SELECT 1, 2") == [{}, {"difference": short}]


@boxed
@pytest.mark.parametrize("way", ["{outside}", "../secret.sqlite", "link.sqlite"])
def test_l5_a_path_of_the_row_outside_of_the_databases_is_not_opened(tmp_path: Path, way: str) -> None:
    outside, folder = database(tmp_path / "secret.sqlite"), tmp_path / "databases"
    folder.mkdir()
    (folder / "link.sqlite").symlink_to(outside)
    row = {"gt_sql": "SELECT a FROM t", "db_id": "other", "db_path": way.format(outside=outside)}
    with pytest.raises(Unmeasured) as missing:
        judged(environment({"bird_sql_dir": str(folder)}), row, block("SELECT a FROM t"))
    assert missing.value.kind == "database_missing"


def test_a_bare_query_counts_and_a_sentence_does_not() -> None:
    for text, found in (
        ("SELECT 1;", ("SELECT 1", False)), ("The answer is SELECT 1", (None, False)), ("```sql\nSELECT 1\n```\n```\n1\n```", ("SELECT 1", True)),
        *((text, (text, False)) for text in ("with x as (select 1) select * from x", "Select one of these: a, b")),
    ):  # fmt: skip
        assert extracted(text) == found


def test_sets_multisets_and_order() -> None:
    once, twice, turned = [(1,), (2,)], [(1,), (2,), (2,)], [(2,), (1,)]
    for wanted, got, compare, is_ordered, is_same in (
        (once, twice, "set", False, True), (once, twice, "multiset", False, False), (once, turned, "set", False, True),
        (once, turned, "set", True, False), (once, turned, "multiset", False, True), ([(None,)], [(0,)], "set", False, False),
        ([], [], "set", False, True),
    ):  # fmt: skip
        assert (differs(wanted, got, compare, is_ordered) is None) is is_same

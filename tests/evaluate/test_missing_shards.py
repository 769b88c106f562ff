"""A shard that nobody gave is told from the manifests of those that were given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_row
from tests.conftest import Blade
from tests.evaluate.test_aggregate import put


def sharded(folder: Path, name: str, shard: str | None, agent: str = "desk", **identity: Any) -> None:
    """A shard of a task, with its inputs and its manifest."""
    task = int(shard.partition("/")[0]) if shard else 0
    rows = [make_row(task, repeat, 1.0, agent_ref={"name": agent}) for repeat in range(2)]
    put(folder / f"{name}.jsonl", rows)
    put(folder / f"{name}_materialized_inputs.jsonl", rows)
    flags = {"--limit": None, "--shard": shard}
    told = {"schema_version": "1", "identity": {"dataset": [{"sha256": "ab"}], "flags": flags, **identity}}
    (folder / f"{name}_manifest.json").write_text(json.dumps(told), encoding="utf-8")


def told(blade: Blade, folder: Path, pattern: str) -> tuple[dict[str, Any], str]:
    words = ["eval", "aggregate", "-i", folder / pattern, "-o", folder / "out" / "run.jsonl"]
    said = blade(*words, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found, blade(*words).out


def test_a_shard_that_was_not_given_is_missing(blade: Blade, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        sharded(tmp_path, f"s{number}", f"{number}/3", is_served=number == 1)
    found, text = told(blade, tmp_path, "s[12].jsonl")
    (whole,) = found["completeness"]
    assert not whole["is_complete"]
    assert whole["missing_shards"] == ["shard 3 of 3 is missing"]
    assert (found["missing_shards"][0]["shards"], found["missing_shards"][0]["of"]) == ([3], 3)
    assert "shard 3 of 3 is missing" in text
    # all of them
    found, text = told(blade, tmp_path, "s?.jsonl")
    assert found["completeness"][0]["is_complete"]
    assert found["missing_shards"] == []
    assert "missing" not in text


def test_several_are_named(blade: Blade, tmp_path: Path) -> None:
    sharded(tmp_path, "s2", "2/4")
    _, text = told(blade, tmp_path, "s2.jsonl")
    assert "shards 1, 3, 4 of 4 are missing (of the run of" in text


@pytest.mark.parametrize("shard", [None, "1/1", "3/2", "x", "1/9999999999999999", 7])
def test_what_is_no_shard_lacks_none(blade: Blade, tmp_path: Path, shard: Any) -> None:
    sharded(tmp_path, "s", None)
    path = tmp_path / "s_manifest.json"
    text = json.loads(path.read_bytes())
    text["identity"]["flags"]["--shard"] = shard
    path.write_text(json.dumps(text), encoding="utf-8")
    found, said = told(blade, tmp_path, "s.jsonl")
    assert found["completeness"][0]["is_complete"]
    assert "missing" not in said


@pytest.mark.parametrize(
    "text", [None, b"", b"[]", b'{"identity": []}', b'{"identity": {"flags": 1}}', b"[" * 99_999]
)
def test_without_a_manifest_nothing_is_said(blade: Blade, tmp_path: Path, text: bytes | None) -> None:
    sharded(tmp_path, "s1", "1/3")
    path = tmp_path / "s1_manifest.json"
    path.unlink() if text is None else path.write_bytes(text)
    found, said = told(blade, tmp_path, "s1.jsonl")
    assert found["completeness"][0]["is_complete"]
    assert "missing" not in said


def test_a_file_without_a_manifest_may_be_the_missing_one(blade: Blade, tmp_path: Path) -> None:
    sharded(tmp_path, "s1", "1/2")
    sharded(tmp_path, "s2", "2/2")
    (tmp_path / "s2_manifest.json").unlink()
    found, text = told(blade, tmp_path, "s?.jsonl")
    assert "shard 2 of 2 is missing, unless it is the file that has no manifest" in text
    assert not found["completeness"][0]["is_complete"]


def test_shards_of_two_runs_do_not_stand_in_for_one_another(blade: Blade, tmp_path: Path) -> None:
    for number in (1, 2):
        sharded(tmp_path, f"a{number}", f"{number}/2", "desk", agents={"desk": {}})
    sharded(tmp_path, "b1", "1/2", "till", agents={"till": {}})
    found, text = told(blade, tmp_path, "??.jsonl")
    assert {one["agent"]: one["is_complete"] for one in found["completeness"]} == {
        "desk": True,
        "till": False,
    }
    assert text.count("missing") == 1


def test_it_is_told_where_nobody_knows_what_was_expected(blade: Blade, tmp_path: Path) -> None:
    sharded(tmp_path, "s1", "1/2")
    (tmp_path / "s1_materialized_inputs.jsonl").unlink()
    found, text = told(blade, tmp_path, "s1.jsonl")
    assert found["completeness"] is None
    assert "shard 2 of 2 is missing" in text

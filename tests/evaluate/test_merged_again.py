"""An output that is there is replaced only if no row of it is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blade.errors import BladeError
from blade_eval.aggregate.shards import merged
from tests.builders import make_row
from tests.conftest import Blade
from tests.evaluate.test_aggregate import put, shards


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_another_file_is_not_replaced_without_force(blade: Blade, tmp_path: Path) -> None:
    shards(tmp_path)
    put(tmp_path / "run.jsonl", [make_row(0, 0, 0.0), make_row(77, 0)])
    before = contents(tmp_path)
    words = ["eval", "aggregate", "-i", tmp_path / "shard_?.jsonl", "-o", tmp_path / "run.jsonl"]
    said = blade(*words)
    assert said.code == 2
    assert "run.jsonl is there already, and its line 2 is in none of the shards" in said.err
    assert "--force" in said.err
    assert contents(tmp_path) == before  # metrics among them
    assert blade(*words, "--force").code == 0
    assert len((tmp_path / "run.jsonl").read_bytes().splitlines()) == 6


@pytest.mark.parametrize("ending", ["_materialized_inputs.jsonl", "_failures.jsonl"])
def test_nor_are_the_inputs_and_failures_of_another_run(tmp_path: Path, ending: str) -> None:
    shards(tmp_path)
    put(tmp_path / f"run{ending}", [make_row(77, 0)])
    before = contents(tmp_path)
    with pytest.raises(BladeError, match=rf"run{ending} is there already, and its line 1 is"):
        merged([f"{tmp_path}/shard_?.jsonl"], tmp_path / "run.jsonl")
    assert contents(tmp_path) == before


def test_an_earlier_merge_of_the_same_shards_is(tmp_path: Path) -> None:
    shards(tmp_path)
    pattern, output = [f"{tmp_path}/shard_?.jsonl"], tmp_path / "run.jsonl"
    merged(pattern, output)
    before = contents(tmp_path)
    merged(pattern, output)
    assert contents(tmp_path) == before
    # the run goes on, and the merge grows with it
    with (tmp_path / "shard_1.jsonl").open("ab") as file:
        put(tmp_path / "more", [make_row(3, 1)])
        file.write((tmp_path / "more").read_bytes())
    merged(pattern, output)
    assert len(output.read_bytes().splitlines()) == 7
    # one shard less, and rows would be lost
    with pytest.raises(BladeError) as told:
        merged([f"{tmp_path}/shard_0.jsonl"], output)
    assert told.value.slug == "output-exists"
    # metrics alone lose nothing
    merged([f"{tmp_path}/shard_0.jsonl"], output, merge=False)


@pytest.mark.parametrize("text", [b"", b"\n \n"])
def test_an_empty_file_is_free(tmp_path: Path, text: bytes) -> None:
    shards(tmp_path)
    (tmp_path / "run.jsonl").write_bytes(text)
    merged([f"{tmp_path}/shard_?.jsonl"], tmp_path / "run.jsonl")
    assert len((tmp_path / "run.jsonl").read_bytes().splitlines()) == 6


def test_a_folder_or_a_pipe_is_no_output(tmp_path: Path) -> None:
    shards(tmp_path)
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("run", "pipe"):
        with pytest.raises(BladeError) as told:
            merged([f"{tmp_path}/shard_?.jsonl"], tmp_path / name, force=True)
        assert told.value.slug == "output-no-file"
    assert (tmp_path / "pipe").is_fifo()

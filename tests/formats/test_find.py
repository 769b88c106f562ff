"""What a user may type for a run, and which files of a folder are taken for one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from blade.errors import NothingToRead, Unreadable
from blade.formats import find
from tests.builders import DROP, joined, make_input, make_row, make_rows, make_run, packed
from tests.cases import cases

ROWS = make_rows({0: [1.0, 0.0], 1: [1.0, 1.0]})
Found = Callable[..., dict[str, list[str]]]


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Found:
    """The runs behind some arguments, as names and file names, typed in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    notes: list[str] = []

    def runs(*specs: object) -> dict[str, list[str]]:
        notes.clear()
        told = find.runs([str(spec) for spec in specs], notes.append)
        assert len({run.name for run in told}) == len(told)
        return {run.name: [path.name for path in run.paths] for run in told}

    runs.notes = notes
    return runs


# -- forms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [None, "gz", "zst"])
def test_file(tmp_path: Path, found: Found, how: str | None) -> None:
    path = make_run(tmp_path, ROWS, compress=how)
    assert found(path.name) == {"rollouts": [path.name]}
    assert found(path) == {"rollouts": [path.name]}
    assert found(f"before={path.name}") == {"before": [path.name]}


def test_name_of_a_file_with_other_endings(tmp_path: Path, found: Found) -> None:
    for name in ("a.ndjson", "b.v1.jsonl", "c.JSONL", "d.txt"):
        (tmp_path / name).write_bytes(joined(ROWS))
    assert found("a.ndjson", "b.v1.jsonl", "c.JSONL", "d.txt").keys() == {"a", "b.v1", "c", "d.txt"}


def test_folder(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path / "r", ROWS, name="a")
    make_run(tmp_path / "r" / "deep" / "deeper", ROWS, name="b", compress="gz")
    make_run(tmp_path / "r" / ".hidden", ROWS, name="c")
    make_run(tmp_path / "r" / "preprocessed_datasets", ROWS, name="d")
    make_run(tmp_path / "x[1]", ROWS)
    assert found("r") == {"a": ["a.jsonl"], "b": ["b.jsonl.gz"]}
    assert found("r/deep/**/*.jsonl*") == {"b": ["b.jsonl.gz"]}
    assert found("x[1]/rollouts.jsonl") == {"rollouts": ["rollouts.jsonl"]}
    assert found("x=r") == {"x/a": ["a.jsonl"], "x/b": ["b.jsonl.gz"]}


def test_named_folder_of_one_run(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path / "r", ROWS[:2], name="a-00000-of-00002")
    make_run(tmp_path / "r", ROWS[2:], name="a-00001-of-00002")
    assert found("x=r") == {"x": ["a-00000-of-00002.jsonl", "a-00001-of-00002.jsonl"]}


def test_glob_of_shards_is_one_run_and_of_other_files_is_not(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path, ROWS[:2], name="my-one", inputs=map(make_input, ROWS[:2]), failures=[])
    make_run(tmp_path, ROWS[2:], name="my-two")
    assert found("*.jsonl") == {"my-one": ["my-one.jsonl"], "my-two": ["my-two.jsonl"]}
    assert found("x=*.jsonl") == {"x": ["my-one.jsonl", "my-two.jsonl"]}
    assert found("*one.jsonl") == {"my-one": ["my-one.jsonl"]}


def test_equals_sign_in_a_path(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path, ROWS, name="lr=3e-5")
    make_run(tmp_path / "seed=1", ROWS)
    assert found("lr=3e-5.jsonl") == {"lr=3e-5": ["lr=3e-5.jsonl"]}
    assert found("x=lr=3e-5.jsonl") == {"x": ["lr=3e-5.jsonl"]}
    assert found("./seed=1/rollouts.jsonl") == {"rollouts": ["rollouts.jsonl"]}
    assert found("x=seed=1/rollouts.jsonl") == {"x": ["rollouts.jsonl"]}


@pytest.mark.parametrize("spec", ["no.jsonl", "x=no.jsonl", "no*.jsonl", "", "x="])
def test_nothing_there(found: Found, spec: str) -> None:
    with pytest.raises(NothingToRead) as error:
        found(spec)
    assert error.value.slug == "no-such-path"


def test_not_a_regular_file(found: Found) -> None:
    with pytest.raises(Unreadable, match="not a regular file"):
        found(os.devnull)


@pytest.mark.parametrize("how", [None, "zst"])
def test_standard_input(blade_process: Callable[..., subprocess.CompletedProcess[bytes]], how: str | None) -> None:
    done = blade_process("diagnose", "--json", "-", input=packed(joined(ROWS), how))
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["name"], run["n_rollouts"], run["sources"][0]["path"]) == ("stdin", 4, "-")


# -- shards ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("names", cases("formats", "shards"), ids=lambda names: names[0])
def test_shards_are_one_run(tmp_path: Path, found: Found, names: tuple[str, str]) -> None:
    for at, name in enumerate(names):
        make_run(tmp_path, ROWS[2 * at : 2 * at + 2], name=name)
    (files,) = found(".").values()
    assert sorted(files) == sorted(f"{name}.jsonl" for name in names)
    assert found(".").keys() == {"r"}
    assert found(*(f"{name}.jsonl" for name in names)).keys() == {"r"}


@pytest.mark.parametrize("names", cases("formats", "no shards"), ids=lambda names: names[0])
def test_runs_are_not_shards(tmp_path: Path, found: Found, names: tuple[str, str]) -> None:
    for name in names:
        make_run(tmp_path, ROWS, name=name)
    assert found(".").keys() == set(names)
    assert found(*(f"{name}.jsonl" for name in names)).keys() == set(names)


def test_one_shard_keeps_its_number(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path, ROWS, name="r-00000-of-00002")
    assert found(".").keys() == {"r-00000-of-00002"}


def test_shards_of_other_folders_are_other_runs(tmp_path: Path, found: Found) -> None:
    for folder in ("a", "b"):
        for at in (0, 1):
            make_run(tmp_path / folder, ROWS[2 * at : 2 * at + 2], name=f"r_shard{at}")
    assert found(".") == {f"{folder}/r": ["r_shard0.jsonl", "r_shard1.jsonl"] for folder in ("a", "b")}


# -- names ----------------------------------------------------------------------------------------


def test_names_tell_runs_apart(tmp_path: Path, found: Found) -> None:
    for folder in ("x/a", "y/a", "y/b"):
        make_run(tmp_path / folder, ROWS)
    assert found(".").keys() == {"x/a/rollouts", "y/a/rollouts", "b/rollouts"}


def test_given_names_are_kept(tmp_path: Path, found: Found) -> None:
    paths = [make_run(tmp_path / folder, ROWS, name="x") for folder in "ab"]
    assert "x" in found(f"x={paths[0]}", paths[1])


# -- what a folder holds besides ------------------------------------------------------------------


def test_sidecars_are_no_runs(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path, ROWS, inputs=map(make_input, ROWS), failures=ROWS)
    for name in ("rollouts_reward_profiling", "data_prepare", "rollout_verdicts", "0-0.capture"):
        make_run(tmp_path, ROWS, name=name)
    (tmp_path / "rollouts_failures.jsonl.gz").write_bytes(packed(joined(ROWS), "gz"))
    (tmp_path / "rollouts_aggregate_metrics.json").write_text("[]")
    assert found(".") == {"rollouts": ["rollouts.jsonl"]}
    assert not found.notes


@pytest.mark.parametrize("line", cases("formats", "no rollouts"))
def test_other_jsonl_is_passed_over(tmp_path: Path, found: Found, line: object) -> None:
    make_run(tmp_path, ROWS)
    make_run(tmp_path, [line, line], name="labels")
    assert found(".") == {"rollouts": ["rollouts.jsonl"]}
    assert "passed over 1 JSONL file" in found.notes[0]


@pytest.mark.parametrize("row", [{"reward": 1.0}, {"response": {"output": []}}, make_row(0, 0, response=DROP, reward=DROP)])
def test_rollouts_come_in_small_shapes(tmp_path: Path, found: Found, row: dict[str, object]) -> None:
    make_run(tmp_path, [row])
    assert found(".") == {"rollouts": ["rollouts.jsonl"]}


def test_rollouts_behind_junk_are_found(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path, ["<PLACEHOLDER ROW>"] * 500 + ["", '{"half": '] + [{"note": "a head"}] + ROWS)
    make_run(tmp_path, ["\ufeff" + json.dumps(ROWS[0])], name="mark")
    assert found(".").keys() == {"rollouts", "mark"}


def test_empty_files_of_a_folder(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path, ROWS)
    make_run(tmp_path, [], name="killed")
    assert found(".") == {"rollouts": ["rollouts.jsonl"]}

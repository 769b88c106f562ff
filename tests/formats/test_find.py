"""What a user may type for a run, and which files of a folder are taken for one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blade.formats import find
from tests.builders import DROP, joined, make_row, make_rows, make_run, packed
from tests.case_tables import cases

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


@pytest.mark.parametrize(("label", "files", "answers"), cases(__file__, "names of runs"), ids=lambda value: value if isinstance(value, str) else "")
def test_what_a_name_stands_for(tmp_path: Path, found: Found, label: str, files: list[str], answers: list[Any]) -> None:
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(joined(ROWS), path.suffix[1:]))
    for specs, runs in answers:
        assert found(*specs) == runs, label
    assert not found.notes


def test_a_name_stands_for_an_absolute_path(tmp_path: Path, found: Found) -> None:
    path = make_run(tmp_path, ROWS)
    assert found(path) == found(path.name) == {"rollouts": ["rollouts.jsonl"]}


@pytest.mark.parametrize("how", [None, "zst"])
def test_standard_input(blade_process: Callable[..., subprocess.CompletedProcess[bytes]], how: str | None) -> None:
    done = blade_process("diagnose", "--json", "-", input=packed(joined(ROWS), how))
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["name"], run["n_rollouts"], run["sources"][0]["path"]) == ("stdin", 4, "-")


# -- shards ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("names", cases(__file__, "shards"), ids=lambda names: names[0])
def test_shards_are_one_run(tmp_path: Path, found: Found, names: tuple[str, str]) -> None:
    for at, name in enumerate(names):
        make_run(tmp_path, ROWS[2 * at : 2 * at + 2], name=name)
    (files,) = found(".").values()
    assert sorted(files) == sorted(f"{name}.jsonl" for name in names)
    assert found(".").keys() == {"r"}
    assert found(*(f"{name}.jsonl" for name in names)).keys() == {"r"}


@pytest.mark.parametrize("names", cases(__file__, "no shards"), ids=lambda names: names[0])
def test_runs_are_not_shards(tmp_path: Path, found: Found, names: tuple[str, str]) -> None:
    for name in names:
        make_run(tmp_path, ROWS, name=name)
    assert found(".").keys() == set(names)
    assert found(*(f"{name}.jsonl" for name in names)).keys() == set(names)


# -- what a folder holds besides ------------------------------------------------------------------


@pytest.mark.parametrize("line", cases(__file__, "no rollouts"))
def test_other_jsonl_is_passed_over(tmp_path: Path, found: Found, line: object) -> None:
    make_run(tmp_path, ROWS)
    make_run(tmp_path, [line, line], name="labels")
    assert found(".") == {"rollouts": ["rollouts.jsonl"]}
    assert "passed over 1 JSONL file" in found.notes[0]


@pytest.mark.parametrize("row", [{"reward": 1.0}, {"response": {"output": []}}, make_row(0, 0, response=DROP, reward=DROP)])
def test_rollouts_come_in_small_shapes(tmp_path: Path, found: Found, row: dict[str, object]) -> None:
    make_run(tmp_path, [row])
    assert found(".") == {"rollouts": ["rollouts.jsonl"]}


def test_rollouts_behind_junk_are_found_and_empty_files_passed_over(tmp_path: Path, found: Found) -> None:
    make_run(tmp_path, ["<PLACEHOLDER ROW>"] * 500 + ["", '{"half": '] + [{"note": "a head"}] + ROWS)
    make_run(tmp_path, ["\ufeff" + json.dumps(ROWS[0])], name="mark")
    make_run(tmp_path, [], name="killed")
    assert found(".").keys() == {"rollouts", "mark"}

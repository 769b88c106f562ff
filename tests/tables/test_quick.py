"""The quick way to a rollout shows what the whole index shows, or leaves it to that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from blade.tables import task_rows
from tests.builders import joined, make_row, make_run
from tests.conftest import Blade
from tests.tables.watching import opened
from tools.planted import write_run

pytestmark = pytest.mark.usefixtures("cache")


def both_ways(blade: Blade, monkeypatch: pytest.MonkeyPatch, path: Path, task: str) -> None:
    """`blade show` says the same with and without the quick way."""
    quickly = blade("show", "--json", path, task)
    with monkeypatch.context() as patch:
        patch.setattr(task_rows, "places", lambda *_: None)
        thoroughly = blade("show", "--json", path, task)
    assert quickly == thoroughly


@pytest.mark.parametrize(
    "faults",
    [
        (), ("retried_attempt",), ("duplicate_identical",), ("duplicate_differing",), ("two_agents",), ("torn_tail",),
        ("missing_repeat_index",), ("sparse_indices",), ("masked_rows", "null_rewards", "lost_rows"),
        ("retried_attempt", "duplicate_differing"),
    ],
    ids="+".join,
)  # fmt: skip
def test_both_ways_show_the_same(faults: tuple[str, ...], tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = write_run(tmp_path, n_tasks=4, repeats=3, faults=faults)
    opened(planted.path)
    for task in sorted(planted.rows)[:2]:
        for wanted in (f"{task}", f"{task}/2", f"{task}/7"):
            both_ways(blade, monkeypatch, planted.path, wanted)


def test_the_quick_way_is_taken(tmp_path: Path) -> None:
    planted = write_run(tmp_path, n_tasks=4, repeats=3, faults=("retried_attempt:2",))
    opened(planted.path)
    for task in range(4):
        places = task_rows.places(planted.path, task)
        assert places is not None
        assert [place.repeat for place in places] == [0, 1, 2]
        rows = [json.loads(task_rows.row_bytes(planted.path, place)) for place in places]
        assert {row["_ng_task_index"] for row in rows} == {task}
        lines = planted.path.read_bytes().split(b"\n")
        assert [json.loads(lines[place.line - 1]) for place in places] == rows
        for row, place in zip(rows, places, strict=True):
            key = (task, place.repeat)
            attempts = [other.get("_ng_attempt_index", 0) for other in map(json.loads, filter(None, lines))
                        if (other["_ng_task_index"], other["_ng_rollout_index"]) == key]  # fmt: skip
            assert row.get("_ng_attempt_index", 0) == place.attempt == max(attempts)
    assert task_rows.places(planted.path, 99) == []
    assert task_rows.places(planted.path, 1 << 70) == []


@pytest.mark.parametrize(
    "row",
    [
        make_row("a"), make_row(None), make_row(0, None), make_row(0, -1), make_row(0, "x"),
        make_row(3, agent_ref={"name": "other"}), "{broken",
    ],
    ids=["text index", "no index", "no repeat", "negative repeat", "text repeat", "two agents", "bad line"],
)  # fmt: skip
@pytest.mark.parametrize("appended", [False, True], ids=["one part", "two parts"])
def test_an_odd_row_anywhere(row: object, appended: bool, tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path, [make_row(task, repeat) for task in range(3) for repeat in range(2)])
    if appended:
        opened(path)
    with path.open("ab") as file:
        file.write(joined([row]))
    found = opened(path)
    assert len(found.manifest.parts) == 1 + appended
    for wanted in ("0", "0/1", "2", "3/0"):
        both_ways(blade, monkeypatch, path, wanted)


def test_a_file_that_is_not_as_it_was_indexed(tmp_path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path, [make_row(0), make_row(1)])
    assert task_rows.places(path, 0) is None  # not indexed
    opened(path)
    assert task_rows.places(path, 0)
    with path.open("ab") as file:
        file.write(joined([make_row(2)]))
    assert task_rows.places(path, 0) is None
    both_ways(blade, monkeypatch, path, "2/0")


def test_task_numbers_that_look_alike_in_bytes(tmp_path: Path) -> None:
    tasks = [0, 1, 255, 256, 257, 65536, 1 << 40, 0, 256]
    path = make_run(tmp_path, [make_row(task, at) for at, task in enumerate(tasks)])
    opened(path)
    for task in set(tasks):
        found = task_rows.places(path, task)
        assert found is not None
        assert [place.repeat for place in found] == [at for at, other in enumerate(tasks) if other == task]


def test_the_quick_way_loads_the_standard_library_alone() -> None:
    program = (
        "import sys; from blade.tables import task_rows; "
        "print({name.partition('.')[0] for name in sys.modules} & {'numpy', 'msgspec', 'xxhash', 'zstandard'})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

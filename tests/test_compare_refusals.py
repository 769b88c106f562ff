"""What `blade compare` cannot do is said before it is tried; what it did not do, as a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import make_row, make_run
from tests.conftest import Blade


def test_runs_without_a_common_task_are_warned_of_and_exit_0(blade: Blade, tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", [make_row(n, 0, 1.0, task_id=f"a{n}") for n in range(4)])
    other = make_run(tmp_path / "two", [make_row(n + 50, 0, 0.0, task_id=f"b{n}") for n in range(4)])
    for more in ([], ["--json"]):
        said = blade("compare", *more, f"old={one}", f"new={other}")
        assert said.code == 0, said.err
        (warning,) = [line for line in said.err.splitlines() if line.startswith("warning:")]
        assert "new was not compared with old" in warning
    assert "warning:" not in blade("compare", f"old={one}", f"new={one}").err


def test_the_reward_cannot_split_a_run(blade: Blade, tmp_path: Path) -> None:
    run = make_run(tmp_path, [make_row(n, 0, float(n % 2)) for n in range(6)])
    said = blade("compare", run, "--by", "reward")
    assert said.code == 2
    assert "the reward cannot split a run" in said.err
    assert "cannot-split" in said.err


@pytest.mark.parametrize("command", ["compare", "diagnose"])
def test_a_folder_that_cannot_be_written_is_told_before_a_run_is_read(blade: Blade, tmp_path: Path, command: str) -> None:
    gone = tmp_path / "gone.jsonl"
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for output in ("/proc/zz", tmp_path / "file" / "x"):
        said = blade(command, gone, gone, "-o", output)
        assert "cannot-write" in said.err
    assert "no-such-path" in blade(command, gone, gone, "-o", tmp_path / "new" / "deep").err
    assert not (tmp_path / "new").exists()

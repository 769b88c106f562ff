"""A report folder: every file whole, ours alone, the same every time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from blade import report as room
from blade.model import Report


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_everything_is_written_and_named(one_run: Report, tmp_path: Path) -> None:
    written = room.write(one_run, tmp_path / "new" / "folder")
    found = tree(tmp_path / "new" / "folder")
    assert {path.relative_to(tmp_path / "new" / "folder").as_posix() for path in written} == set(found)
    assert set(found) == {
        "report.md", "report.html", "report.json", "metrics.json",
        "figures/buckets.svg", "figures/tasks.svg", "figures/funnel.svg", "figures/tokens.svg",
    }  # fmt: skip
    for name in found:
        if name.startswith("figures/"):
            assert f"({name})".encode() in found["report.md"]


def test_twice_is_the_same_bytes(one_run: Report, tmp_path: Path) -> None:
    room.write(one_run, tmp_path / "a")
    room.write(one_run, tmp_path / "a")
    room.write(one_run, tmp_path / "b")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_figures_of_an_earlier_report_go_and_foreign_files_stay(
    cases: dict[str, Callable[[], Report]], one_run: Report, tmp_path: Path
) -> None:
    room.write(cases["two runs"](), tmp_path)
    (tmp_path / "figures" / "mine.svg").write_text("mine")
    (tmp_path / "figures" / "tasks-draft.svg").write_text("mine too")
    room.write(one_run, tmp_path)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"buckets.svg", "tasks.svg", "funnel.svg", "tokens.svg", "mine.svg", "tasks-draft.svg"}
    room.write(one_run, tmp_path, figures=False)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"mine.svg", "tasks-draft.svg"}
    assert b"No figures were drawn" in (tmp_path / "report.md").read_bytes()


def test_a_failed_write_leaves_the_old_file(
    one_run: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room.write(one_run, tmp_path, figures=False)
    before = tree(tmp_path)

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        room.write(one_run, tmp_path, figures=False)
    assert tree(tmp_path) == before


def test_files_are_readable_by_others_as_the_umask_says(one_run: Report, tmp_path: Path) -> None:
    room.write(one_run, tmp_path, figures=False)
    plain = tmp_path / "plain"
    plain.write_text("x")
    assert (tmp_path / "report.md").stat().st_mode == plain.stat().st_mode


def test_importing_the_room_loads_nothing_heavy() -> None:
    program = "import sys, blade.report; print([n for n in ('numpy', 'scipy', 'jinja2', 'vl_convert', 'rich') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_renderers_keep_the_protocol() -> None:
    assert list(room.RENDERERS) == ["text", "markdown", "html", "wire", "metrics"]
    assert all(renderer.SUFFIX.startswith(".") for renderer in room.RENDERERS.values())
    assert set(room.FILES) < set(room.RENDERERS)

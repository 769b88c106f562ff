"""The folder of a report or of a comparison: every file whole, ours alone, the same every time; its page in a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from blade import report as room
from blade.model import Report
from tests.inert import BROWSER, dumped

from . import changed
from .conftest import CASES
from .test_wire import VALIDATOR

Write = Callable[..., list[Path]]
FILES = {
    False: {"report.md", "report.html", "report.json", "metrics.json", *(f"figures/{n}.svg" for n in ("buckets", "tasks", "funnel", "tokens"))},
    True: {"compare.md", "compare.html", "compare.json", *(f"figures/compare-{n}.svg" for n in ("bridge", "scatter", "transitions"))},
}


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(params=[False, True], ids=["report", "comparison"])
def is_comparison(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def write(is_comparison: bool) -> Write:
    return room.write_comparison if is_comparison else room.write


@pytest.fixture
def report(is_comparison: bool) -> Report:
    return changed.pair_report() if is_comparison else CASES["one run"]()


@pytest.fixture
def larger(is_comparison: bool) -> Report:
    return changed.many_report() if is_comparison else CASES["two runs"]()


def test_everything_is_written_and_named_twice_the_same(is_comparison: bool, write: Write, report: Report, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    paths = write(report, folder)
    files = tree(folder)
    assert {path.relative_to(folder).as_posix() for path in paths} == set(files) == FILES[is_comparison]
    page, wire = ("compare.md", "compare.json") if is_comparison else ("report.md", "report.json")
    assert all(f"({name})".encode() in files[page] for name in files if name.startswith("figures/"))
    VALIDATOR.validate(json.loads(files[wire]))
    write(report, folder)
    write(report, tmp_path / "b")
    assert tree(folder) == files == tree(tmp_path / "b")


def test_further_files_of_a_comparison_are_written_too(tmp_path: Path) -> None:
    room.write_comparison(changed.pair_report(), tmp_path, extra={"gate.md": "# PASS\n"})
    assert set(tree(tmp_path)) == FILES[True] | {"gate.md"}


def test_figures_of_an_earlier_report_go_and_foreign_files_stay(
    is_comparison: bool, write: Write, report: Report, larger: Report, tmp_path: Path
) -> None:
    write(larger, tmp_path)
    prefix = "compare-" if is_comparison else ""
    foreign = {f"figures/{prefix}mine.svg", f"figures/{prefix}tasks-draft.svg", f"figures/{prefix}bridge-draft.svg"}
    for name in foreign:
        (tmp_path / name).write_text("mine")
    write(report, tmp_path)
    assert set(tree(tmp_path)) == FILES[is_comparison] | foreign
    write(report, tmp_path, figures=False)
    page = "compare.md" if is_comparison else "report.md"
    assert {name for name in tree(tmp_path) if name.startswith("figures/")} == foreign
    assert b"No figures were drawn" in (tmp_path / page).read_bytes()


def test_a_report_in_the_same_folder_is_left_alone_and_the_reverse(tmp_path: Path) -> None:
    room.write(changed.pair_report(), tmp_path)
    before = tree(tmp_path)
    assert {"figures/bridge.svg", "figures/scatter.svg", "figures/transitions.svg"} <= set(before)
    room.write_comparison(changed.pair_report(), tmp_path)
    both = tree(tmp_path)
    assert before.items() <= both.items()
    room.write(changed.pair_report(), tmp_path)
    assert tree(tmp_path) == both


def test_a_failed_write_leaves_the_old_file(write: Write, report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(report, tmp_path, figures=False)
    before = tree(tmp_path)

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write(report, tmp_path, figures=False)
    assert tree(tmp_path) == before


def test_files_are_readable_by_others_as_the_umask_says(one_run: Report, tmp_path: Path) -> None:
    room.write(one_run, tmp_path, figures=False)
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "report.md").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_importing_the_room_loads_nothing_heavy() -> None:
    program = "import sys, blade.report; print([n for n in ('numpy', 'scipy', 'jinja2', 'vl_convert', 'rich') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- In a real browser, where one is installed ---------------------------------------------------

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
@pytest.mark.parametrize(("name", "sections"), [("report.html", 11), ("compare.html", 7)])
def test_the_page_opens_whole_and_runs_nothing(
    tmp_path: Path, build: Callable[..., Report], name: str, sections: int
) -> None:
    if name == "report.html":
        room.write(build({HOSTILE: {"0": [1.0, 0.0], HOSTILE: [0.0, 0.0]}}), tmp_path / "report")
    else:
        room.write_comparison(changed.many_report(lambda text: HOSTILE + text), tmp_path / "report")
    seen = dumped(tmp_path / "report" / name, tmp_path / "profile")
    assert seen.count("<section") == sections
    assert "<title>owned" not in seen
    assert "<script" not in seen
    assert "data:image/svg+xml" in seen

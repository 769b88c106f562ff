"""The folder of a report or of a comparison: every file whole, ours alone, the same every time; its page in a browser."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest

from blade import report as room
from blade.model import Report
from tests.inert import BROWSER, dumped

from . import changed
from .conftest import CASES, make_report
from .test_wire import VALIDATOR

FILES = {
    False: {"report.md", "report.html", "report.json", "metrics.json", *(f"figures/{n}.svg" for n in ("buckets", "tasks", "funnel", "tokens"))},
    True: {"compare.md", "compare.html", "compare.json", *(f"figures/compare-{n}.svg" for n in ("bridge", "scatter", "transitions"))},
}


def tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Kind:
    """A report or a comparison: how it is written, a small and a larger one, and the names of its files."""

    def __init__(self, is_comparison: bool, report: Report, larger: Report) -> None:
        self.write: Callable[..., list[Path]] = partial(room.write, is_comparison=is_comparison)
        self.report, self.larger, self.files = report, larger, FILES[is_comparison]
        self.page, _, self.wire = room.FILES[is_comparison]
        self.prefix = room.PREFIX[is_comparison]


KINDS = Kind(False, CASES["one run"](), CASES["two runs"]()), Kind(True, changed.pair_report(), changed.many_report())
BOTH = pytest.mark.parametrize("kind", KINDS, ids=["report", "comparison"])


@BOTH
def test_everything_is_written_and_named_twice_the_same(kind: Kind, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    paths = kind.write(kind.report, folder)
    files = tree(folder)
    assert {path.relative_to(folder).as_posix() for path in paths} == set(files) == kind.files
    assert all(f"({name})".encode() in files[kind.page] for name in files if name.startswith("figures/"))
    VALIDATOR.validate(json.loads(files[kind.wire]))
    kind.write(kind.report, folder)
    kind.write(kind.report, tmp_path / "b")
    assert tree(folder) == files == tree(tmp_path / "b")
    (tmp_path / "plain").write_text("x")
    assert (folder / kind.page).stat().st_mode == (tmp_path / "plain").stat().st_mode  # readable by others as the umask says


@BOTH
def test_figures_of_an_earlier_report_go_and_foreign_files_stay(kind: Kind, tmp_path: Path) -> None:
    kind.write(kind.larger, tmp_path)
    foreign = {f"figures/{kind.prefix}{name}.svg" for name in ("mine", "tasks-draft", "bridge-draft")}
    for name in foreign:
        (tmp_path / name).write_text("mine")
    kind.write(kind.report, tmp_path)
    assert set(tree(tmp_path)) == kind.files | foreign
    kind.write(kind.report, tmp_path, figures=False)
    assert {name for name in tree(tmp_path) if name.startswith("figures/")} == foreign
    assert b"No figures were drawn" in (tmp_path / kind.page).read_bytes()


@BOTH
def test_a_failed_write_leaves_the_old_file(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind.write(kind.report, tmp_path, figures=False)
    before = tree(tmp_path)

    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        kind.write(kind.report, tmp_path, figures=False)
    assert tree(tmp_path) == before


def test_importing_the_room_loads_nothing_heavy() -> None:
    program = "import sys, blade.report; print([n for n in ('numpy', 'scipy', 'jinja2', 'vl_convert', 'rich') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ---- In a real browser, where one is installed ---------------------------------------------------

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
@pytest.mark.parametrize(("name", "sections"), [("report.html", 11), ("compare.html", 7)])
def test_the_page_opens_whole_and_runs_nothing(tmp_path: Path, name: str, sections: int) -> None:
    if name == "report.html":
        room.write(make_report({HOSTILE: {"0": [1.0, 0.0], HOSTILE: [0.0, 0.0]}}), tmp_path / "report")
    else:
        room.write(changed.many_report(lambda text: HOSTILE + text), tmp_path / "report", is_comparison=True)
    seen = dumped(tmp_path / "report" / name, tmp_path / "profile")
    assert seen.count("<section") == sections
    assert [part for part in ("<title>owned", "<script") if part in seen] == []
    assert "data:image/svg+xml" in seen

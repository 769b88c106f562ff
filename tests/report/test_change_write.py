"""The files of a comparison: whole, ours alone, beside a report without touching it."""

from __future__ import annotations

import json
from pathlib import Path

from blade import report as room

from . import changed
from .test_wire import VALIDATOR
from .test_write import tree


def test_everything_is_written_and_named(tmp_path: Path) -> None:
    written = room.write_comparison(changed.pair_report(), tmp_path, extra={"gate.md": "# PASS\n"})
    found = tree(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in written} == set(found)
    assert set(found) == {
        "compare.md", "compare.html", "compare.json", "gate.md",
        "figures/compare-bridge.svg", "figures/compare-scatter.svg", "figures/compare-transitions.svg",
    }  # fmt: skip
    for name in found:
        if name.startswith("figures/"):
            assert f"({name})".encode() in found["compare.md"]
    VALIDATOR.validate(json.loads(found["compare.json"]))


def test_twice_is_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "a", "b"):
        room.write_comparison(changed.many_report(), tmp_path / folder)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_a_report_in_the_same_folder_is_left_alone_and_the_reverse(tmp_path: Path) -> None:
    room.write(changed.pair_report(), tmp_path)
    before = tree(tmp_path)
    assert {"figures/bridge.svg", "figures/scatter.svg", "figures/transitions.svg"} <= set(before)
    room.write_comparison(changed.pair_report(), tmp_path)
    both = tree(tmp_path)
    assert before.items() <= both.items()
    room.write(changed.pair_report(), tmp_path)
    assert tree(tmp_path) == both


def test_figures_of_an_earlier_comparison_go_and_foreign_files_stay(tmp_path: Path) -> None:
    room.write_comparison(changed.many_report(), tmp_path)
    (tmp_path / "figures" / "compare-mine.svg").write_text("mine")
    (tmp_path / "figures" / "compare-bridge-draft.svg").write_text("mine too")
    room.write_comparison(changed.pair_report(), tmp_path)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {
        "compare-bridge.svg", "compare-scatter.svg", "compare-transitions.svg", "compare-mine.svg", "compare-bridge-draft.svg",
    }  # fmt: skip
    room.write_comparison(changed.pair_report(), tmp_path, figures=False)
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "compare-mine.svg",
        "compare-bridge-draft.svg",
    }

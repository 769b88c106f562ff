"""Links beside a run lead no tool out of its folders, neither to read nor to write."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders import make_message, make_response, make_row, make_run
from tests.mcp_server.asking import here

READS = [
    ("blade_summary", {"run": "r"}),
    ("blade_compare", {"baseline": "r", "candidates": ["r"]}),
    ("blade_check_claims", {"report": "7 of 5 tasks failed.", "runs": ["r"]}),
]
SAID = "The parcel is on its way, I am sure of it."
GIVEN = {
    "task": "0", "repeat": 0, "step": 0, "quote": SAID, "cause": "BI",
    "mechanism": "It claims what it did not look up.",
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run in a folder of its own, and another folder beside it."""
    (tmp_path / "outside").mkdir()
    response = make_response([make_message(SAID)])
    rows = [make_row(task, at, float(task > 0), response=response) for task in range(3) for at in range(2)]
    return make_run(tmp_path / "root", rows, name="r")


def record(root: Path) -> str:
    return here(root).text("blade_record_judgement", by="a reader", judgements=[GIVEN])


def refused(root: Path, name: str, given: dict[str, Any]) -> bool:
    return "#outside-roots" in here(root).error(name, **given)


@pytest.mark.parametrize("as_file", [False, True], ids=["a folder", "a single file"])
@pytest.mark.parametrize("is_there", [False, True], ids=["to nothing", "to a file"])
def test_nothing_is_written_through_a_link(as_file: bool, is_there: bool, run: Path) -> None:
    root = run if as_file else run.parent
    target = run.parent.parent / "outside" / "stolen.jsonl"
    if is_there:
        target.write_text("", encoding="utf-8")
    kept = run.with_name("r_judgements.jsonl")
    kept.symlink_to(target)
    for name, given in [("blade_record_judgement", {"by": "x", "judgements": [GIVEN]}), *READS]:
        assert refused(root, name, given)
    assert target.exists() is is_there
    assert not is_there or target.read_text(encoding="utf-8") == ""
    kept.unlink()
    assert "1 judgement verified and kept" in record(root)
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 1


def test_nor_through_a_link_that_stays_inside(run: Path) -> None:
    own = run.with_name("own.txt")
    own.write_text("", encoding="utf-8")
    run.with_name("r_judgements.jsonl").symlink_to(own)
    assert refused(run.parent, "blade_record_judgement", {"by": "x", "judgements": [GIVEN]})
    assert own.read_text(encoding="utf-8") == ""
    assert refused(run, *READS[0])  # of a single file nothing else in its folder is a root
    assert here(run.parent).text("blade_summary")  # reading leads nowhere else


def test_a_folder_of_the_run_may_be_no_link_either(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "config.yaml").write_text("temperature: 0.123\n", encoding="utf-8")
    hydra = run.parent / ".hydra"
    hydra.symlink_to(outside)
    assert refused(run, *READS[0])
    assert refused(run.parent, *READS[0])
    hydra.unlink()
    shutil.copytree(outside, hydra)
    assert here(run).text("blade_summary") == here(run.parent).text("blade_summary")


def test_a_folder_that_links_back_is_outside_all_the_same(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "s.jsonl").symlink_to(run)  # what it holds lies inside, what is beside it does not
    (run.parent / "deeper").symlink_to(outside)
    here(run.parent).error("blade_record_judgement", run="deeper/s.jsonl", by="x", judgements=[GIVEN])
    assert os.listdir(outside) == ["s.jsonl"]


def test_a_link_that_was_named_is_judged_beside_its_name(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "s.jsonl").symlink_to(run)
    assert "1 judgement verified and kept" in record(outside / "s.jsonl")
    assert (outside / "s_judgements.jsonl").is_file()
    assert os.listdir(run.parent) == ["r.jsonl"]

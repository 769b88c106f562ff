"""Links beside a run lead no tool out of its folders, neither to read nor to write."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from blade.agent.mcp import roots as under
from blade.agent.mcp import tool_table
from blade.agent.mcp.roots import House
from blade.errors import NothingToRead, UsageError
from tests.builders import make_message, make_response, make_row, make_run

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


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    said = make_response([make_message(SAID)])
    rows = [make_row(task, at, float(task > 0), response=said) for task in range(3) for at in range(2)]
    return make_run(tmp_path_factory.mktemp("planted"), rows, name="r")


@pytest.fixture
def run(planted: Path, tmp_path: Path) -> Path:
    """A run in a folder of its own, and another folder beside it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    return Path(shutil.copy(planted, tmp_path / "root" / "r.jsonl"))


def record(root: Path) -> str:
    house = House(under.roots([str(root)]))
    return tool_table.called(house, "blade_record_judgement", {"by": "a reader", "judgements": [GIVEN]}).text


@pytest.mark.parametrize("as_file", [False, True], ids=["a folder", "a single file"])
@pytest.mark.parametrize("is_there", [False, True], ids=["to nothing", "to a file"])
def test_nothing_is_written_through_a_link(as_file: bool, is_there: bool, run: Path) -> None:
    root = run if as_file else run.parent
    target = run.parent.parent / "outside" / "stolen.jsonl"
    if is_there:
        target.write_text("", encoding="utf-8")
    kept = run.with_name("r_judgements.jsonl")
    kept.symlink_to(target)
    for name, asked in [("blade_record_judgement", {"by": "x", "judgements": [GIVEN]}), *READS]:
        with pytest.raises(UsageError) as refused:
            tool_table.called(House(under.roots([str(root)])), name, asked)
        assert refused.value.slug == "outside-roots"
    assert target.exists() is is_there
    assert not is_there or target.read_text(encoding="utf-8") == ""
    kept.unlink()
    assert "1 judgement verified and kept" in record(root)
    assert len(kept.read_text(encoding="utf-8").splitlines()) == 1


def test_nor_through_a_link_that_stays_inside(run: Path) -> None:
    own = run.with_name("own.txt")
    own.write_text("", encoding="utf-8")
    kept = run.with_name("r_judgements.jsonl")
    kept.symlink_to(own)
    with pytest.raises(UsageError) as refused:
        record(run.parent)
    assert refused.value.slug == "outside-roots"
    assert own.read_text(encoding="utf-8") == ""
    with pytest.raises(UsageError):  # of a single file nothing else in its folder is a root
        tool_table.called(House(under.roots([str(run)])), *READS[0])
    assert tool_table.called(House(under.roots([str(run.parent)])), *READS[0]).text  # reading leads nowhere else


def test_a_folder_of_the_run_may_be_no_link_either(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "config.yaml").write_text("temperature: 0.123\n", encoding="utf-8")
    hydra = run.parent / ".hydra"
    hydra.symlink_to(outside)
    for root in (run, run.parent):
        with pytest.raises(UsageError) as refused:
            tool_table.called(House(under.roots([str(root)])), *READS[0])
        assert refused.value.slug == "outside-roots"
    hydra.unlink()
    shutil.copytree(outside, hydra)
    for root in (run, run.parent):
        assert tool_table.called(House(under.roots([str(root)])), *READS[0]).text


def test_a_folder_that_links_back_is_outside_all_the_same(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "s.jsonl").symlink_to(run)  # what it holds lies inside, what is beside it does not
    (run.parent / "deeper").symlink_to(outside)
    house = House(under.roots([str(run.parent)]))
    asked = {"run": "deeper/s.jsonl", "by": "x", "judgements": [GIVEN]}
    with pytest.raises(UsageError):
        tool_table.called(house, "blade_record_judgement", asked)
    assert os.listdir(outside) == ["s.jsonl"]


def test_a_link_that_was_named_is_judged_beside_its_name(run: Path) -> None:
    outside = run.parent.parent / "outside"
    (outside / "s.jsonl").symlink_to(run)
    assert "1 judgement verified and kept" in record(outside / "s.jsonl")
    assert (outside / "s_judgements.jsonl").is_file()
    assert os.listdir(run.parent) == ["r.jsonl"]


@pytest.mark.parametrize("path", ["a" * 5000, "a/" * 5000, "./" + "a" * 5000])
def test_a_path_that_no_file_can_have_is_told_as_one_that_is_not_there(run: Path, path: str) -> None:
    house = House(under.roots([str(run.parent)]))
    with pytest.raises((NothingToRead, UsageError)) as refused:
        tool_table.called(house, "blade_check_claims", {"path": path})
    assert refused.value.slug in ("no-such-path", "outside-roots")
    with pytest.raises(UsageError) as refused:
        tool_table.called(house, "blade_summary", {"run": path})
    assert refused.value.slug in ("no-such-run", "outside-roots")

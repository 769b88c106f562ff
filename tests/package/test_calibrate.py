"""Calibration: golden apart from every attack, close to its equals, and enforced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blade.package.calibrate import perturbed
from blade.package.calibrate.battery import Calibration, Trial, halved, lines
from blade.package.judge.score import Bench, Judged, judged
from blade.package.judge.sources import Case
from tests.builders import make_row, make_run
from tests.conftest import Blade, Said
from tests.package.court import files, seat_of


@pytest.fixture
def court(made: Path, cache: Path) -> tuple[Case, Bench, Judged]:
    return seat_of(made)


def run(blade: Blade, package: Path, to: Path, *more: object) -> Said:
    golden, anchors, shallow = files(package)
    return blade(
        "package", "calibrate", "--golden-report", golden, "--anchor-facts", anchors, "--shallow-report",
        shallow, "--output-dir", to, "--seeds", 1, *more,
    )  # fmt: skip


def test_without_anchors_that_can_be_used_nothing_is_calibrated(
    blade: Blade, package: Path, tmp_path: Path
) -> None:
    golden, _, shallow = files(package)
    shallow.write_text(golden.read_text())  # so that the shallow report has every fact
    said = run(blade, package, tmp_path / "out")
    assert said.code == 1
    assert "0 anchor facts can be used" in said.err
    assert "a table of totals has it" in said.err
    assert not (tmp_path / "out").exists()


def test_what_does_not_separate_is_told_and_not_calibrated(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    shallow = judged(case.shallow, seat)
    held = Trial("negated claims", 0.1, "at most 0.25", True)
    broken = Trial("false ids", 0.5, "at most 0.40", False)
    assert Calibration(golden, shallow, (held,), (held,), 0.5).problems == []
    assert Calibration(golden, shallow, (held, broken), (), 0.5).problems == ["false ids: 0.50, at most 0.40"]
    assert Calibration(golden, shallow, (), (broken,), 0.5).problems == ["false ids: 0.50, at most 0.40"]
    (apart,) = Calibration(golden, golden, (held,), (), 0.5).problems
    assert "0.00 apart, not 0.50" in apart
    low = Calibration(shallow, shallow, (), (), 0.0)
    assert low.problems == ["the golden report scores below its target"]
    assert "BROKEN" in "\n".join(lines(Calibration(golden, shallow, (broken,), (), 0.5)))


def test_half_of_the_facts_is_half_of_the_recall(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    for seed in range(3):
        told = judged(halved(case.golden, seat, seed), seat)
        assert told.recall == pytest.approx(golden.recall / 2, abs=0.15)


def test_flipped_rewards_turn_some_tasks_wholly_and_leave_the_others(tmp_path: Path) -> None:
    path = make_run(tmp_path / "in", [make_row(t, r, float(r % 2)) for t in range(12) for r in range(3)])
    (other,) = perturbed.flipped([path], tmp_path / "out")
    before, after = ([json.loads(line) for line in one.read_text().splitlines()] for one in (path, other))
    changed = {a["_ng_task_index"] for a, b in zip(before, after, strict=True) if a["reward"] != b["reward"]}
    kept = {a["_ng_task_index"] for a, b in zip(before, after, strict=True) if a["reward"] == b["reward"]}
    assert changed
    assert kept
    assert not changed & kept
    for one, two in zip(before, after, strict=True):
        assert {**one, "reward": None} == {**two, "reward": None}


def test_swapped_rollouts_go_by_the_name_of_the_first(tmp_path: Path) -> None:
    one = make_run(tmp_path / "a", [make_row(0, 0, 1.0)])
    two = make_run(tmp_path / "b", [make_row(1, 0, 0.0)])
    (other,) = perturbed.swapped([one], [two], tmp_path / "out")
    assert other.name == one.name
    assert other.read_bytes() == two.read_bytes()

"""What reading traces says of runs with one known peculiarity, and that it says the same in any form."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import blade.attribute
import blade.contrast
import blade.discover
import blade.locate
import blade.signatures
from blade import pipeline
from blade.detect import DETECTORS
from blade.measure import soundness
from blade.model import Report
from blade.pipeline import gather, walk
from blade.planted import write_run
from tests.builders import Row, encode, make_message, make_run
from tests.conftest import Blade, Silent
from tests.quotations import (
    QUOTING,
    Rows,
    assert_evidence_resolves,
    assert_losses_add_up,
    assert_nothing_broke,
)
from tests.same import of_rows
from tests.traces import did, rollout

pytestmark = pytest.mark.usefixtures("cache")


def read(*paths: Path, threshold: float | None = None) -> Report:
    """The report on some files; what it quotes is there."""
    loaded = pipeline.load([str(path) for path in paths], Silent())
    report = pipeline.diagnose(loaded, "test", threshold)
    assert_evidence_resolves(report, Rows(loaded))
    assert_losses_add_up(report)
    return report


def clean(report: Report) -> tuple[float | None, int]:
    (found,) = [measure for measure in report.measures if measure.name == "clean_pass_at_1"]
    return found.value, found.n


def told_of(report: Report, parts: str) -> list[str]:
    """Which of these parts of a report are not empty."""
    return [part for part in parts.split() if getattr(report, part)]


def answered(task: int, repeat: int, reward: float | None, **changed: Any) -> Row:
    """A rollout of its own: it looks something up and answers."""
    items = did(
        ("look", f'{{"id": "A{task}"}}', f"entry {task}: {repeat + task * 7}"),
        f"For {task} I find {repeat + task * 7}.",
    )
    return rollout(changed.pop("items", items), reward, repeat, task, **changed)


# -- what fails inside ----------------------------------------------------------------------------


def fails(*_: Any, **__: Any) -> NoReturn:
    raise ValueError("made to fail")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A simulated run, too large for one process alone."""
    return write_run(tmp_path / "run", n_tasks=20, repeats=4, faults=["provider_errors"], seed=5).path


def said(report: Report) -> set[tuple[str, str]]:
    return {(gap.what, gap.why) for gap in report.gaps}


@pytest.mark.parametrize("n_cores", [1, 2])
def test_a_detector_that_fails_is_a_gap_and_the_others_go_on(
    run: Path, processes: None, monkeypatch: pytest.MonkeyPatch, n_cores: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: n_cores)
    sound = read(run)
    assert_nothing_broke(sound)
    monkeypatch.setattr(DETECTORS["empty_output"], "find", fails)
    broken = read(run)
    assert said(broken) - said(sound) == {
        ("detector empty_output on 20 tasks of rollouts", "it failed: ValueError: made to fail")
    }
    left = [finding for finding in sound.findings if finding.detector != "empty_output"]
    assert list(broken.findings) == left
    assert left


STAGES: dict[str, tuple[Any, str]] = {
    "detect": (gather, "detected"),
    "contrast": (blade.contrast, "observe"),
    "locate": (blade.locate, "observe"),
    "discover": (blade.discover, "observe"),
    "signatures": (blade.signatures, "observe"),
    "health": (soundness, "observe"),
    "attribute": (blade.attribute, "observe"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_that_fails_is_a_gap_and_the_report_comes_out(
    run: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    monkeypatch.setattr(*STAGES[stage], fails)
    report = read(run)
    assert (f"{stage} on 20 tasks of rollouts", "it failed: ValueError: made to fail") in said(report)
    assert report.attributions


def test_a_detector_that_fails_half_way_loses_that_task_alone(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = DETECTORS["infra_error"].find

    def find(task: Any, facts: Any) -> Iterator[Any]:
        yield from usual(task, facts)
        if task.task == "3":
            fails()

    monkeypatch.setattr(DETECTORS["infra_error"], "find", find)
    report = read(run)
    assert ("detector infra_error on 1 task of rollouts", "it failed: ValueError: made to fail") in said(
        report
    )
    found = {finding.task for finding in report.findings if finding.detector == "infra_error"}
    assert found
    assert "3" not in found


# -- the same answer in any form ------------------------------------------------------------------


@pytest.fixture
def told(diagnosed: Blade) -> Callable[[object], dict[str, Any]]:
    """The report on `x=PATH` without what may differ."""

    def report(path: object) -> dict[str, Any]:
        return of_rows(diagnosed(f"x={path}").report)

    return report


def test_order_workers_and_compression_do_not_matter(
    tmp_path: Path,
    told: Callable[[object], dict[str, Any]],
    run: Path,
    processes: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = run.read_bytes().splitlines()
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    expected = told(make_run(tmp_path / "plain", lines))
    assert expected["mechanisms"]
    assert expected["findings"]
    assert expected["recommendations"]
    mixed = random.Random(3).sample(lines, len(lines))
    assert told(make_run(tmp_path / "mixed", mixed)) == expected
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(walk, "_PIECE_ROWS", 8)
    assert told(make_run(tmp_path / "two", mixed, compress="gz")) == expected
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert told(make_run(tmp_path / "five", lines, compress="zst")) == expected


# -- rows that do not count -----------------------------------------------------------------------


def test_masked_rows_are_in_no_finding(tmp_path: Path) -> None:
    loop = did(*[("look", '{"id": "A1"}', "same again")] * 6, "I cannot help with that.")
    rows = [answered(task, repeat, float(repeat < 2)) for task in range(6) for repeat in range(4)]
    hidden = [
        answered(task, 4, 0.0, items=loop, error="503 Service Unavailable", mask_sample=True)
        for task in range(6)
    ]
    report = read(make_run(tmp_path, [*rows, *hidden]))
    for part in QUOTING[1:]:  # health may tell of masked rows
        assert not [e for one in getattr(report, part) for e in one.evidence if e.repeat == 4], part
    assert not [f for f in report.findings if f.repeat == 4]
    listed = [*report.signatures, *report.mechanisms]
    assert not [place for one in listed for place in one.rollouts if place[1] == 4]
    assert not [one for one in report.attributions if one.repeat == 4]
    assert report.runs[0].score == 0.5


def test_a_run_of_masked_rows_alone_has_nothing_to_explain(tmp_path: Path) -> None:
    report = read(make_run(tmp_path, [answered(task, 0, 0.0, mask_sample=True) for task in range(3)]))
    assert report.runs[0].score is None
    assert not told_of(report, "attributions losses run_causes recommendations")


# -- rewards --------------------------------------------------------------------------------------


def test_without_a_full_score_nothing_is_lost_and_the_report_says_why(tmp_path: Path) -> None:
    rows = [answered(task, repeat, 17.0 * task - 5 * repeat) for task in range(4) for repeat in range(3)]
    rows[5] = answered(1, 2, -3.0, items=[])
    path = make_run(tmp_path, rows)
    report = read(path)
    assert not told_of(report, "losses attributions run_causes recommendations")
    assert not [measure for measure in report.measures if measure.name == "clean_pass_at_1"]
    assert ("losses of rollouts", "rewards leave [0, 1], so there is no full score to lose from") in said(
        report
    )
    assert [finding.detector for finding in report.findings if finding.repeat == 2 and finding.task == "1"]
    judged = read(path, threshold=10.0)  # a threshold makes it a pass rate
    assert judged.losses
    assert judged.attributions


def test_partial_rewards_lose_their_remainder(tmp_path: Path) -> None:
    rows = [
        answered(task, repeat, (0.0, 0.25, 0.5, 0.75)[repeat]) for task in range(5) for repeat in range(4)
    ]
    rows += [answered(9, repeat, 1.0) for repeat in range(4)]
    report = read(make_run(tmp_path, rows), threshold=None)
    run = report.runs[0]
    assert run.score is not None
    assert sum(loss.lost for loss in report.losses) == pytest.approx(1 - run.score, abs=1e-12)
    assert {one.task for one in report.attributions} == {str(task) for task in range(5)}


def test_rows_without_a_reward_lose_all_of_their_part(tmp_path: Path) -> None:
    rows = [answered(task, 0, None if task == 2 else 1.0) for task in range(4)]
    report = read(make_run(tmp_path, rows))
    assert [(one.task, one.lost) for one in report.attributions] == [("2", 0.25)]


def test_a_run_that_passes_throughout_has_nothing_to_explain(tmp_path: Path) -> None:
    report = read(
        make_run(tmp_path, [answered(task, repeat, 1.0) for task in range(5) for repeat in range(2)])
    )
    assert report.runs[0].score == 1
    assert not told_of(report, "losses attributions mechanisms divergences")


# -- repeats --------------------------------------------------------------------------------------


def test_one_repeat_supports_no_contrast_within_tasks(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", n_tasks=60, repeats=1, faults=["provider_errors"]).path
    report = read(path)
    assert report.attributions
    assert not told_of(report, "contrasts divergences")
    assert not [one for one in report.mechanisms if one.within_task]
    assert not [one for one in report.attributions if one.mode == "varies between repeats"]
    assert not [one for one in report.attributions if one.mode == "same wrong result"]


# -- causes of the run ----------------------------------------------------------------------------


def test_empty_responses_throughout_are_infrastructure_and_leave_no_score(tmp_path: Path) -> None:
    rows = [
        answered(task, repeat, 0.0, items=[], response={"usage": None})
        for task in range(8)
        for repeat in range(2)
    ]
    report = read(make_run(tmp_path, rows))
    first = report.run_causes[0]
    assert (first.cause, first.n_rollouts) == ("IR", 16)
    assert (first.score_without, first.n_without) == (None, 0)
    assert first.lost == pytest.approx(1.0)
    assert clean(report) == (None, 0)
    assert [gap for gap in report.gaps if gap.what == "clean_pass_at_1 and score_without of rollouts"]
    assert {loss.cause for loss in report.losses} == {"IR"}


def test_answers_throughout_that_use_tokens_are_not_infrastructure(tmp_path: Path) -> None:
    items = [make_message("")]
    rows = [answered(task, repeat, 0.0, items=items) for task in range(8) for repeat in range(2)]
    report = read(make_run(tmp_path, rows))
    assert "IR" not in {one.cause for one in report.run_causes}


def test_provider_errors_are_told_with_the_score_without_them(tmp_path: Path) -> None:
    rows = [answered(task, repeat, float(task % 2)) for task in range(10) for repeat in range(3)]
    for at in (3, 4, 9, 10, 21):  # tasks 1, 1, 3, 3 and 7 would have passed
        rows[at] = answered(
            at // 3, at % 3, 0.0, items=[], error="429 Too Many Requests: rate limit exceeded"
        )
    report = read(make_run(tmp_path, rows))
    (cause,) = [one for one in report.run_causes if one.cause == "IR"]
    assert cause.n_rollouts == 5
    assert report.runs[0].score == pytest.approx((1 / 3 + 1 / 3 + 1 + 2 / 3 + 1) / 10)
    assert (cause.score_without, cause.n_without) == (pytest.approx(0.5), 10)
    assert clean(report) == (pytest.approx(0.5), 10)
    lost = {loss.cause: loss.lost for loss in report.losses if loss.cause == "IR"}
    assert lost["IR"] == pytest.approx(5 / 30)
    assert "429 Too Many Requests" in (cause.evidence[0].quote or "")
    assert {one.cause for one in report.attributions if one.task in "137"} == {"IR"}


def test_runs_of_the_same_tasks_lend_each_other_passes(tmp_path: Path) -> None:
    """A task that never passes is held against the passes of another run, and says whose they are."""
    good = [("check_stock", '{"id": "A1"}', "in stock"), ("buy", '{"id": "A1"}', "bought")]
    one = [
        answered(task, repeat, float(task > 2), items=did(*good[1:], f"Bought {task}."))
        for task in range(6)
        for repeat in range(4)
    ]
    two = [
        answered(task, repeat, 1.0, items=did(*good, f"Bought {task}."))
        for task in range(6)
        for repeat in range(4)
    ]
    report = read(make_run(tmp_path / "a", one, name="one"), make_run(tmp_path / "b", two, name="two"))
    assert [run.name for run in report.runs] == ["one", "two"]
    borrowed = [contrast for contrast in report.contrasts if contrast.other_run]
    assert {(contrast.run, contrast.other_run) for contrast in borrowed} == {("one", "two")}
    assert {contrast.task for contrast in borrowed} == {"0", "1", "2"}


def test_lines_that_are_no_rows_leave_the_rest_readable(tmp_path: Path) -> None:
    rows = [answered(task, repeat, float(repeat)) for task in range(3) for repeat in range(2)]
    lines = [*map(encode, rows), b"<html>", b"[1]", b'{"torn": ']
    report = read(make_run(tmp_path, lines))
    assert report.skipped_total == 3
    assert {one.task for one in report.attributions} == {"0", "1", "2"}

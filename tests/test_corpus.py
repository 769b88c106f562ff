"""Counts on real rollouts of other people, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade import pipeline
from blade.model import Report

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DATA.is_dir(), reason="no corpus beside the project"),
]


class Silent:
    def start(self, what: str, total: int) -> None: ...
    def advance(self, done: int) -> None: ...
    def notice(self, text: str) -> None: ...


def table() -> list[tuple[str, ...]]:
    """The rows of the corpus README's table of exact counts."""
    readme = DATA / "README.md"
    lines = readme.read_text().splitlines() if readme.exists() else []
    return [
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if ".jsonl.gz |" in line
    ]


def report_of(path: Path) -> Report:
    return pipeline.diagnose(pipeline.load([str(path)], Silent()), "test")


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_counts_equal_the_published_table(
    row: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path))
    file, rows, tasks, repeats, micro, macro, solved, buckets, _ = row
    report = report_of(DATA / file)
    run = report.runs[0]
    values = {measure.name: measure.value for measure in report.measures if measure.k is None}
    assert (run.n_rollouts, run.n_tasks) == (int(rows), int(tasks))
    assert max(len([r for r in task.repeats if r.outcome != "missing"]) for task in report.tasks) == int(
        repeats
    )
    assert f"{values['pass_at_1_micro']:.6f}" == micro
    assert f"{values['pass_at_1']:.6f}" == macro
    assert f"{values['solved']:.6f}" == solved
    found = report.buckets[0]
    assert f"{len(found.always)}/{len(found.sometimes)}/{len(found.never)}" == buckets
    assert report.skipped_total == 0


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_no_identity_finding_on_sound_files(
    row: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path))
    assert report_of(DATA / row[0]).findings == ()


def test_published_pass_hat_k(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path))
    report = report_of(DATA / "tau_airline" / "gpt-4o.jsonl.gz")
    found = {measure.k: measure.value for measure in report.measures if measure.name == "pass_hat_k"}
    assert [round(found[k], 3) for k in (1, 2, 3, 4)] == [0.420, 0.273, 0.220, 0.200]


def test_error_rows_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path))
    report = report_of(DATA / "tau_retail" / "gemini-2.0-flash_tool-calling_3runs.jsonl.gz")
    run = report.runs[0]
    assert (run.coverage.expected, run.coverage.scored, run.coverage.lost) == (345, 336, 9)
    errored = [flag for flag in report.health if flag.flag.startswith("error")]
    assert [(round(flag.value * flag.n), flag.n) for flag in errored] == [(49, 336)]
    assert "37.4% over 115 tasks (287 rows)" in errored[0].text

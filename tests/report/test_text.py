"""The terminal summary: one screen, and what a reader needs first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from blade.model import Health, Level, Report
from blade.report import text


def assert_one_screen(said: str) -> None:
    assert said.endswith("\n")
    lines = said.rstrip("\n").split("\n")
    assert len(lines) <= 24
    assert max(cell_len(line) for line in lines) <= 80
    assert all(line == line.rstrip() for line in lines)


def test_every_report_fits_one_screen(report: Report) -> None:
    assert_one_screen(text.render(report))
    assert text.render(report) == text.render(report)


def test_the_score_stands_with_its_n_and_interval(one_run: Report) -> None:
    said = text.render(one_run)
    assert "50.0% [21.7%, 78.3%]  pass@1, n = 8 tasks, 32 rows" in said
    assert "32 expected = 32 scored + 0 failed + 0 masked + 0 lost" in said
    assert "2 always, 4 sometimes, 2 never, 0 missing" in said
    assert "blade show runs/airline.jsonl 3/0" in said


def test_a_hundred_flags_still_fit_and_are_counted(one_run: Report) -> None:
    flags = tuple(Health("airline", f"f{at}", Level.PROBLEM, "漢字 " * 60, 1.0, 1) for at in range(100))
    said = text.render(replace(one_run, health=flags))
    assert_one_screen(said)
    assert "100 problems, 0 warnings" in said
    assert "shown, all in the report" in said
    assert "Read next" in said


def test_missing_rows_are_said(cases: dict[str, Callable[[], Report]]) -> None:
    report = cases["some missing"]()
    flag = Health(report.runs[0].name, "missing_rows_matter", Level.PROBLEM, "Missing rows matter.", 0.3, 12)
    report = replace(report, health=(*report.health, flag))
    said = text.render(report)
    assert "Missing   as failed 50.0%; bounds 50.0% to 91.7% (over 1 SE)" in said


def test_several_runs_are_a_table_with_the_number_left_out(cases: dict[str, Callable[[], Report]]) -> None:
    said = text.render(cases["many runs"]())
    assert "checkpoint-00000" in said
    assert "14 more runs in the report" in said
    assert "No paired verdict is computed yet" in said


def test_nothing_scored_is_said(cases: dict[str, Callable[[], Report]]) -> None:
    assert "none: no rollout was scored" in text.render(cases["all missing"]())


@pytest.mark.parametrize(
    ("counts", "length"), [({"always": 1, "never": 999}, 60), ({"always": 0, "missing": 0}, 0)]
)
def test_a_bar_shows_whatever_is_not_empty(counts: dict[str, int], length: int) -> None:
    drawn = text.bar(counts, 60)
    assert len(drawn) == length
    assert all(text.BARS[name] in drawn for name, n in counts.items() if n)

"""The terminal summary: one screen, and what a reader needs first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from blade.model import Health, Level, Report
from blade.report import text

from .conftest import f1, make_report


def assert_one_screen(said: str) -> None:
    assert said.endswith("\n")
    lines = said.rstrip("\n").split("\n")
    assert len(lines) <= 45
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


def test_causes_mechanisms_and_advice_follow_the_score(explained: Report) -> None:
    lines = [line[:10].strip() for line in text.render(explained).split("\n")]
    order = [
        lines.index(label)
        for label in ("Score", "Run cause", "Lost", "Clean", "Why", "Fix first", "Tasks", "Read next")
    ]
    assert order == sorted(order)
    said = " ".join(text.render(explained).split())
    assert "Without it the score would be 53.8% instead of 50.0% (n = 19 tasks)." in said
    assert (
        "Lost 50.0 points: 33.8 to the model, 3.8 to infrastructure, 8.8 to task or verifier, 2.5 to data, 1.2 undetermined"
        in said
    )
    assert "most to exchanges without a product look-up (BI), 18.8 points" in said
    assert "difference of 61.4 points [+39.0, +78.0 points], adjusted p = 0.004" in said
    assert "+8.4 points (+3.1 to +14.2); harness, 14 tasks" in said
    assert "+5.0 points (0 to +5.0); fixes the measurement, not the model" in said
    assert "blade show runs/airline.jsonl 6/0" in said


def test_without_a_mechanism_leads_are_called_leads(explained: Report) -> None:
    leads = tuple(one for one in explained.mechanisms if one.standing == "lead")
    said = text.render(replace(explained, mechanisms=leads, behaviours=()))
    assert "Leads     1. Final texts above 900 characters" in said
    assert "Why" not in said


def test_nothing_is_said_of_causes_that_were_not_looked_for(one_run: Report) -> None:
    said = text.render(one_run)
    assert not [
        label for label in ("Run cause", "Lost", "Why", "Leads", "Fix first") if f"\n{label} " in said
    ]


def test_ten_run_causes_and_long_actions_still_fit(explained: Report) -> None:
    long = tuple(replace(one, action="漢字 " * 300, basis="x" * 500) for one in explained.recommendations)
    said = text.render(replace(explained, run_causes=explained.run_causes * 10, recommendations=long))
    assert_one_screen(said)
    assert "8 more run causes in the report" in said
    assert "Read next" in said


def test_missing_rows_are_said(cases: dict[str, Callable[[], Report]]) -> None:
    report = cases["some missing"]()
    flag = Health(report.runs[0].name, "missing_rows_matter", Level.PROBLEM, "Missing rows matter.", 0.3, 12)
    report = replace(report, health=(*report.health, flag))
    said = text.render(report)
    assert "Missing   as failed 50.0%; bounds 50.0% to 91.7% (over 1 SE)" in said


def test_several_runs_are_a_table_with_the_number_left_out() -> None:
    said = text.render(make_report({f"checkpoint-{at:05}": f1() for at in range(60)}))
    assert_one_screen(said)
    assert "checkpoint-00000" in said
    assert "23 more runs in the report" in said
    assert "blade compare pairs the tasks" in said


def test_nothing_scored_is_said(cases: dict[str, Callable[[], Report]]) -> None:
    assert "none: no rollout was scored" in text.render(cases["all missing"]())


@pytest.mark.parametrize(
    ("counts", "length"), [({"always": 1, "never": 999}, 60), ({"always": 0, "missing": 0}, 0)]
)
def test_a_bar_shows_whatever_is_not_empty(counts: dict[str, int], length: int) -> None:
    drawn = text.bar(counts, 60)
    assert len(drawn) == length
    assert all(text.BARS[name] in drawn for name, n in counts.items() if n)


def test_two_reasons_in_full_stand_before_three_cut_off(explained: Report) -> None:
    wide = "Of the 159 completed rollouts whose task expects exchange_items or modify_items, 83 never call get_product_details"
    long = tuple(replace(one, text=f"{wide} ({one.id}): {'7% of them pass, ' * 3}END.", standing="mechanism")
                 for one in explained.mechanisms)  # fmt: skip
    actions = tuple(replace(one, action="word " * 45 + "END") for one in explained.recommendations)
    said = text.render(replace(explained, mechanisms=long, recommendations=actions, behaviours=(), health=()))
    assert_one_screen(said)
    assert said.count("END") == 4
    assert "Health " in said

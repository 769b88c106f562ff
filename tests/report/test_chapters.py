"""The chapters of a diagnosis as a reader meets them: sections, sentences, tables, limits."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from blade.model import Cause, Gap, Loss, Measure, Report
from blade.report import report_json
from tests.inert import uncited

from .conftest import CASES, make_report, twenty
from .explained import GOLD, OUTAGE, SKIPS, STALE, STOPS, UNEXPLAINED, explain
from .renders import Forms, assert_in_order, assert_says, edited, sayings

SECTIONS = [
    "Executive Summary", "Artifact Inventory", "Aggregate Results", "Workflow Funnel", "Task Outcome Buckets",
    "Dominant Failure Modes", "Sometimes-Pass Deep Dives", "Never-Pass Deep Dives", "Cross-Model Comparison",
    "Recommendations", "Reproducibility Notes",
]  # fmt: skip


def section(page: str, title: str) -> str:
    """One section as a reader sees it, without the comments of its claims."""
    return uncited(page).split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0].strip()


def first(report: Report, title: str) -> str:
    return section(Forms(report).markdown, title)


def table(text: str) -> list[list[str]]:
    """The body of the first table of a page, cell by cell."""
    rows = re.search(r"(?:^\| .*\n?)+", text, re.MULTILINE)
    assert rows is not None
    return [line.strip("| ").split(" | ") for line in rows[0].strip().split("\n")[2:]]


def test_eleven_sections_in_order_everywhere_and_the_same_bytes_twice(report: Report) -> None:
    page, offline = Forms(report).markdown, Forms(report).html
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == SECTIONS == re.findall(r"<h2>(.*?)</h2>", offline)
    assert len(re.findall(r"^# ", page, re.MULTILINE)) == 1
    assert all(section(page, title) for title in SECTIONS)
    assert Forms(report).markdown == page


def test_the_title_names_the_benchmark_else_the_run(one_run: Report) -> None:
    assert Forms(one_run).markdown.startswith("# tau_airline BLADE Analysis Report\n")
    nameless = replace(one_run, runs=(replace(one_run.runs[0], benchmark=None),))
    assert Forms(nameless).markdown.startswith("# airline BLADE Analysis Report\n")


@pytest.mark.parametrize("saying", sayings("report"), ids=lambda saying: f"{saying['case']} {saying['title']}")
def test_a_section_says(saying: dict[str, Any]) -> None:
    assert_says(first(edited(CASES[saying["case"]](), saying), saying["title"]) + "\n", saying)


def test_of_many_k_the_usual_number_of_tries_is_printed(one_run: Report) -> None:
    many = tuple(Measure("airline", "pass_at_k", 0.5, 8, k=k, low=0.4, high=0.6, method="task t") for k in range(1, 21))
    text = first(replace(one_run, measures=many), "Aggregate Results")
    assert re.findall(r"^\| pass@(\d+) \|", text, re.MULTILINE) == ["4"]
    assert "report.json has all measures" in text


def test_the_points_of_groups_and_unexplained_add_up(explained: Report) -> None:
    rows = table(first(explained, "Executive Summary"))
    assert [row[1] for row in rows] == [SKIPS, GOLD, STALE, OUTAGE, STOPS, UNEXPLAINED]
    assert rows[0] == ["16.2 points", SKIPS, "BI", "13 failures", "1 pass"]
    assert abs(sum(float(row[0].removesuffix(" points")) for row in rows) - 50.0) < 0.3
    points = [one.points for one in (*explained.groups, *explained.unexplained)]
    assert sum(points) == pytest.approx(1 - (explained.runs[0].score or 0))
    # a gain is expected only where it is identified
    assert first(explained, "Executive Summary").split("**Fix first**")[1].count("Expected gain") == 1


def test_a_group_says_what_it_is_why_the_label_what_speaks_against_it_and_the_fix(explained: Report) -> None:
    text = first(explained, "Dominant Failure Modes")
    parts = [
        f"1. {SKIPS} (BI)", "13 failures show it", "Likely: the tool accepts an item that no look-up returned.",
        "Against it: one pass does the same.", "Fix: Refuse exchange_items unless",
        "Rollouts: `6/1`, `9/3`, `13/1`, `14/0` and `17/0`.", "Failing, task `6/1#7`:", '> {"order_id": "\\#W42"}',
    ]  # fmt: skip
    assert_in_order(text.split("### ")[1], parts)
    titles = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert titles == [f"1. {SKIPS} (BI)", f"2. {GOLD} (TI)", f"3. {STALE} (UK)", f"4. {OUTAGE} (IR)"]
    named = replace(explained.groups[0], text="31 never call `get_x`: 6% of them pass.")
    assert "31 never call <code>get_x</code>: 6% of them pass." in Forms(replace(explained, groups=(named,))).html


def test_a_task_has_its_own_rows_the_dearest_first(explained: Report) -> None:
    rows = table(first(explained, "Sometimes-Pass Deep Dives"))
    assert rows[0] == ["`6` `tau-6`", "1 of 4", "BI", "3 of its 4 rollouts show it", "`6/0 6/1`"]
    assert [row[1][0] for row in rows] == sorted(row[1][0] for row in rows)
    last = table(first(explained, "Never-Pass Deep Dives"))[-1]
    assert last[2:4] == ["undetermined", "4 of its 4 rollouts fail, and the rows do not show why."]
    for case, n in (("many tasks", 5), ("explained runs", 9)):
        assert len(re.findall(r"^\| `\d+`", first(CASES[case](), "Sometimes-Pass Deep Dives"), re.MULTILINE)) == n


def test_gaps_with_one_reason_share_a_line_and_long_lists_are_cut(one_run: Report) -> None:
    gaps = (
        Gap(f"{', '.join(f'rule_{at}' for at in range(33))} on desk", "no task has what they need: a tool call"),
        *(Gap(f"no config file of run-{at}", "settings are unknown") for at in range(12)),
    )
    text = first(replace(one_run, gaps=gaps), "Reproducibility Notes")
    assert "What this report cannot say (13 gaps), by what is missing:" in text
    assert "\n- rule_0, rule_1, rule_2" in text
    assert "; no config file of run-7; … more in report.json: settings are unknown\n" in text
    many = tuple(Gap(f"gap {at}", f"reason {at}") for at in range(200))
    assert "More gaps are in report.json." in first(replace(one_run, gaps=many), "Reproducibility Notes")


def test_the_card_says_how_many_labels_of_each_confidence_were_right(explained: Report) -> None:
    text = first(explained, "Reproducibility Notes").split("### How right are these labels")[1]
    assert table(text) == [["proved", "38 of 40"], ["likely", "31 of 50"], ["unsure", "4 of 9"]]


def test_a_thousand_of_everything_stays_readable() -> None:
    report = explain(make_report({"desk": twenty()}))
    many = replace(
        report,
        groups=tuple(replace(report.groups[0], id=f"g{at}") for at in range(1000)),
        trust=report.trust * 300,
        slices=report.slices * 300,
        recommendations=tuple(replace(report.recommendations[0], rank=at) for at in range(1000)),
        losses=tuple(Loss("desk", Cause.BEHAVIOUR, f"mode {at}", 0.5 / 1000) for at in range(1000)),
    )
    page = uncited(Forms(many).markdown)
    assert "996 more groups are in report.json." in page
    assert len(page.split("## Dominant Failure Modes")[1]) < 2 * len(uncited(Forms(report).markdown))
    assert len(report_json.document(many)["groups"]) == 1000

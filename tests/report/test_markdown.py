"""The Markdown report: its sections, its sentences, its limits."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from blade.model import Compared, Health, Level, Measure, Report
from blade.report import html, markdown
from tests.inert import uncited

SECTIONS = [
    "Executive Summary",
    "Artifact Inventory",
    "Aggregate Results",
    "Workflow Funnel",
    "Task Outcome Buckets",
    "Dominant Failure Modes",
    "Sometimes-Pass Deep Dives",
    "Never-Pass Deep Dives",
    "Cross-Model Comparison",
    "Recommendations",
    "Reproducibility Notes",
]


def section(said: str, title: str) -> str:
    """One section as a reader sees it, without the comments of its claims."""
    return uncited(said).split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_eleven_sections_in_order_everywhere(report: Report) -> None:
    said = markdown.render(report)
    assert re.findall(r"^## (.*)$", said, re.MULTILINE) == SECTIONS
    assert len(re.findall(r"^# ", said, re.MULTILINE)) == 1
    assert re.findall(r"<h2>(.*?)</h2>", html.render(report)) == SECTIONS
    assert all(section(said, title).strip() for title in SECTIONS)


def test_same_report_same_bytes(report: Report) -> None:
    assert markdown.render(report) == markdown.render(report)
    assert html.render(report) == html.render(report)


def test_the_title_names_the_benchmark_else_the_run(one_run: Report) -> None:
    assert markdown.render(one_run).startswith("# tau_airline BLADE Analysis Report\n")
    nameless = replace(one_run, runs=(replace(one_run.runs[0], benchmark=None),))
    assert markdown.render(nameless).startswith("# airline BLADE Analysis Report\n")


def test_the_first_paragraph_is_the_score_with_n_interval_and_method(one_run: Report) -> None:
    first = section(markdown.render(one_run), "Executive Summary").strip().split("\n\n")[0]
    assert "**50.0%** [21.7%, 78.3%] pass@1" in first
    assert "n = 8 tasks, 32 rollouts, 4 repeats per task" in first
    assert "95% interval (t over task means)" in first
    assert "Missing rows" not in first


def test_missing_rows_that_matter_are_in_the_first_paragraph(cases: dict[str, Callable[[], Report]]) -> None:
    report = cases["some missing"]()
    flag = Health(report.runs[0].name, "missing_rows_matter", Level.PROBLEM, "Missing rows matter.", 0.3, 12)
    report = replace(report, health=(*report.health, flag))
    first = section(markdown.render(report), "Executive Summary").strip().split("\n\n")[0]
    assert "Missing rows matter." in first
    assert (
        "5 expected rollouts have no score: counted as failed, the score would be 50.0% instead of 83.3%"
        in first
    )


def test_missing_rows_that_matter_little_come_later(cases: dict[str, Callable[[], Report]]) -> None:
    report = cases["some missing"]()
    near = tuple(replace(m, value=0.83) if m.name == "missing_as_fail" else m for m in report.measures)
    summary = section(markdown.render(replace(report, measures=near)), "Executive Summary").strip()
    assert "have no score" not in summary.split("\n\n")[0]
    assert "have no score: counted as failed, the score would be 83.0% instead of 83.3%" in summary


def test_the_weighting_effect_is_said_when_there_is_one(
    one_run: Report, cases: dict[str, Callable[[], Report]]
) -> None:
    assert "weighting effect" not in section(markdown.render(one_run), "Executive Summary")
    assert "a weighting effect of +2.4 points" in section(
        markdown.render(cases["some missing"]()), "Executive Summary"
    )


def test_every_measure_has_value_n_and_method(one_run: Report) -> None:
    table = section(markdown.render(one_run), "Aggregate Results")
    assert "| pass@4 | 75.0% [55.0%, 95.0%] | 8 tasks |" in table
    assert "| retry value | +25.0 points | 8 tasks |" in table
    assert "| `something_new, k = 2` | 0.250 | 3 rows |  | exact |" in table
    for row in re.findall(
        r"^\| (?!Measure|---)(.*) \|$", table.split("The task is the unit")[0], re.MULTILINE
    ):
        cells = row.split(" | ")
        assert re.search(r"\d (tasks?|rows?)$", cells[2]), row
        assert cells[4], row


def test_of_many_k_only_some_are_printed(one_run: Report) -> None:
    many = tuple(
        Measure("airline", "pass_at_k", 0.5, 8, k=k, low=0.4, high=0.6, method="task t") for k in range(1, 21)
    )
    table = section(markdown.render(replace(one_run, measures=many)), "Aggregate Results")
    assert re.findall(r"^\| pass@(\d+) \|", table, re.MULTILINE) == ["2", "4", "8", "16", "20"]
    assert "report.json has all" in table


def test_reported_numbers_stand_beside_ours(one_run: Report) -> None:
    said = section(
        markdown.render(
            replace(one_run, compared=(Compared("airline", "m.json", "mean", 50.0, 0.5, "Percent."),))
        ),
        "Aggregate Results",
    )
    assert "### Reported by the evaluation itself" in said
    assert "| `mean` | 50 | 0.500 | Percent. | `m.json` |" in said


def test_long_tables_say_how_many_rows_they_leave_out(cases: dict[str, Callable[[], Report]]) -> None:
    said = section(markdown.render(cases["many tasks"]()), "Sometimes-Pass Deep Dives")
    assert len(re.findall(r"^\| `\d+`", said, re.MULTILINE)) == 30
    assert "420 more tasks are in report.json" in said


def test_deep_dives_rank_and_point(one_run: Report) -> None:
    said = markdown.render(one_run)
    sometimes = section(said, "Sometimes-Pass Deep Dives")
    assert "| `3` `tau-3` | 50.0% (2/4) | 50.0% | [20.0%, 80.0%] | 0.62 | `1 0 1 0` | `3/0 3/1` |" in sometimes
    assert sometimes.index("tau-3") < sometimes.index("tau-6") < sometimes.index("tau-4")
    assert "blade show runs/airline.jsonl 3/1  # failed" in sometimes
    never = section(said, "Never-Pass Deep Dives")
    assert "| `5` `tau-5` | 0% (0/4) | 12.4% | [0%, 42.4%] | 52.7% |" in never


def test_what_was_not_concluded_is_not_pretended(one_run: Report) -> None:
    said = markdown.render(one_run)
    assert "no lost point was traced to a cause" in section(said, "Executive Summary")
    assert "No mechanism, behaviour or error signature was found" in section(said, "Dominant Failure Modes")
    for title in ("Sometimes-Pass Deep Dives", "Never-Pass Deep Dives"):
        assert "None of these tasks was given a root cause" in section(said, title)
    advice = section(said, "Recommendations")
    assert "Nothing is recommended" in advice
    assert "**Unexplained gap to the oracle:** not computed" in advice
    assert "No accuracy card came with this report" in section(said, "Reproducibility Notes")
    assert "There is one run" in section(said, "Cross-Model Comparison")


def test_several_runs_that_were_not_paired_get_no_verdict(cases: dict[str, Callable[[], Report]]) -> None:
    said = section(markdown.render(cases["two runs"]()), "Cross-Model Comparison")
    assert "50.0% [21.7%, 78.3%] | 8 tasks" in said
    assert "This report does not pair them; `blade compare` does." in said
    assert "1 task key of 9 occur in every run" in said


def test_without_a_pass_rate_nothing_is_called_failed(cases: dict[str, Callable[[], Report]]) -> None:
    said = markdown.render(cases["unbounded"]())
    assert "there is no pass rate" in section(said, "Executive Summary")
    assert "cannot be put into buckets" in section(said, "Task Outcome Buckets")
    assert "%" not in section(said, "Executive Summary").split("mean reward")[0]


def test_a_constant_reward_and_a_single_repeat_are_said(cases: dict[str, Callable[[], Report]]) -> None:
    assert "Every scored row has the same reward" in markdown.render(cases["constant"]())
    assert "With one repeat per task" in markdown.render(cases["one repeat"]())


def test_losses_are_printed_in_points_of_score(one_run: Report) -> None:
    said = section(markdown.render(one_run), "Dominant Failure Modes")
    assert "| undetermined | not attributed | 50.00 points | 100% | – |" in said
    assert "Sum: 0.500000 = 1 − pass_at_1, over 8 tasks" in said


def test_reproducibility_names_version_command_inputs_and_gaps(one_run: Report) -> None:
    said = section(markdown.render(one_run), "Reproducibility Notes")
    for part in (
        "0.1.0",
        "blade diagnose runs/airline.jsonl",
        "0123456789abcdef",
        "temperature",
        "1e-9",
        "not JSON: line 17",
        "no row reports cost",
    ):
        assert part in said

"""The Markdown report: its sections, its sentences, its limits."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from blade.model import Compared, Gap, Measure, Report
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


def test_the_first_paragraph_is_the_score_with_n_and_interval(one_run: Report) -> None:
    first = section(markdown.render(one_run), "Executive Summary").strip().split("\n\n")[0]
    assert first == (
        "`gpt-4o` (`airline`) on `tau_airline`: **50.0%** passed (16 of 32 rollouts, 95% CI 21.7% to 78.3%); 8 tasks, 4 tries each"
    )


def test_the_weighting_effect_is_a_row_of_its_own_where_there_is_one(
    one_run: Report, cases: dict[str, Callable[[], Report]]
) -> None:
    assert "over rows" not in section(markdown.render(one_run), "Aggregate Results")
    unequal = section(markdown.render(cases["some missing"]()), "Aggregate Results")
    assert "| pass@1 | 83.3% [50.0%, 100%] | 3 tasks |" in unequal
    assert "| pass@1 over rows | 85.7% | 7 rows |" in unequal


def test_every_measure_has_value_n_and_meaning(one_run: Report) -> None:
    table = section(markdown.render(one_run), "Aggregate Results")
    assert "| pass@4 | 75.0% [55.0%, 95.0%] | 8 tasks |" in table
    rows = re.findall(r"^\| (?!Measure|---)(.*) \|$", table.split("Means and intervals")[0], re.MULTILINE)
    assert len(rows) == 3
    for row in rows:
        cells = row.split(" | ")
        assert re.search(r"\d (tasks?|rows?)$", cells[2]), row
        assert cells[3], row


def test_of_many_k_the_usual_number_of_tries_is_printed(one_run: Report) -> None:
    many = tuple(
        Measure("airline", "pass_at_k", 0.5, 8, k=k, low=0.4, high=0.6, method="task t") for k in range(1, 21)
    )
    table = section(markdown.render(replace(one_run, measures=many)), "Aggregate Results")
    assert re.findall(r"^\| pass@(\d+) \|", table, re.MULTILINE) == ["4"]
    assert "report.json has all measures" in table


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
    assert len(re.findall(r"^\| `\d+`", said, re.MULTILINE)) == 5
    assert "445 more tasks are in report.json" in said


def test_a_task_has_its_passes_and_the_repeats_to_read(one_run: Report) -> None:
    said = markdown.render(one_run)
    assert "| `3` `tau-3` | 2 of 4 | – |  | `3/0 3/1` |" in section(said, "Sometimes-Pass Deep Dives")
    assert "| `5` `tau-5` | 0 of 4 | – |  | `5/0 5/1` |" in section(said, "Never-Pass Deep Dives")


def test_what_was_not_concluded_is_not_pretended(one_run: Report) -> None:
    said = markdown.render(one_run)
    summary = section(said, "Executive Summary")
    assert not [part for part in ("Where the points went", "Fix first", "Look at") if part in summary]
    assert "No failure group was found." in section(said, "Dominant Failure Modes")
    assert "There is nothing to recommend: no failure group was found." in section(said, "Recommendations")
    assert "How often such labels are right was not measured." in section(said, "Reproducibility Notes")
    assert "There is one run" in section(said, "Cross-Model Comparison")


def test_several_runs_that_were_not_paired_get_no_verdict(cases: dict[str, Callable[[], Report]]) -> None:
    said = section(markdown.render(cases["two runs"]()), "Cross-Model Comparison")
    assert "50.0% [21.7%, 78.3%] | 8 tasks" in said
    assert "This report does not pair them; `blade compare` does." in said
    assert "1 task key of 9 occur in every run" in said


def test_without_a_pass_rate_nothing_is_called_failed(cases: dict[str, Callable[[], Report]]) -> None:
    said = markdown.render(cases["unbounded"]())
    assert "mean reward **178.4**, 95% CI −168.9 to 525.8" in section(said, "Executive Summary")
    assert "cannot be put into buckets" in section(said, "Task Outcome Buckets")
    assert "No threshold says what passes" in section(said, "Never-Pass Deep Dives")
    assert "so there is no pass rate" in section(said, "Reproducibility Notes")


def test_reproducibility_names_version_command_inputs_and_gaps(one_run: Report) -> None:
    said = section(markdown.render(one_run), "Reproducibility Notes")
    for part in (
        "0.1.0",
        "blade diagnose runs/airline.jsonl",
        "temperature",
        "1e-9",
        "not JSON: line 17",
        "no row reports cost",
    ):
        assert part in said
    assert "0123456789abcdef" in section(markdown.render(one_run), "Artifact Inventory")


def test_gaps_with_one_reason_share_a_line_and_long_lists_are_cut(one_run: Report) -> None:
    names = ", ".join(f"rule_{at}" for at in range(33))
    gaps = (
        Gap(f"{names} on desk", "no task has what they need: a tool call"),
        *(Gap(f"no config file of run-{at}", "settings are unknown") for at in range(12)),
    )
    said = section(markdown.render(replace(one_run, gaps=gaps)), "Reproducibility Notes")
    assert "What this report cannot say (13 gaps), by what is missing:" in said
    assert "\n- rule_0, rule_1, rule_2" in said
    assert "; no config file of run-7; … more in report.json: settings are unknown\n" in said
    many = tuple(Gap(f"gap {at}", f"reason {at}") for at in range(200))
    said = section(markdown.render(replace(one_run, gaps=many)), "Reproducibility Notes")
    assert "More gaps are in report.json." in said

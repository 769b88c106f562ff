"""Health in the report and in the terminal: the gravest first, the tasks in doubt, nothing that runs."""

from __future__ import annotations

import json

from msgspec.structs import replace

from blade.model import Evidence, Health, Level, Report
from blade.report import health_text, markdown


def flags(report: Report) -> Report:
    """The report with flags of every kind on its first run."""
    run = report.runs[0].name
    quote = Evidence(run, "3", 0, field="expected_answer", quote="42 \x1b[31mred")
    told = (
        Health(run, "saturation", Level.INFO, "Of 8 tasks 2 always pass.", 0.5, 8),
        Health(run, "gold_rejected", Level.PROBLEM, "5 of 5 rows are scored 0.", 1.0, 5, None, (quote,)),
        Health(run, "score_without_suspects", Level.WARNING, "1 of 8 tasks is suspect.", 0.5, 7),
        Health(run, "suspect_task", Level.INFO, "gold scored 0 (TI). Points: 3; ...", 3.0, 4, "3", (quote,)),
        Health(run, "task_to_review", Level.INFO, "item-rest -0.5 (TI). Points: 2; ...", 2.0, 4, "5"),
    )
    return replace(report, health=told)


def part(said: str) -> str:
    """The health of the aggregate results."""
    results = said.split("\n## Aggregate Results\n", 1)[1].split("\n## ", 1)[0]
    return results.split("\n### Health\n", 1)[1].split("\n### ", 1)[0]


def test_the_report_lists_the_gravest_flag_first_and_the_tasks_in_doubt_apart(one_run: Report) -> None:
    said = part(markdown.render(flags(one_run)))
    assert said.index("gold_rejected") < said.index("saturation") < said.index("1 of 8 tasks is suspect.")
    tasks = [line for line in said.splitlines() if line.startswith("| `3`") or line.startswith("| `5`")]
    assert len(tasks) == 2
    assert "suspect" in tasks[0]
    assert "to review" in tasks[1]
    assert "#expected_answer`" in said


def test_a_run_without_flags_says_so(one_run: Report) -> None:
    assert "No health flag was raised." in part(markdown.render(replace(one_run, health=())))
    assert "No flag was raised." in health_text.render(replace(one_run, health=(), findings=()))


def test_the_terminal_shows_counts_quotations_and_no_control_sequence(one_run: Report) -> None:
    said = health_text.render(flags(one_run))
    assert "1 problem, 1 warning, 3 notes" in said
    assert said.index("! gold_rejected") < said.index(". saturation") < said.index("Tasks in doubt:")
    assert "3/0, expected_answer: '42 red'" in said
    assert "\x1b" not in said


def test_json_keeps_flags_suspects_and_the_score_without_them_apart(one_run: Report) -> None:
    told = json.loads(health_text.as_json(flags(one_run)))
    assert told["schema"] == "blade.health/1"
    run = told["runs"][0]
    assert [flag["flag"] for flag in run["flags"]] == [
        "gold_rejected",
        "score_without_suspects",
        "saturation",
    ]
    assert run["flags"][0]["evidence"][0]["quote"] == "42 \x1b[31mred"
    assert [flag["task"] for flag in run["suspects"]] == ["3"]
    assert [flag["task"] for flag in run["to_review"]] == ["5"]
    assert run["score_without_suspects"]["value"] == 0.5
    assert run["levels"] == {"problem": 1, "warning": 1, "info": 3}

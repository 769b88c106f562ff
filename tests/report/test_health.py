"""`blade health` on the screen and as JSON: trust before flags, the gravest first, nothing that runs."""

from __future__ import annotations

import json

from msgspec.structs import replace

from blade.model import Cause, Evidence, Health, Level, Report, Trust
from blade.report import health_text


def trusted(report: Report) -> Report:
    """The report with an alarm, a warning and a note on its first run, and flags of every level."""
    run = report.runs[0].name
    quote = Evidence(run, "3", 0, field="expected_answer", quote="42 \x1b[31mred")
    query = f"select run, task, repeat, row from rollouts where run = '{run}' and row in (1, 2)"
    return replace(
        report,
        trust=(
            Trust(run, "alarm", Cause.TASK_OR_VERIFIER, "The grader rejects \x1b[31mright answers.", 5, query, "Fix it."),
            Trust(run, "warning", None, "Doing nothing would score 40%.", 1, query),
            Trust(run, "note", None, "Small set.", 32, query),
        ),
        health=(
            Health(run, "saturation", Level.INFO, "Of 8 tasks 2 always pass.", 0.5, 8),
            Health(run, "lost_rows", Level.PROBLEM, "5 of 37 rows are missing.", float("nan"), 5, None, (quote,)),
        ),
    )


def test_trust_comes_before_the_flags_and_the_gravest_first(one_run: Report) -> None:
    said = health_text.render(trusted(one_run))
    assert "Can the score be trusted? No." in said
    order = ["\nalarm    ", "\nwarning  ", "\nnote     Small", "Flags of the columns", "\nproblem  5 of 37", "\nnote     Of 8"]
    places = [said.find(part) for part in order]
    assert -1 not in places
    assert places == sorted(places)


def test_an_entry_has_its_label_its_rows_and_its_fix(one_run: Report) -> None:
    said = " ".join(health_text.render(trusted(one_run)).split())
    assert "The grader rejects right answers. [TI, task, verifier or harness; 5 rows] Fix: Fix it." in said
    assert "Doing nothing would score 40%. [1 row] note" in said
    assert "3/0, expected_answer: '42 red'" in said


def test_nothing_in_a_text_reaches_the_terminal_as_a_sequence(one_run: Report) -> None:
    assert "\x1b" not in health_text.render(trusted(one_run))
    assert "\x1b" not in health_text.as_json(trusted(one_run))


def test_a_run_without_any_reason_says_so(one_run: Report) -> None:
    said = health_text.render(replace(one_run, trust=(), health=()))
    assert "Can the score be trusted? Yes" in said
    assert "Flags of the columns\nNone." in said


def test_a_grave_flag_alone_asks_for_care(one_run: Report) -> None:
    said = health_text.render(replace(trusted(one_run), trust=()))
    assert "Can the score be trusted? With care, see the flags below." in said


def test_json_holds_trust_and_flags_of_each_run(one_run: Report) -> None:
    document = json.loads(health_text.as_json(trusted(one_run)))
    assert document["schema"] == "blade.health/2"
    (run,) = document["runs"]
    assert list(run) == ["name", "score_name", "score", "n_tasks", "n_rollouts", "trust", "flags"]
    assert [(one["level"], one["label"], one["rows"], one["fix"]) for one in run["trust"]] == [
        ("alarm", "TI", 5, "Fix it."),
        ("warning", None, 1, ""),
        ("note", None, 32, ""),
    ]
    assert all(one["query"].startswith("select ") for one in run["trust"])
    assert [flag["flag"] for flag in run["flags"]] == ["lost_rows", "saturation"]
    assert run["flags"][0]["value"] is None
    assert run["flags"][0]["evidence"][0]["quote"] == "42 \x1b[31mred"

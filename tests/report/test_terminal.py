"""What a terminal shows: the first page of runs, a comparison on one screen, the health of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from blade.model import Checked, Gate, Health, Outcome, Report, Trust
from blade.report import first_page, terminal
from blade.report.comparison_screen import compare_text
from tests.compared import screen as assert_one_screen

from . import changed
from .conftest import CASES, f1, make_report
from .explained import SKIPS
from .nouns import nouns
from .renders import assert_in_order, assert_says, changes, edited, sayings


def assert_fits(page: str) -> None:
    """No line is wider than the page, but where a word of a command would be cut; none ends in a space."""
    assert page.endswith("\n")
    lines = page.rstrip("\n").split("\n")
    commands = next((at for at, line in enumerate(lines) if line.startswith("Look at")), len(lines))
    assert all(cell_len(line) <= terminal.PIPED for line in lines[:commands])
    wide = [line for line in lines[commands:] if cell_len(line) > terminal.PIPED]
    assert all(len(line[terminal.LABEL :].split()) == 1 for line in wide)
    assert all(line == line.rstrip() for line in lines)


def flat(page: str) -> str:
    """The words of a page, however they are broken into lines."""
    return " ".join(page.split())


def words(report: Report) -> str:
    return flat(first_page.render(report))


def test_every_report_fits_the_width(report: Report) -> None:
    assert_fits(first_page.render(report))
    assert first_page.render(report) == first_page.render(report)


@pytest.mark.parametrize("saying", sayings("first page"), ids=lambda saying: saying["case"])
def test_the_first_page_says(saying: dict[str, Any]) -> None:
    assert_says(words(edited(CASES[saying["case"]](), saying)), saying)


def test_masked_rollouts_are_in_no_count_of_the_headline(one_run: Report) -> None:
    run, score = one_run.runs[0], next(measure for measure in one_run.measures if measure.name == "pass_at_1")
    masked = replace(run, n_rollouts=run.n_rollouts + 8, n_tasks=run.n_tasks + 2, outcomes={**run.outcomes, Outcome.MASKED: 8})
    assert f"(16 of {run.n_rollouts} rollouts" in words(one_run)
    assert f"; {score.n} tasks, 4 tries each" in words(one_run)
    said = words(replace(one_run, runs=(masked,)))
    assert f"(16 of {run.n_rollouts} rollouts" in said
    assert f"; {score.n} of {score.n + 2} tasks scored, 4 tries each" in said


def test_trust_points_groups_and_fixes_follow_the_score_and_only_the_gravest_reasons_are_shown(explained: Report) -> None:
    order = ("Can the score be trusted?", "Where the points went", "On which tasks", "What happened", "Fix first", "Look at")
    assert_in_order(first_page.render(explained), [f"\n{label}" for label in order])
    notes = tuple(replace(explained.trust[2], text=f"Note {place}.") for place in range(100))
    page = first_page.render(replace(explained, trust=(*notes, *explained.trust[:2])))
    assert_in_order(page, ["provider error", "Doing nothing", "Note 0."])
    assert "Note 2." not in page


def test_a_group_that_trust_named_is_not_repeated_and_examples_can_be_typed(explained: Report) -> None:
    page = words(replace(explained, trust=(replace(explained.trust[0], text=explained.groups[0].text),)))
    assert page.count("13 failures show it") == 1
    assert f"1. {SKIPS} (see above). In 6/1" in page
    for place, group in zip(("6/1", "10/0", "7/0"), explained.groups, strict=False):
        assert f"blade show runs/airline.jsonl {place} ({group.name})" in page


def test_long_and_wide_texts_are_wrapped_not_cut(explained: Report) -> None:
    groups = tuple(replace(one, name="漢字 " * 30, text="漢字かな" * 60 + " END") for one in explained.groups)
    advice = tuple(replace(one, action="word " * 70 + "END") for one in explained.recommendations)
    page = first_page.render(replace(explained, groups=groups, recommendations=advice))
    assert_fits(page)
    assert page.count("END") == 6
    assert "".join(page.split()).count("漢字かな" * 60) == 3


def test_several_runs_are_a_table_with_a_line_each_and_share_their_groups() -> None:
    page = first_page.render(CASES["explained runs"]())
    assert page.startswith("2 runs\n\nRun ")
    row = next(line for line in page.split("\n") if line.startswith("desk "))
    assert row.split()[1:] == ["50.0%", "[31.9%,", "68.1%]", "20", "80", "No", "BI", *SKIPS.split()]
    assert f"{SKIPS} [BI, behaviour]: desk 16.2, desk-b 15.6" in flat(page)
    assert "1: different models agree against the expected answer (review these golds): 3" in flat(page)
    many = first_page.render(make_report({f"checkpoint-{at:05}": f1() for at in range(60)}))
    assert_fits(many)
    assert all(f"checkpoint-{at:05}" in many for at in range(60))


# ---- A comparison on one screen ------------------------------------------------------------------

SCREENS: dict[str, Callable[[], Report]] = {
    "pair": changed.pair_report,
    "large": lambda: changed.pair_report(*changed.large()),
    "many": changed.many_report,
    "sixty": lambda: changed.many_report(n=60),
    "refused": lambda: changed.pair_report(refused="no task in common " * 60, delta=None),
    "identical": lambda: changed.pair_report(identical=True),
    "long": lambda: changed.pair_report(
        movers=tuple(replace(one, text="漢字 " * 200) for one in changed.pair_report().comparisons[0].movers * 5),
        notes=("word " * 300,) * 9, missing_run="word " * 300,
    ),
    "gated": lambda: replace(changed.pair_report(), gate=changed.make_gate(str), series=changed.make_series(["a", "b"], str)),
    "none": lambda: replace(changed.pair_report(), comparisons=()),
}  # fmt: skip


@pytest.mark.parametrize("name", SCREENS)
def test_every_comparison_fits_one_screen(name: str) -> None:
    report = SCREENS[name]()
    assert_one_screen(compare_text(report))
    assert compare_text(report) == compare_text(report)
    assert_fits(first_page.render(report))


@pytest.mark.parametrize("saying", sayings("screen"), ids=lambda saying: saying["name"])
def test_the_screen_says_verdicts_movers_bridge_limits_and_what_to_do_next(saying: dict[str, Any]) -> None:
    page = flat(compare_text(SCREENS[saying["name"]]()))
    assert_says(page, saying)
    assert saying["name"] != "long" or "Read next" not in page
    verdict = "cand against base: improved on these tasks, inconclusive for new ones; +21.9 points [−16.4, +60.2 points], n = 8 tasks"
    assert saying["name"] != "pair" or verdict in words(SCREENS["pair"]())  # a diagnosis prints the verdicts of its pairs


def test_candidates_that_share_a_long_start_stay_apart() -> None:
    def word(text: str) -> str:
        return f"codellama-7b_output[_ng_rollout_index={text[5:]}]" if text.startswith("step-") else text

    page = compare_text(changed.many_report(word, n=9))
    assert_one_screen(page)
    lines = [line for line in page.splitlines() if line.startswith("codellama")]
    assert len({line.split("  ")[0] for line in lines if "  " in line}) == 9
    assert len({line.split(": ")[0] for line in lines if ": " in line}) == 9


REASON = "the change is -8.6 points, and the one-sided 95% bound of the drop, 12.4 points, is more than the 2.0 allowed"
OPEN = ("INCONCLUSIVE", "FAIL", "PASS", "FAIL", "INCONCLUSIVE", "FAIL")


def gated(verdicts: tuple[str, ...], refused: str | None = None) -> str:
    checks = tuple(Checked("cand", f"m{at}", "critical", word, REASON) for at, word in enumerate(verdicts))
    page = compare_text(replace(changed.pair_report(refused=refused), gate=Gate("policy.toml", "FAIL", checks)))
    assert_one_screen(page)
    return flat(page)


@pytest.mark.parametrize("refused", [None, "the runs have no task in common"])
def test_every_check_that_fails_has_its_reason_and_those_without_room_are_counted(refused: str | None) -> None:
    page = gated(OPEN, refused)
    assert "Gate FAIL: 6 checks, 5 not passed" in page
    for at in (1, 3, 5):
        assert f"FAIL m{at}: {REASON.replace('-8.6', '−8.6')}." in page
    assert page.index("FAIL m5") < page.index("INCONCLUSIVE m0")
    assert "m2" not in page
    assert "more checks in the report" in gated(OPEN * 20)


def test_notes_are_shown_to_their_end() -> None:
    note = "the repeats of the baseline were " + "counted and " * 20 + "of 165 tasks 36 flipped"
    page = compare_text(changed.pair_report(notes=(note,)))
    assert_one_screen(page)
    assert "of 165 tasks 36 flipped." in flat(page)


def test_a_change_below_the_margin_is_marked() -> None:
    report = changed.pair_report(**changes("below the margin"))
    assert "REGRESSED     by less than the margin: −1.2 points, 95% CI [" in compare_text(report)
    several = compare_text(replace(report, comparisons=report.comparisons * 2))
    assert [part for part in ("regressed*", "* by less than the margin.") if part not in several] == []
    assert "*" not in compare_text(replace(report, comparisons=changed.pair_report().comparisons * 2))


@pytest.fixture
def trusted(one_run: Report) -> Report:
    """A run with an alarm, a warning and a note, and flags of every level."""
    run = one_run.runs[0].name
    quote = {"run": run, "task": "3", "repeat": 0, "field": "expected_answer", "quote": "42 \x1b[31mred"}
    query = f"select run, task, repeat, row from rollouts where run = '{run}' and row in (1, 2)"
    flags = nouns(Health, "graded health", run=run, quoted=[quote])
    return replace(one_run, trust=nouns(Trust, "graded trust", run=run, query=query), health=flags)


def test_health_tells_trust_before_the_flags_and_the_gravest_first(trusted: Report) -> None:
    page = first_page.health(trusted)
    assert "\x1b" not in page + first_page.health_json(trusted)
    order = ["Can the score be trusted? No.", "\nalarm    ", "\nwarning  ", "\nnote     Small", "Flags of the columns", "\nproblem  5 of 37", "\nnote     Of 8"]
    assert_in_order(page, order)
    for part in (
        "The grader rejects right answers. [TI, task, verifier or harness; 5 rows] Fix: Fix it.",
        "Doing nothing would score 40%. [1 row] note", "3/0, expected_answer: '42 red'",
    ):  # fmt: skip
        assert part in flat(page)
    page = first_page.health(replace(trusted, trust=(), health=()))
    assert [part for part in ("Can the score be trusted? Yes", "Flags of the columns\nNone.") if part not in page] == []
    assert "Can the score be trusted? With care, see the flags below." in first_page.health(replace(trusted, trust=()))


def test_health_as_json_holds_trust_and_flags_of_each_run(trusted: Report) -> None:
    document = json.loads(first_page.health_json(trusted))
    assert document["schema"] == "blade.health/2"
    (run,) = document["runs"]
    assert list(run) == ["name", "score_name", "score", "n_tasks", "n_rollouts", "trust", "flags"]
    assert [(one["level"], one["label"], one["rows"], one["fix"]) for one in run["trust"]] == [
        ("alarm", "TI", 5, "Fix it."), ("warning", None, 1, ""), ("note", None, 32, ""),
    ]  # fmt: skip
    assert all(one["query"].startswith("select ") for one in run["trust"])
    assert [flag["flag"] for flag in run["flags"]] == ["lost_rows", "saturation"]
    assert (run["flags"][0]["value"], run["flags"][0]["evidence"][0]["quote"]) == (None, "42 \x1b[31mred")

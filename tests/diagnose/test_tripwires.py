"""The engine checks its own conclusions before anything is printed: each tripwire with a case and a near miss."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.case_tables import cases
from tests.conftest import Blade
from tests.diagnose.builders import desk, desk_acts, desk_row, quiz, quiz_row, rewards
from tests.diagnose.diagnosed import Diagnose, Diagnosed
from tests.diagnose.rows import Act, Key, Row, grid, make_row

# ---- 1. A field set by grading whose rows equal the failing rows is the verdict, not a cause -----


def log(key: Key, end: str) -> str:
    return "\n".join([*(f"step {n} took {key[0] * n + key[1]} ms and {n} entries" for n in range(12)), end])


@pytest.mark.parametrize(("passed", "failed"), [(None, "the checker refuses the form"), (True, False), ("settled", "not"), ("", "log")])
def test_1_field_or_line_that_equals_the_failures_is_no_cause(diagnose: Diagnose, passed: object, failed: object) -> None:
    def state(key: Key, row: Row) -> object:
        if failed == "log":
            return log(key, "grade: settled in full" if row["reward"] else "grade: error, not settled")
        return passed if row["reward"] else failed

    run = diagnose({**row, "form_state": state(key, row)} for key, row in desk(12, 4, 0.6).items())
    assert not any("form_state" in group.name + group.text + group.fix for group in run.groups)
    assert run.report.unexplained[0].rows == len(run.failing)
    assert run.alarms == []


def test_1_fact_before_grading_may_cover_all_failures(diagnose: Diagnose) -> None:
    """Every failure, and no pass, never looks the address up: an act precedes grading, so it may be the cause."""
    acts = {key: desk_acts(*key, key[0] * 50 + key[1]) for key in grid(16, 4)}
    run = diagnose(
        desk_row(*key, reward, [act for act in acts[key] if reward or act[0] != "check_address"])
        for key, reward in rewards(16, 4, 0.6).items()
    )
    group = run.group(run.failing)
    assert (group.label, "check_address" in group.name) == ("BI", True)


CLEAN = re.compile(r"would be (?:100|\d+(?:\.\d+)?%? of 0)|100(?:\.0)?% (?:without|once|if)|n = 0|0 of 0", re.IGNORECASE)


def crashed(is_all: bool) -> Iterator[Row]:
    """All that did not crash passes, or everything crashed."""
    for key in grid(12, 4):
        is_crashed = is_all or sum(key) % 3 == 0
        yield make_row(*key, 0.0, (), fault="error: the desk was closed") if is_crashed else desk_row(*key, 1.0)


@pytest.mark.parametrize("is_all", [True, False])
def test_2_no_clean_score_of_everything_or_nothing(diagnose: Diagnose, blade: Blade, is_all: bool) -> None:
    run = diagnose(crashed(is_all))
    assert run.labels(run.failing) == {"IR"}
    assert "rerun" in run.said.lower()  # 4: advised where the agent never ran
    page = blade("diagnose", run.path)
    assert page.code == 0, page.err
    assert not [text for text in (run.said, page.out) if CLEAN.search(text)]
    clean = [measure for measure in run.report.measures if measure.name.startswith("clean")]
    assert not [measure for measure in clean if measure.value in (None, 1.0) or not measure.n]
    levels = [("alarm", "warning", "note").index(entry.level) for entry in run.trust]
    assert (levels[0], levels) == (0, sorted(levels))  # 6: alarms, then warnings, then notes


@pytest.mark.parametrize("end", ["unanswered", "silent", "blank"])
def test_3_rollout_with_steps_is_not_empty(diagnose: Diagnose, end: str) -> None:
    """Nineteen steps and no final text."""
    rows = []
    for task, repeat in grid(12, 4):
        acts: list[Act] = [("read_notice", {"page": task * 40 + n}, f"Page {n}.") for n in range(9)]
        last: list[Act] = {"unanswered": [("read_notice", {"page": task * 40 + 39}, None)], "blank": ["   "]}.get(end, [])
        rows.append(desk_row(task, repeat, 0.0 if (task + repeat) % 3 else 1.0, [*acts, *last]))
    assert "empty" not in diagnose(rows).said.lower()


def test_4_no_rerun_for_an_error_that_the_grader_always_gives(diagnose: Diagnose) -> None:
    """`error` is the checker's verdict on the answer, the same in every repeat of a task."""
    rows = []
    for task, repeat in grid(16, 4):
        kind = task % 4
        error = (None, "unknown street", "no number", "two numbers")[kind]
        text = f"redirect {task} to {'x' * kind} street {task * 3 + repeat}"
        rows.append(make_row(task, repeat, float(kind == 0), [text], error=error))
    run = diagnose(rows)
    assert "rerun" not in run.said.lower()
    assert "IR" not in run.labels(run.failing)


def worked() -> list[Row]:
    """A line that reads like a crash closes the log of all failures; their transcripts show the work done."""
    return [
        {**row, "agent_log": log(key, "clerk: signal 9 at shutdown" if sum(key) % 2 else "clerk leaves")}
        for key, row in desk(12, 4, 0.6).items()
    ]


def long_passes() -> list[Row]:
    """`stop_reason: length` in rows most of which pass: nothing was cut that mattered."""
    return [
        desk_row(*key, float(place % 10 > 0), stop_reason="stop" if place % 2 else "length") for place, key in enumerate(grid(12, 4))
    ]


@pytest.mark.parametrize("make", [worked, long_passes])
def test_5_label_that_the_rows_contradict_is_withdrawn(diagnose: Diagnose, make: Callable[[], list[Row]]) -> None:
    run = diagnose(make())
    assert {group.label.value for group in run.groups}.isdisjoint({"IR", "TI"})
    assert run.alarms == []


# ---- 6. Said before the causes -------------------------------------------------------------------


def errands(n_idle: int, rate: float) -> Iterator[Row]:
    """20 tasks, some of which expect no call; doing nothing passes those, and `rate` of the others pass."""
    for place, (task, repeat) in enumerate(grid(20, 4)):
        look: Act = ("find_parcel", {"number": task + repeat}, f"Parcel {task}.")
        due: list[Act] = [] if task < n_idle else [("redirect_parcel", {"number": task, "to": f"row {task}"}, "Moved.")]
        passes = (place * 7) % 20 < 20 * (0.95 if task < n_idle else rate)
        made = due if passes else [("redirect_parcel", {"number": task, "to": f"row {task + 60 + repeat}"}, "Moved.")]
        end = f"That was errand {task}." + " Goodbye." * (place % 4)
        yield make_row(task, repeat, float(passes), [look, *made, end], tools=("find_parcel", "redirect_parcel"), due=due)


def idle(run: Diagnosed) -> tuple[str, str]:
    """Level and text of what is said of doing nothing."""
    return next(((entry.level, entry.text) for entry in run.trust if "doing nothing" in entry.text.lower()), ("", ""))


def demanded(row: Row, place: int, what: str) -> dict[str, Any]:
    """What each task demands beside its calls."""
    task, is_told = row["_ng_task_index"], bool(row["reward"]) or place % 3 == 0
    figure = f"{task * 17 + 3}.5"
    due = [{"name": "redirect_parcel", "arguments": {"number": 3, "to": "row 3"}}]
    demands: dict[str, dict[str, Any]] = {
        "graded figures": {"outputs": {figure: is_told}},
        "free figures": {"outputs": {figure: place % 3 > 0}},
        "words and figures": {"outputs": {"cotton": True} if task < 2 else {figure: is_told}} if task < 2 or task >= 15 else {},
        "figures that everybody tells": {"outputs": {figure: True}} if task < 2 else {},
        "parts": {"parts": {"BOOKS": row["reward"], "WORDS": 1.0}},
    }
    return demands.get(what, {"expected_actions": due} if task == 3 else {})


@pytest.mark.parametrize(("what", "said"), cases(__file__, "idle"))
def test_6_doing_nothing_does_not_score_where_something_must_be_said(diagnose: Diagnose, what: str, said: str) -> None:
    """Row 10 of "why a new core": 8 of 20 tasks expect no call; some of them demand a word or a figure."""
    run = diagnose([{**row, **demanded(row, place, what)} for place, row in enumerate(errands(8, 0.07))])
    level, text = idle(run)
    assert run.score == pytest.approx(0.42, abs=0.05)
    assert (said in text, bool(text), level in ("warning", "note")) == (True, bool(said), bool(said))
    assert ("where an action or a result to be told is due" in text) == (what in ("words and figures", "figures that everybody tells"))


def test_6_do_nothing_baseline_is_a_warning_near_the_score_alone(diagnose: Diagnose) -> None:
    assert idle(diagnose(errands(8, 0.07)))[0] == "warning"
    assert idle(diagnose(errands(4, 0.8)))[0] != "warning"


@pytest.mark.parametrize("is_unanimous", [True, False])
def test_6_unanimous_wrong_answers_are_a_note_to_review(diagnose: Diagnose, is_unanimous: bool) -> None:
    """All repeats of three tasks give one answer, which is not the expected one; in the twin one repeat of each gives another."""
    wrong = {(task, repeat) for task in (2, 5, 9) for repeat in range(4)}
    rows = quiz(12, 4, rate=0.8)
    for task, repeat in wrong:
        given = task * 13 + (46 if is_unanimous or repeat else 52)
        rows[task, repeat] = quiz_row(task, repeat, 0.0, str(given), str(task * 13 + 41))
    run = diagnose(rows.values())
    notes = [(entry.level, run.keys(entry)) for entry in run.trust if "review these expected answers" in entry.text]
    assert notes == ([("note", wrong)] if is_unanimous else [])
    assert ("In 3 tasks (2, 5, 9) all repeats give the same answer" in run.said) == is_unanimous
    assert run.causes(wrong) == {"KG"}


@pytest.mark.parametrize(("levels", "is_said"), [((0.0, 0.0), True), ((0.0, 0.2, 0.5), False)])
def test_6_rewards_that_differ_were_computed(diagnose: Diagnose, levels: tuple[float, ...], is_said: bool) -> None:
    """Nothing passes, be it that all rewards are 0 or that they are partial credit."""
    run = diagnose([desk_row(*key, levels[place % len(levels)]) for place, key in enumerate(grid(12, 4))])
    assert ("check that rewards were computed" in run.said) == is_said


def finals(n_blank: int) -> list[Row]:
    """A quiz in which some rows end without any text; others fail now and then."""
    rows = quiz(20, 4, rate=0.7)
    for key in sorted(rows)[:: len(rows) // n_blank][:n_blank]:
        rows[key]["response"]["output"] = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": f"Hm, {key}."}]}]
        rows[key]["reward"] = 0.0
    return list(rows.values())


def test_6_empty_finals_are_said_first(diagnose: Diagnose) -> None:
    """6 of 80 rows (7.5%) end without a text; two are no alarm."""
    run = diagnose(finals(6))
    assert any(entry.level in ("alarm", "warning") and entry.rows == 6 for entry in run.trust), run.said
    assert diagnose(finals(2)).alarms == []


def test_6_unexplained_points_are_said_first_from_a_quarter_on(diagnose: Diagnose) -> None:
    run = diagnose(desk(12, 4, 0.6).values())
    assert any(entry.level == "warning" and "unexplained" in entry.text for entry in run.trust)
    run = diagnose([  # 14 crashed rows, 3 without a reason
        make_row(*key, 0.0, (), fault="error: the desk was closed") if place % 4 == 1 or place in (2, 22)
        else desk_row(*key, 0.0 if place in (4, 16, 28) else 1.0) for place, key in enumerate(grid(12, 4))
    ])  # fmt: skip
    assert run.report.unexplained[0].rows == 3
    assert not any("unexplained" in entry.text for entry in run.trust)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_7_missing_transcripts_and_passes_without_a_gold_are_no_doubt(diagnose: Diagnose, is_recorded: bool) -> None:
    run = diagnose([
        make_row(*key, reward, [f"hall {(key[0] * 7 + key[1] * 3) % 11}, row {sum(key)}"] if is_recorded else [], seconds=3.5 + sum(key))
        for key, reward in rewards(12, 4, 0.6).items()
    ])
    assert "verifier" not in run.said.lower()
    assert "TI" not in {entry.label for entry in run.trust}


@pytest.mark.parametrize("rate", [0.9, 0.3])
@pytest.mark.parametrize("make", [desk, quiz])
def test_8_healthy_run_has_no_alarm(diagnose: Diagnose, make: Callable[..., dict[Key, Row]], rate: float) -> None:
    run = diagnose(make(12, 4, rate, int(10 * rate)).values())
    assert run.alarms == []
    assert {group.label.value for group in run.groups}.isdisjoint({"TI", "IR", "DA"})
    assert not run.report.run_causes or run.report.run_causes[0].cause not in ("TI", "IR", "DA")


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_8_constant_run_has_no_alarm(diagnose: Diagnose, reward: float) -> None:
    run = diagnose([desk_row(*key, reward) for key in grid(12, 4)])
    assert (run.alarms, run.groups) == ([], ())


@pytest.mark.parametrize("is_graded", [True, False])
def test_form_of_an_argument_that_fails_puts_the_grader_in_doubt(diagnose: Diagnose, is_graded: bool) -> None:
    """One instant in two spellings: where one never passes, the page says that the grader may compare spellings."""
    rows = []
    for (task, repeat), reward in rewards(16, 4, 0.5).items():
        form = "Z" if (not reward if is_graded else repeat % 2) else "+00:00"
        acts: list[Act] = [("book_hall", {"at": f"2031-05-{task + 10}T0{repeat + 7}:00:00{form}"}, "Noted."), "The hall is booked."]
        rows.append(make_row(task, repeat, reward, acts, tools=("book_hall",)))
    notes = [entry for entry in diagnose(rows).trust if "the grader may be at fault" in entry.text]
    # a behaviour claims rows of tasks that pass without it: one task never passes
    assert [(entry.level, entry.rows) for entry in notes] == ([("note", 28)] if is_graded else [])

"""The engine checks its own conclusions before anything is printed: each tripwire with a case and a near miss."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from tests.conftest import Blade
from tests.diagnose.builders import (
    Act,
    Diagnose,
    Diagnosed,
    Key,
    Row,
    desk,
    desk_acts,
    desk_row,
    grid,
    make_row,
    quiz,
    quiz_row,
    rewards,
    told_of,
)


def named_in_groups(run: Diagnosed, word: str) -> bool:
    return any(word in group.name + group.text + group.fix for group in run.groups)


# ---- 1. A field set by grading whose rows equal the failing rows is the verdict, not a cause -----


@pytest.mark.parametrize(
    ("passed", "failed"), [(None, "the checker refuses the form"), (True, False), ("settled", "not settled")]
)
def test_1_field_that_equals_the_failures_is_no_cause(diagnose: Diagnose, passed: object, failed: object) -> None:
    rows = []
    for row in desk(12, 4, 0.6).values():
        value = passed if row["reward"] else failed
        rows.append({**row, "form_state": value})
    run = diagnose(rows)
    assert not named_in_groups(run, "form_state")
    assert run.report.unexplained[0].rows == len(run.failing)
    assert run.alarms == []


def test_1_line_that_equals_the_failures_is_no_cause(diagnose: Diagnose) -> None:
    """The grader's log closes with the reward in words."""
    rows = []
    for (task, repeat), row in desk(12, 4, 0.6).items():
        lines = [f"step {n} took {task * n + repeat} ms and {n} entries" for n in range(12)]
        end = "grade: settled in full" if row["reward"] else "grade: error, not settled"
        rows.append({**row, "grading_log": "\n".join([*lines, end])})
    run = diagnose(rows)
    assert not named_in_groups(run, "not settled")
    assert run.alarms == []


def test_1_fact_before_grading_may_cover_all_failures(diagnose: Diagnose) -> None:
    """Every failure, and no pass, never looks the address up: an act precedes grading, so it may be the cause."""
    rows = []
    for (task, repeat), reward in rewards(16, 4, 0.6).items():
        acts = desk_acts(task, repeat, random.Random(task * 50 + repeat))
        kept = [act for act in acts if reward or not (isinstance(act, tuple) and act[0] == "check_address")]
        rows.append(desk_row(task, repeat, reward, kept))
    run = diagnose(rows)
    group = run.group(run.failing)
    assert group.label == "BI"
    assert "check_address" in told_of(group)


# ---- 2. No clean score of 100%, and none of no rows ----------------------------------------------

CLEAN = re.compile(r"would be (?:100|\d+(?:\.\d+)?%? of 0)|100(?:\.0)?% (?:without|once|if)|n = 0|0 of 0", re.IGNORECASE)


def crashed(is_all: bool) -> list[Row]:
    """All that did not crash passes, or everything crashed."""
    rows = []
    for task, repeat in grid(12, 4):
        if is_all or (task + repeat) % 3 == 0:
            rows.append(make_row(task, repeat, 0.0, (), fault="error: the desk was closed"))
        else:
            rows.append(desk_row(task, repeat, 1.0))
    return rows


@pytest.mark.parametrize("is_all", [True, False])
def test_2_no_clean_score_of_everything_or_nothing(diagnose: Diagnose, is_all: bool) -> None:
    run = diagnose(crashed(is_all))
    assert run.labels(run.failing) == {"IR"}
    assert not CLEAN.search(run.said), CLEAN.search(run.said)
    clean = [measure for measure in run.report.measures if measure.name.startswith("clean")]
    assert not [measure for measure in clean if measure.value in (None, 1.0) or not measure.n]


@pytest.mark.parametrize("is_all", [True, False])
def test_2_page_prints_no_clean_score_of_everything_or_nothing(
    diagnose: Diagnose, blade: Blade, is_all: bool
) -> None:
    run = diagnose(crashed(is_all))
    page = blade("diagnose", run.path)
    assert page.code == 0, page.err
    assert not CLEAN.search(page.out), CLEAN.search(page.out)


# ---- 3. "Empty" is never said of a rollout with steps --------------------------------------------


@pytest.mark.parametrize("end", ["unanswered", "silent", "blank"])
def test_3_rollout_with_steps_is_not_empty(diagnose: Diagnose, end: str) -> None:
    """Nineteen steps and no final text."""
    rows = []
    for task, repeat in grid(12, 4):
        acts: list[Act] = [("read_notice", {"page": task * 40 + n}, f"Page {n}.") for n in range(9)]
        if end == "unanswered":
            acts.append(("read_notice", {"page": task * 40 + 39}, None))
        elif end == "blank":
            acts.append("   ")
        rows.append(desk_row(task, repeat, 0.0 if (task + repeat) % 3 else 1.0, acts))
    assert "empty" not in diagnose(rows).said.lower()


def test_3_rollout_without_steps_is_empty(diagnose: Diagnose) -> None:
    rows = [make_row(*key, 0.0, ()) if sum(key) % 3 == 0 else row for key, row in desk().items()]
    assert "empty" in diagnose(rows).said.lower()


# ---- 4. Rerun is never advised for a deterministic verdict ---------------------------------------


def test_4_no_rerun_for_answers_that_score_again(diagnose: Diagnose) -> None:
    """The right answer in another spelling: a rerun would be graded 0 again."""
    rows = quiz(12, 4)
    for task, repeat in ((1, 0), (4, 2), (6, 1), (9, 3)):
        rows[task, repeat] = quiz_row(task, repeat, 0.0, f"{task * 13 + 41}.00", str(task * 13 + 41))
    run = diagnose(rows.values())
    fixes = [group.fix for group in run.of_rung("verifier")]
    assert fixes
    assert not any(re.search(r"(?<!no )rerun", fix.lower()) for fix in fixes)


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


def test_4_rerun_is_advised_where_the_agent_never_ran(diagnose: Diagnose) -> None:
    assert "rerun" in diagnose(crashed(is_all=False)).said.lower()


# ---- 5. A label that most of its rows' evidence contradicts is withdrawn -------------------------


def test_5_crash_line_of_rows_that_did_their_work_is_no_infrastructure(diagnose: Diagnose) -> None:
    """A line that reads like a crash closes the log of all failures; their transcripts show the work done."""
    rows = []
    for (task, repeat), row in desk(12, 4, 0.6).items():
        lines = [f"entry {n * 7 + task} of {repeat}" for n in range(12)]
        end = "clerk: signal 9 at shutdown" if (task + repeat) % 2 else "clerk leaves"
        rows.append({**row, "agent_log": "\n".join([*lines, end])})
    run = diagnose(rows)
    assert "IR" not in {group.label.value for group in run.groups}
    assert run.alarms == []


def test_5_label_that_passing_rows_contradict_is_withdrawn(diagnose: Diagnose) -> None:
    """`stop_reason: length` in rows most of which pass: nothing was cut that mattered."""
    rows = []
    for place, key in enumerate(grid(12, 4)):
        is_long = place % 2 == 0
        reward = float(place % 10 not in (0, 5)) if is_long else 1.0
        rows.append(desk_row(*key, reward, stop_reason="length" if is_long else "stop"))
    run = diagnose(rows)
    assert "TI" not in {group.label.value for group in run.groups}
    assert run.alarms == []


# ---- 6. Said before the causes -------------------------------------------------------------------


def errands(n_idle: int, rate: float) -> list[Row]:
    """20 tasks, some of which expect no call; doing nothing passes those, and `rate` of the others pass."""
    rows = []
    for place, (task, repeat) in enumerate(grid(20, 4)):
        look: Act = ("find_parcel", {"number": task + repeat}, f"Parcel {task}.")
        due: list[Act] = [] if task < n_idle else [("redirect_parcel", {"number": task, "to": f"row {task}"}, "Moved.")]
        passes = (place * 7) % 20 < 20 * (0.95 if task < n_idle else rate)
        made = due if passes else [("redirect_parcel", {"number": task, "to": f"row {task + 60 + repeat}"}, "Moved.")]
        gold = [{"name": act[0], "arguments": act[1]} for act in due if isinstance(act, tuple)]
        end = f"That was errand {task}." + " Goodbye." * (place % 4)
        tools = ["find_parcel", "redirect_parcel"]
        row = desk_row(task, repeat, float(passes), [look, *made, end], expected_actions=gold)
        row["responses_create_params"]["tools"] = [{"type": "function", "name": tool} for tool in tools]
        rows.append(row)
    return rows


def idle_entries(run: Diagnosed) -> list[str]:
    return [entry.level for entry in run.trust if "doing nothing" in entry.text.lower()]


def test_6_do_nothing_baseline_near_the_score(diagnose: Diagnose) -> None:
    """Row 10 of "why a new core": 8 of 20 tasks expect nothing; the score is about 42%."""
    run = diagnose(errands(8, 0.07))
    assert run.score == pytest.approx(0.42, abs=0.05)
    assert idle_entries(run) == ["warning"]
    assert "40%" in next(entry.text for entry in run.trust if "doing nothing" in entry.text.lower())


def test_6_do_nothing_baseline_far_from_the_score_is_no_warning(diagnose: Diagnose) -> None:
    assert "warning" not in idle_entries(diagnose(errands(4, 0.8)))


@pytest.mark.parametrize("is_graded", [True, False])
def test_6_doing_nothing_does_not_score_where_something_must_be_said(diagnose: Diagnose, is_graded: bool) -> None:
    """Each task demands a figure as well, which passes always tell; where they need not, doing nothing scores all the same."""
    rows = errands(8, 0.07)
    for place, row in enumerate(rows):
        is_told = bool(row["reward"]) or place % 3 == 0 if is_graded else place % 3 > 0
        row["outputs"] = {f"{row['_ng_task_index'] * 17 + 3}.5": is_told}
    assert idle_entries(diagnose(rows)) == ([] if is_graded else ["warning"])


def idle_sentence(run: Diagnosed) -> str:
    return next((entry.text for entry in run.trust if "doing nothing" in entry.text.lower()), "")


def test_6_result_to_be_told_is_a_demand_be_it_a_word_or_a_figure(diagnose: Diagnose) -> None:
    """Of 8 tasks that expect no call, 2 demand a word; others demand figures, which failures do not always tell."""
    rows = errands(8, 0.07)
    for place, row in enumerate(rows):
        task = row["_ng_task_index"]
        if task < 2:
            row["outputs"] = {"cotton": True}
        elif task >= 15:
            row["outputs"] = {f"{task * 17 + 3}.5": bool(row["reward"]) or place % 3 == 0}
    said = idle_sentence(diagnose(rows))
    assert "up to 30%: 6 of 20 tasks expect no action (no write). " in said
    assert "where an action or a result to be told is due" in said


def test_6_result_that_everybody_tells_may_be_a_demand(diagnose: Diagnose) -> None:
    rows = errands(8, 0.07)
    for row in rows:
        if row["_ng_task_index"] < 2:
            row["outputs"] = {f"{row['_ng_task_index'] * 17 + 3}.5": True}
    assert "up to 30%: 6 of 20 tasks" in idle_sentence(diagnose(rows))


def test_6_part_of_every_grade_is_no_demand(diagnose: Diagnose) -> None:
    """All rows say by which parts they are graded; doing nothing meets them where nothing is due."""
    rows = errands(8, 0.07)
    for row in rows:
        row["parts"] = {"BOOKS": row["reward"], "WORDS": 1.0}
    said = idle_sentence(diagnose(rows))
    assert "up to 40%: 8 of 20 tasks expect no action (no write). " in said
    assert "where an action is due" in said


def test_6_task_that_passes_without_what_it_expects_is_told_apart(diagnose: Diagnose) -> None:
    """The call that one task expects is not needed: its passes do without it."""
    rows = errands(8, 0.07)
    for row in rows:
        if row["_ng_task_index"] == 3:
            row["expected_actions"] = [{"name": "redirect_parcel", "arguments": {"number": 3, "to": "row 3"}}]
    assert "up to 40%: 7 of 20 tasks expect no action (no write), and 1 more task passes without what it expects. " in idle_sentence(diagnose(rows))


def review_entries(run: Diagnosed) -> list[tuple[str, set[Key]]]:
    return [(entry.level, run.keys(entry)) for entry in run.trust if "review these expected answers" in entry.text]


@pytest.mark.parametrize("is_unanimous", [True, False])
def test_6_unanimous_wrong_answers_are_a_note_to_review(diagnose: Diagnose, is_unanimous: bool) -> None:
    """All repeats of three tasks give one answer, which is not the expected one; in the twin one repeat of each gives another."""
    odd = (2, 5, 9)
    rows = quiz(12, 4, rate=0.8)
    for task, repeat in grid(12, 4):
        if task in odd:
            given = task * 13 + (46 if is_unanimous or repeat else 52)
            rows[task, repeat] = quiz_row(task, repeat, 0.0, str(given), str(task * 13 + 41))
    run = diagnose(rows.values())
    wrong = {(task, repeat) for task, repeat in grid(12, 4) if task in odd}
    assert review_entries(run) == ([("note", wrong)] if is_unanimous else [])
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
    """6 of 80 rows (7.5%) end without a text."""
    run = diagnose(finals(6))
    assert any(entry.level in ("alarm", "warning") and entry.rows == 6 for entry in run.trust), run.said


def test_6_a_few_empty_finals_are_no_alarm(diagnose: Diagnose) -> None:
    run = diagnose(finals(2))
    assert run.alarms == []


def test_6_unexplained_points_are_said_first(diagnose: Diagnose) -> None:
    run = diagnose(desk(12, 4, 0.6).values())
    assert any(entry.level == "warning" and "unexplained" in entry.text for entry in run.trust)


def test_6_few_unexplained_points_are_not(diagnose: Diagnose) -> None:
    """A quarter or less is left: 14 crashed rows, 3 without a reason."""
    rows = []
    for place, key in enumerate(grid(12, 4)):
        if place % 4 == 1 or place in (2, 22):
            rows.append(make_row(*key, 0.0, (), fault="error: the desk was closed"))
        else:
            rows.append(desk_row(*key, 0.0 if place in (4, 16, 28) else 1.0))
    run = diagnose(rows)
    assert run.report.unexplained[0].rows == 3
    assert not any("unexplained" in entry.text for entry in run.trust)


def test_6_spike_at_the_cap_is_said_first(diagnose: Diagnose) -> None:
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        n = 15 if place % 4 == 2 else 3 + (place * 5) % 7
        acts: list[Act] = [("read_notice", {"page": task * 40 + page}, f"Page {page}.") for page in range(n)]
        end = [] if n == 15 else [f"Notice {task}." + " So be it." * (place % 4)]
        rows.append(desk_row(task, repeat, 0.0 if n == 15 else float(place % 4 > 0), [*acts, *end]))
    run = diagnose(rows)
    assert any("15" in entry.text and entry.level in ("alarm", "warning") for entry in run.trust), run.said


def test_6_verifier_doubt_is_said_first(diagnose: Diagnose) -> None:
    """2 of 48 rows are 4%."""
    rows = quiz(12, 4, rate=0.6)
    doubted: set[Key] = {(1, 0), (7, 3)}
    for task, repeat in doubted:
        rows[task, repeat] = quiz_row(task, repeat, 0.0, f"{task * 13 + 41}.00", str(task * 13 + 41))
    run = diagnose(rows.values())
    assert any(entry.query and run.keys(entry) == doubted for entry in run.trust)


def test_6_order_of_trust(diagnose: Diagnose) -> None:
    """Alarms, then warnings, then notes."""
    run = diagnose(crashed(is_all=False))
    order = {"alarm": 0, "warning": 1, "note": 2}
    levels = [order[entry.level] for entry in run.trust]
    assert levels == sorted(levels)
    assert levels[0] == 0


# ---- 7. Verifier doubt needs positive evidence ---------------------------------------------------


def test_7_missing_transcripts_are_no_doubt(diagnose: Diagnose) -> None:
    rows = [make_row(*key, reward, (), seconds=3.5 + sum(key)) for key, reward in rewards(12, 4, 0.6).items()]
    run = diagnose(rows)
    assert "verifier" not in run.said.lower()
    assert "TI" not in {entry.label for entry in run.trust}
    assert run.of_rung("verifier") == []


def test_7_passes_without_a_gold_are_no_doubt(diagnose: Diagnose) -> None:
    """Short answers, some passing and some not, and nothing to compare them with."""
    rows = [
        make_row(*key, reward, [f"hall {(key[0] * 7 + key[1] * 3) % 11}, row {key[0] + key[1]}"])
        for key, reward in rewards(12, 4, 0.6).items()
    ]
    run = diagnose(rows)
    assert "verifier" not in run.said.lower()


# ---- 8. A healthy run gets no run-level alarm ----------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [desk, quiz])
def test_8_healthy_run_has_no_alarm(diagnose: Diagnose, make: Callable[..., dict[Key, Row]], seed: int) -> None:
    rate = (0.9, 0.7, 0.5, 0.3)[seed]
    run = diagnose(make(12, 4, rate, seed).values())
    assert run.alarms == []
    assert {group.label.value for group in run.groups}.isdisjoint({"TI", "IR", "DA"})
    assert not run.report.run_causes or run.report.run_causes[0].cause not in ("TI", "IR", "DA")


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_8_constant_run_has_no_alarm(diagnose: Diagnose, reward: float) -> None:
    run = diagnose([desk_row(*key, reward) for key in grid(12, 4)])
    assert run.alarms == []
    assert run.groups == ()


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

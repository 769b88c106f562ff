"""Verdicts against what was judged: planted faults, and twins that only look like them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from blade.measure import soundness
from blade.model import Cause, Confidence, Evidence, Finding, Level, Suspicion
from tests.builders import Row
from tests.measure.sounded import columns, flag, make_judged, make_soundings, raised, sounded
from tests.traces import did, make_task, make_tool, rollout


def answered(
    task: int, repeat: int, reward: float, answer: str, gold: str | None = None, **fields: Any
) -> Row:
    """A row whose verifier took an answer from it."""
    told = {"expected_answer": gold} if gold is not None else {}
    items = did(f"I think about question {task} for the {repeat}th time and say {answer}.")
    return rollout(items, reward, repeat, task, extracted_answer=answer, **told, **fields)


def worked(task: int, repeat: int, reward: float, *calls: Any, **fields: Any) -> Row:
    return rollout(did(*calls), reward, repeat, task, **fields)


CANCEL = {"name": "cancel_order", "kwargs": {"order": "W1"}}


# ---- The same result judged twice ---------------------------------------------------------------


def test_one_answer_with_two_verdicts_is_a_nondeterministic_verifier() -> None:
    rows = [answered(t, r, float(t < 3 and r == 0), "7") for t in range(6) for r in range(2)]
    found = raised(sounded(rows), "nondeterministic_verifier")
    assert (found.value, found.n) == (0.5, 6)  # three of six tasks have one pair that disagrees
    assert found.level is Level.PROBLEM
    assert "95% interval" in found.text
    assert {one.field for one in found.evidence} == {"extracted_answer"}


def test_one_answer_with_one_verdict_is_none() -> None:
    rows = [answered(t, r, float(t < 3), "7") for t in range(6) for r in range(2)]
    assert flag(sounded(rows), "nondeterministic_verifier") is None


def test_the_same_short_words_of_those_who_changed_different_things_are_not_the_same_result() -> None:
    def row(repeat: int, reward: float, item: str) -> Row:
        return worked(0, repeat, reward, ("cancel_order", f'{{"item": "{item}"}}', "ok"), "Done.")

    twins = [row(0, 1.0, "a"), row(1, 0.0, "b")]
    assert flag(sounded(twins), "nondeterministic_verifier") is None
    assert flag(sounded([row(0, 1.0, "a"), row(1, 0.0, "a")]), "nondeterministic_verifier") is not None


def test_a_short_answer_without_a_verifier_field_is_no_identity() -> None:
    rows = [rollout(did(("look", f'{{"q": {r}}}', "x"), "done"), float(r), r, 0) for r in range(2)]
    assert flag(sounded(rows), "nondeterministic_verifier") is None


def test_the_same_letter_under_another_order_of_options_is_no_identity() -> None:
    rows = [{**answered(0, r, float(r), "A"), "options": ["x", "y"][:: 1 - 2 * r]} for r in range(2)]
    assert flag(sounded(rows), "nondeterministic_verifier") is None


def test_answers_that_differ_in_spaces_are_different_answers() -> None:
    rows = [answered(0, 0, 1.0, "'a  b'"), answered(0, 1, 0.0, "'a b'")]
    assert flag(sounded(rows), "nondeterministic_verifier") is None


def test_a_change_without_an_answer_on_record_is_another_result() -> None:
    done = worked(0, 0, 1.0, ("cancel_order", "{}", "ok"), "Done.")
    open_ended = worked(0, 1, 0.0, ("cancel_order", "{}", None), "Done.")
    refused = worked(0, 2, 0.0, ("cancel_order", "{}", "Error: the order is locked"), "Done.")
    assert flag(sounded([done, open_ended, refused]), "nondeterministic_verifier") is None


def test_rows_that_expect_different_things_are_rightly_judged_differently() -> None:
    rows = [answered(0, r, float(r), "7", str(6 + r)) for r in range(2)]
    sound = sounded(rows)
    assert flag(sound, "nondeterministic_verifier") is None
    assert raised(sound, "conflicting_gold").n == 1


def test_a_verifier_that_failed_on_one_of_two_is_not_called_nondeterministic() -> None:
    rows = [answered(t, r, float(r), "7") for t in range(4) for r in range(2)]
    errors = [None if r else "timed out" for _ in range(4) for r in range(2)]
    sound = sounded(rows, fields={"verifier_error": errors})
    assert flag(sound, "nondeterministic_verifier") is None
    assert raised(sound, "verifier_crashes").value == 0.5


def test_rows_that_infrastructure_spoiled_contradict_nobody() -> None:
    rows = [answered(0, r, float(r), "7") for r in range(2)]
    assert flag(sounded(rows, broken=[0]), "nondeterministic_verifier") is None


# ---- Gold and answer ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("4", "4"), ("$4.00", "4"), ("1,200", "1200"), ("12 km", "12"), ("Paris.", "the paris"), (r"\text{B}", "b")],
)
def test_the_gold_as_answer_with_reward_0_is_flagged(answer: str, gold: str) -> None:
    rows = [answered(t, 0, 0.0 if t == 2 else 1.0, answer, gold) for t in range(4)]
    sound = sounded(rows)
    found = raised(sound, "gold_rejected")
    assert (found.value, found.n, found.level) == (0.25, 4, Level.WARNING)
    assert set(sound.suspects) == {"2"}
    assert sound.suspects["2"][0].cause is Cause.TASK_OR_VERIFIER


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("5", "4"), (".5", "5"), ("1,2", "12"), ("5 km", "5 cm"), ("'Abc'", "'abc'"), ("[1]", "1"), ("a_b", "ab"),
        ("-4", "4"), ("it's", "its"),
    ],
)  # fmt: skip
def test_another_answer_with_reward_0_is_not(answer: str, gold: str) -> None:
    rows = [answered(t, 0, 0.0, answer, gold) for t in range(4)]
    assert flag(sounded(rows), "gold_rejected") is None


def test_gold_rejected_throughout_is_a_problem_of_the_verifier() -> None:
    rows = [answered(t, 0, 0.0, str(t), str(t)) for t in range(6)]
    found = raised(sounded(rows), "gold_rejected")
    assert found.level is Level.PROBLEM
    assert "as such" in found.text


def test_a_field_that_may_echo_the_model_is_no_gold() -> None:
    rows = [{**answered(t, 0, 0.0, str(t)), "answer": str(t)} for t in range(8)]
    assert flag(sounded(rows), "gold_rejected") is None


def test_part_of_a_reward_is_no_rejection() -> None:
    rows = [answered(t, 0, 0.5, str(t), str(t)) for t in range(8)]
    assert flag(sounded(rows), "gold_rejected") is None


def test_the_last_words_of_a_talk_are_no_answer() -> None:
    items = [*did("What is it?"), {"type": "message", "role": "user", "content": "yes?"}, *did("yes")]
    rows = [rollout(items, 0.0, 0, t, expected_answer="yes") for t in range(8)]
    assert flag(sounded(rows), "gold_rejected") is None


def test_the_right_answer_of_one_who_changed_the_wrong_thing_is_no_rejected_gold() -> None:
    def row(task: int, **fields: Any) -> Row:
        calls = did(("update_order", '{"order": "W1"}', "Error: the order is locked"), "Done: W1.")
        return rollout(calls, 0.0, 0, task, extracted_answer="W1", expected_answer="W1", **fields)

    assert flag(sounded([row(t) for t in range(8)]), "gold_rejected") is None
    silent = [answered(t, 0, 0.0, "W1", "W1", expected_actions=[CANCEL]) for t in range(8)]
    assert flag(sounded(silent), "gold_rejected") is None


def test_gold_rejected_as_often_as_not_says_that_more_is_judged() -> None:
    rows = [answered(t, 0, float(t % 2), str(t), str(t)) for t in range(40)]
    sound = sounded(rows)
    found = raised(sound, "gold_rejected")
    assert (found.level, found.value) == (Level.INFO, 0.5)
    assert "may judge more than the answer" in found.text
    assert not sound.suspects


def test_one_spelling_rejected_throughout_is_told_from_the_others() -> None:
    rows = [answered(t, 0, 1.0, str(t), str(t)) for t in range(30)]
    rows += [answered(t, 0, 0.0, f"${t}.00", str(t)) for t in range(30, 60)]
    sound = sounded(rows)
    assert raised(sound, "gold_rejected").level is Level.WARNING
    assert len(sound.suspects) == 30


def test_a_pass_with_another_answer_stands_out_only_among_passes_that_equal_the_gold() -> None:
    right = [answered(t, 0, 1.0, str(t), str(t)) for t in range(9)]
    wrong = answered(9, 0, 1.0, "77", "9")
    found = raised(sounded([*right, wrong]), "wrong_answer_accepted")
    assert (found.value, found.level) == (0.1, Level.INFO)
    judged = [answered(t, 0, 1.0, f"something like {t}", str(t)) for t in range(9)]
    assert flag(sounded([*judged, wrong]), "wrong_answer_accepted") is None


def test_numbers_that_miss_the_gold_narrowly_are_told() -> None:
    rows = [
        answered(0, 0, 0.0, "3.14", "3.1416"), answered(1, 0, 0.0, "1500", "1.5"), answered(2, 0, 0.0, "205", "204"),
    ]  # fmt: skip
    found = raised(sounded(rows), "near_miss_to_gold")
    assert found.level is Level.INFO
    assert "1 by at most 1%, 1 by a factor" in found.text
    assert flag(sounded(rows[2:]), "near_miss_to_gold") is None  # two whole numbers are two answers


def test_one_wrong_answer_in_nearly_all_repeats_is_told() -> None:
    same = [answered(0, r, 0.0, "8", "9") for r in range(4)]
    assert raised(sounded(same), "unanimous_wrong").level is Level.INFO
    assert flag(sounded(same[:3]), "unanimous_wrong") is None
    spread = [answered(0, r, 0.0, str(r), "9") for r in range(4)]
    assert flag(sounded(spread), "unanimous_wrong") is None


# ---- Doing nothing, tools that are not there, tests that were touched ---------------------------

def test_a_pass_without_a_call_where_a_change_is_expected_is_flagged() -> None:
    idle = worked(0, 0, 1.0, "All done.", expected_actions=[CANCEL])
    sound = sounded([idle, worked(1, 0, 1.0, ("cancel_order", "{}", "ok"), "Done.", expected_actions=[CANCEL])])
    assert raised(sound, "do_nothing_passes").n == 2
    assert soundness.points(sound.suspects["0"]) == 3


def test_a_pass_without_a_call_where_nothing_is_expected_is_the_task() -> None:
    rows = [
        worked(0, 0, 1.0, "I may not do that.", expected_actions=[]),
        *(worked(0, r, 1.0, ("transfer_case", "{}", "ok"), "Bye.", expected_actions=[]) for r in (1, 2)),
    ]
    sound = sounded(rows)
    assert flag(sound, "do_nothing_passes") is None
    assert raised(sound, "do_nothing_baseline").value == 1.0


def test_a_question_answered_without_a_search_is_knowledge() -> None:
    rows = [worked(0, 0, 1.0, "Paris"), *(worked(0, r, 1.0, ("search", "{}", "x"), "Paris") for r in (1, 2))]
    assert flag(sounded(rows), "do_nothing_passes") is None


def test_an_expected_tool_that_is_not_declared_makes_a_task_impossible() -> None:
    tools = [make_tool("cancel_order"), make_tool("look")]
    fine = [worked(t, 0, 0.0, "x", tools=tools, expected_actions=[CANCEL]) for t in range(3)]
    bad = worked(3, 0, 0.0, "x", tools=tools, expected_actions=[{"name": "refund_order", "kwargs": {}}])
    sound = sounded([*fine, bad])
    assert raised(sound, "unsatisfiable_tasks").value == 0.25
    assert set(sound.suspects) == {"3"}


def test_names_that_differ_throughout_are_another_way_of_naming() -> None:
    tools = [make_tool("look")]
    rows = [worked(t, 0, 0.0, "x", tools=tools, expected_actions=[CANCEL]) for t in range(3)]
    sound = sounded(rows)
    assert raised(sound, "unsatisfiable_tasks").level is Level.INFO
    assert not sound.suspects


def test_a_tool_under_the_name_of_its_server_is_declared() -> None:
    tools = [make_tool("mcp__shop__cancel_order")]
    rows = [worked(t, 0, 0.0, "x", tools=tools, expected_actions=[CANCEL]) for t in range(3)]
    assert flag(sounded(rows), "unsatisfiable_tasks") is None


def test_without_declared_tools_nothing_is_said_of_them() -> None:
    rows = [worked(t, 0, 0.0, "x", expected_actions=[CANCEL]) for t in range(3)]
    assert flag(sounded(rows), "unsatisfiable_tasks") is None


def test_a_pass_that_touched_its_tests_is_suspect_and_a_failure_is_not() -> None:
    rows = [worked(t, 0, float(t), "x") for t in range(2)]
    found = Finding(
        "f", "run", "reward_hack", "1", 0, "edits test_a.py", 3, Confidence.LIKELY,
        (Evidence("run", "1", 0, step=0, quote="x"),),
    )  # fmt: skip
    sound = sounded(rows, exploits={0: found, 1: found})
    assert raised(sound, "tests_touched").n == 1
    assert set(sound.suspects) == {"1"}


# ---- Verifiers that failed ----------------------------------------------------------------------


def test_a_verifier_that_says_it_failed_is_flagged_and_its_task_suspect() -> None:
    rows = [worked(t, r, 0.0 if t == 1 else 1.0, "x") for t in range(4) for r in range(2)]
    errors = [None, None, "timeout after 60 s", "timeout after 60 s", None, None, None, None]
    sound = sounded(rows, fields={"verifier_error": errors})
    assert raised(sound, "verifier_crashes").value == 0.25
    assert set(sound.suspects) == {"1"}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("verifier_error", [None] * 8), ("verifier_error", ["none"] * 8), ("evaluation_completed", [True] * 8),
        ("test_error", ["AssertionError"] * 8), ("verifier_exit_code", [1] * 8), ("judge_errors_found", [1] * 8),
    ],
)  # fmt: skip
def test_what_a_verifier_says_of_the_model_is_no_failure_of_its_own(name: str, values: list[Any]) -> None:
    rows = [worked(t, r, 0.0, "x") for t in range(4) for r in range(2)]
    assert flag(sounded(rows, fields={name: values}), "verifier_crashes") is None


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [("invalid_judge_response", True, False), ("evaluation_completed", False, True), ("verifier_exit_code", 137, 0)],
)
def test_known_words_for_a_failed_verifier_are_read(name: str, bad: Any, good: Any) -> None:
    rows = [worked(t, 0, 0.0, "x") for t in range(4)]
    assert raised(sounded(rows, fields={name: [bad, good, good, good]}), "verifier_crashes").value == 0.25


# ---- Points and the score without suspects ------------------------------------------------------


def test_the_score_is_told_without_the_suspects_and_with_them_as_passed() -> None:
    rows = [answered(t, 0, float(t < 2), str(t), str(t)) for t in range(3)]
    rows += [answered(3, 0, 0.0, "x", "y")]
    sound = sounded(rows)
    assert soundness.suspect_keys(sound.suspects) == {"2"}
    found = soundness.without_suspects(make_judged(columns(rows)), sound.suspects)
    assert (found.excluded, found.n, found.as_passed) == (2 / 3, 3, 0.75)
    told = raised(sound, "score_without_suspects")
    assert (told.value, told.n) == (2 / 3, 3)
    assert "The score is 50.0%" in told.text
    listed = raised(sound, "suspect_task")
    assert (listed.task, listed.value) == ("2", 3.0)


def test_when_every_task_is_suspect_nothing_is_left() -> None:
    rows = [answered(t, 0, 0.0, str(t), str(t)) for t in range(5)]
    told = raised(sounded(rows), "score_without_suspects")
    assert (told.value, told.n) == (None, 0)


def test_hard_evidence_counts_once_and_soft_evidence_adds_up() -> None:
    def doubt(flag: str, points: int) -> Any:
        return Suspicion("0", flag, points, Cause.TASK_OR_VERIFIER, "", ())

    assert soundness.points((doubt("a", 3), doubt("b", 3))) == 3
    assert soundness.points((doubt("a", 3), doubt("b", 1))) == 4
    assert soundness.points((doubt("a", 1), doubt("b", 1))) == 2


# ---- Fail closed --------------------------------------------------------------------------------


def test_nothing_is_said_of_rows_that_say_nothing() -> None:
    rows = [rollout([], 0.0, 0, t) for t in range(12)]
    assert [one.flag for one in sounded(rows).health] == []


def test_a_reward_that_nobody_judges_raises_no_flag_about_passes() -> None:
    rows = [answered(t, 0, 0.0, str(t), str(t)) for t in range(8)]
    rollouts = columns(rows)
    from msgspec.structs import replace

    judged = replace(make_judged(rollouts), judged=False)
    sound = soundness.flags(judged, make_soundings(rows), rollouts)
    assert [one.flag for one in sound.health] == []


def test_malformed_rows_neither_crash_nor_grow() -> None:
    odd: list[Row] = [
        rollout(did(("look", "not json", None), {"type": "function_call_output", "call_id": "zz", "output": "?"})),
        rollout(did("\ud800 \\boxed{" + "{" * 500), expected_answer=["a", {"b": 1}], extracted_answer={"x": 1}),
        rollout(did("x"), expected_actions=[None, 3, {"name": 5}], expected_outputs="text"),
        {**rollout(did("x")), "responses_create_params": None, "response": {"output": [], "id": 5}},
    ]
    for row in odd:
        assert len(pickle.dumps(soundness.observe(make_task(row)))) < 2000
    long = rollout(did(*(("look", f'{{"n": {n}}}', "word " * 50) for n in range(2500))), expected_answer="ten words long")
    assert len(pickle.dumps(soundness.observe(make_task(long)))) < 4000


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = [answered(t, 0, float(t % 2), str(t), str(t % 3)) for t in range(12)]
    told = [(one.flag, one.task, one.value, one.text) for one in sounded(rows).health]
    rollouts = columns(rows)
    other = soundness.flags(make_judged(rollouts), make_soundings(rows)[::-1], rollouts)
    assert [(one.flag, one.task, one.value, one.text) for one in other.health] == told

"""What the values of verifier fields are taken to mean: declared, known, proposed, and which explain a row."""

from __future__ import annotations

import random
import tomllib
from typing import Any

import pytest

from blade.measure import meanings as read
from blade.measure.draft import draft
from blade.measure.scoring import scoring
from blade.model import Benchmark, Cause, Code, Meaning, Rollouts
from tests.measure.builders import make_rollouts

TEN = {str(task): [float(task < 5)] for task in range(10)}  # ten tasks, the first five pass


def meant(rollouts: Rollouts, *codes: Code) -> list[Meaning]:
    return read.meanings(rollouts, scoring(rollouts, None), Benchmark(codes=codes))


def causes(rollouts: Rollouts, *codes: Code) -> dict[int, Cause | None]:
    """The cause of each row that a code explains."""
    found = read.row_codes(rollouts, scoring(rollouts, None), meant(rollouts, *codes))
    return {row: one.cause for row, one in found.items()}


def by_value(found: list[Meaning], field: str) -> dict[str, tuple[str | None, str]]:
    return {one.value: (one.cause, one.origin) for one in found if one.field == field}


# ---- Known codes --------------------------------------------------------------------------------


def test_exit_137_is_a_kill_and_exit_1_is_nothing_known() -> None:
    run = make_rollouts(TEN, fields={"container_exit_code": [0, 0, 0, 0, 1, 1, 0, 137, 124, 139]})
    found = by_value(meant(run), "container_exit_code")
    assert found == {"137": ("IR", "known"), "124": (None, "known"), "139": (None, "known")}
    assert causes(run) == {7: Cause.INFRASTRUCTURE}


def test_an_evaluation_that_did_not_complete_is_infrastructure() -> None:
    run = make_rollouts(TEN, fields={"evaluation_completed": [True] * 9 + [False]})
    assert causes(run) == {9: Cause.INFRASTRUCTURE}
    assert all(one.value == "false" for one in meant(run) if one.origin == "known")


def test_a_field_that_only_sounds_alike_is_not_known() -> None:
    run = make_rollouts(TEN, fields={"evaluation_completed_at": [True] * 9 + [False]})
    assert causes(run) == {}


@pytest.mark.parametrize(
    ("field", "value", "cause"),
    [
        ("metadata.error_message", "RuntimeError: the model endpoint: Connection refused", "IR"),
        ("error", "Connection refused", "IR"),
        ("failure_kind", "provider_oom_killed", "IR"),
        ("failure_kind", "my_server:transport_timeout", "IR"),
        ("_ng_failure_class", "judge_failed", "IR"),
        ("_ng_failure_class", "judge_invalid", "TI"),
        ("_ng_failure_class", "reference_missing", "DA"),
        ("failure_reason", "gold_execution_error", "TI"),
        ("failure_reason", "expected_action_invalid", "TI"),
        ("failure_reason", "judge_swap_parsing_failed", "TI"),
        ("failure_reason", "no_sql_extracted", "BI"),
        ("failure_reason", "model_output_invalid", "BI"),
        ("error_mode", "malformed_choice", "BI"),
        ("error_mode", "refusal", "BI"),
        ("status", "no_code_block", "BI"),
        ("proof_status", "empty_generation", "BI"),
        ("verdict", "not_attempted", "KG"),
        ("metadata.verifier_error", "socket closed", "IR"),
        ("error", "litellm.RateLimitError: 429 Too Many Requests", "IR"),
        ("category", "The model output could not be parsed as a tool call", "BI"),
    ],
)  # fmt: skip
def test_known_words_that_name_a_cause(field: str, value: str, cause: str) -> None:
    entry = read.known(field, value)
    assert entry is not None
    assert entry.cause == cause


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("metadata.error_message", "Runtime error: ConnectionError: Connection refused"),
        ("error_message", "Runtime Error: Rate limit exceeded (429)"),
        ("failure_reason", "execution_error"),
        ("error_mode", "wrong_answer"),
        ("verdict", "incorrect"),
        ("status", "failed: AssertionError"),
        ("failure_kind", "none"),
        ("category", "The tool was called as expected"),
    ],
)
def test_known_words_that_blame_nothing(field: str, value: str) -> None:
    entry = read.known(field, value)
    assert entry is not None
    assert entry.cause is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("category", "malformed"),
        ("category", "refunds"),
        ("error", "the plan is wrong"),
        ("verifier_error", "none"),
        ("score", "137"),
    ],
)
def test_near_misses_are_not_known(field: str, value: str) -> None:
    assert read.known(field, value) is None


def test_an_answer_that_could_not_be_extracted() -> None:
    answers = ["A", "B", "C", "D", "A", "B", None, None, "C", "D"]
    assert causes(make_rollouts(TEN, fields={"extracted_answer": answers})) == {
        6: Cause.BEHAVIOUR,
        7: Cause.BEHAVIOUR,
    }
    assert causes(make_rollouts(TEN, fields={"extracted_answer": [None] * 10})) == {}


def test_null_is_seen_among_thousands_of_answers() -> None:
    rewards = {str(task): [float(task % 2)] for task in range(1200)}
    answers: list[Any] = [f"answer {task}" for task in range(1200)]
    answers[2] = None
    assert causes(make_rollouts(rewards, fields={"extracted_answer": answers})) == {2: Cause.BEHAVIOUR}


def test_masked_rows_are_named() -> None:
    run = make_rollouts(TEN, masked=[False] * 8 + [True] * 2)
    (one,) = [one for one in meant(run) if one.field == "mask_sample"]
    assert (one.cause, one.n_rollouts, one.n_tasks) == (Cause.INFRASTRUCTURE, 2, 2)


# ---- Which code explains a row ------------------------------------------------------------------


def test_what_excludes_the_others_comes_first_and_passes_are_only_spoiled_by_infrastructure() -> None:
    run = make_rollouts(
        TEN, fields={"error_mode": ["refusal"] * 10, "evaluation_completed": [False] * 8 + [True] * 2}
    )
    assert causes(run) == {row: Cause.INFRASTRUCTURE if row < 8 else Cause.BEHAVIOUR for row in range(10)}
    refused = make_rollouts(TEN, fields={"error_mode": ["refusal"] * 10})
    assert causes(refused) == dict.fromkeys(range(5, 10), Cause.BEHAVIOUR)


def test_a_declared_code_overrides_the_known_one() -> None:
    run = make_rollouts(TEN, fields={"exit_code": [0, 0, 0, 0, 0, 1, 1, 137, 0, 0]})
    told = Code("exit_code", 137, "TI", "the bench wants too much memory")
    assert by_value(meant(run, told), "exit_code") == {"137": ("TI", "blade.toml")}
    assert causes(run, told) == {7: Cause.TASK_OR_VERIFIER}
    assert causes(run, Code("exit_code", 137, "passed", "expected")) == {}
    assert causes(run, Code("exit_code", 1, "BI", "does not build")) == {
        5: Cause.BEHAVIOUR, 6: Cause.BEHAVIOUR, 7: Cause.INFRASTRUCTURE,
    }  # fmt: skip


def test_a_declared_code_of_a_task_field_holds_too() -> None:
    run = make_rollouts(TEN, fields={"label": ["x"] * 9 + ["spoiled"]}, input_fields=["label"])
    assert causes(run, Code("label", "spoiled", "DA", "spoiled by the converter")) == {9: Cause.DATA_ARTIFACT}


def test_proposals_explain_no_row() -> None:
    flags = [False] * 20 + [True] * 20
    run = make_rollouts({str(task): [float(task < 25)] for task in range(40)}, fields={"sandbox_died": flags})
    (one,) = meant(run)
    assert (one.origin, one.value, one.cause, one.n_rollouts, one.n_passed) == (
        "proposed",
        "true",
        Cause.INFRASTRUCTURE,
        20,
        5,
    )
    assert causes(run) == {}


# ---- Proposals ----------------------------------------------------------------------------------


def test_a_field_that_restates_the_reward() -> None:
    passes = [float(task % 3 == 0) for task in range(30)]
    rewards = {str(task): [value] for task, value in enumerate(passes)}
    fields = {
        "resolved": [value == 1 for value in passes],
        "judge_score": [value * 7 for value in passes],
        "grade": ["good" if value else "bad" for value in passes],
        "is_reward": passes,
        "nearly": [value == 1 or task in (1, 2, 4) for task, value in enumerate(passes)],
    }
    found = meant(make_rollouts(rewards, fields=fields))
    assert read.restating(found) == {"resolved", "judge_score", "grade", "is_reward"}


def test_few_outcomes_restate_nothing() -> None:
    run = make_rollouts(
        {"0": [1.0], "1": [0.0], "2": [0.0]}, fields={"flag": [True, False, False], "n": [3, 1, 1]}
    )
    assert read.restating(meant(run)) == set()


def test_a_value_that_goes_with_failing_is_proposed_and_chance_is_not() -> None:
    rng = random.Random(3)
    rewards = {str(task): [float(task % 2)] for task in range(100)}
    fields = {
        "route": ["slow" if not task % 2 and task < 60 else "fast" for task in range(100)],
        "coin": [rng.choice(["heads", "tails"]) for _ in range(100)],
    }
    found = meant(make_rollouts(rewards, fields=fields))
    assert [(one.field, one.value, one.n_rollouts, one.n_passed) for one in found] == [
        ("route", "slow", 30, 0)
    ]
    assert found[0].mode == "goes with failing"


def test_a_field_that_never_changes_within_tasks_describes_them() -> None:
    rewards = {str(task): [float(task % 2 == 0), float(task % 4 == 0)] for task in range(40)}
    hard = {str(task): "hard" if task % 4 else "easy" for task in range(40)}
    assert meant(make_rollouts(rewards, fields={"route": hard})) == []


def test_measurements_ids_and_sentences_are_no_codes() -> None:
    rewards = {str(task): [float(task % 2)] for task in range(60)}
    odd = [task % 2 == 0 and task < 40 for task in range(60)]
    fields = {
        "run_id": ["a" if one else "b" for one in odd],
        "search_calls": [int(one) for one in odd],
        "note": ["it took a very long way round" if one else "short" for one in odd],
        "weight": [2.5 if one else 1.5 for one in odd],
    }
    assert meant(make_rollouts(rewards, fields=fields)) == []


def test_the_order_of_rows_changes_nothing() -> None:
    rows = [(str(task), 0, float(task % 2)) for task in range(40)]
    codes = {task: ["refusal", "zeta", "alpha"][task % 3] for task in range(40)}
    shuffled = random.Random(1).sample(rows, len(rows))
    one, other = (
        meant(make_rollouts(some, fields={"error_mode": [codes[int(key)] for key, _, _ in some]}))
        for some in (rows, shuffled)
    )
    assert one == other


def test_no_rows_and_no_pass_rate() -> None:
    assert meant(make_rollouts({}, fields={})) == []
    unbounded = make_rollouts({"0": [5.0], "1": [-3.0]}, fields={"exit_code": [0, 137]})
    assert causes(unbounded) == {1: Cause.INFRASTRUCTURE}


# ---- The draft ----------------------------------------------------------------------------------


def test_the_draft_holds_known_codes_live_and_proposals_in_comments() -> None:
    rewards = {str(task): [float(task % 2)] for task in range(60)}
    fields = {
        "exit_code": [137 if task % 6 == 0 else 0 for task in range(60)],
        "route": ['sl"ow\x7f' if task % 2 == 0 and task < 40 else "fast" for task in range(60)],
        "resolved": [task % 2 == 1 for task in range(60)],
        "extracted_answer": [None if task == 4 else "x" for task in range(60)],
    }
    run = make_rollouts(rewards, fields=fields)
    text = draft(run, scoring(run, None)).text
    live = tomllib.loads(text)["codes"]
    assert [(code["field"], code["equals"], code["cause"]) for code in live] == [("exit_code", 137, "IR")]
    assert "# resolved: restates the reward (60 rows of 60 tasks; 30 of them pass)" in text
    assert "# extracted_answer = null: no answer could be extracted" in text
    assert "# proposed: confirm it by striking the signs below; 20 rows of 20 tasks; 0 of them pass" in text


def test_a_proposal_is_valid_once_its_signs_are_struck() -> None:
    rewards = {str(task): [float(task % 2)] for task in range(60)}
    fields = {"route": ['sl"ow\\' if task % 2 == 0 and task < 40 else "fast" for task in range(60)]}
    run = make_rollouts(rewards, fields=fields)
    lines = draft(run, scoring(run, None)).text.splitlines()
    start = lines.index("# [[codes]]")
    struck = [line.removeprefix("# ") if at >= start else line for at, line in enumerate(lines)]
    (code,) = tomllib.loads("\n".join(struck))["codes"]
    assert code == {
        "field": "route",
        "equals": 'sl"ow\\',
        "cause": "undetermined",
        "mode": "goes with failing",
    }

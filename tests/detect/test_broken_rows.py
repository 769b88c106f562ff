"""Rows that were broken, cut or stopped: errors, time, tokens, context, turns."""

from __future__ import annotations

import pytest

from blade.detect import context_overflow, infra_error, timeout, truncated, turn_limit
from blade.model import Cause, Confidence
from tests.builders import Row, make_message
from tests.detect.hits import findings, is_lacking, only
from tests.traces import did, make_task, rollout

CUT = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}


def silent(**fields: object) -> Row:
    return rollout([], **fields)


# ---- infra_error --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "field", "quote"),
    [
        (
            {"error": "APIConnectionError: [Errno 54] Connection reset by peer"},
            "error",
            "Connection reset by peer",
        ),
        ({"failure_kind": "provider_unavailable"}, "failure_kind", "provider_unavailable"),
        ({"verifier_error": "judge could not be reached"}, "verifier_error", "judge could not be reached"),
        ({"evaluation_completed": False}, "evaluation_completed", "false"),
        (
            {"response": {"error": {"code": "server_error", "message": "try later"}}},
            "response.error",
            "try later",
        ),
        ({"termination_reason": "infrastructure_error"}, "termination_reason", "infrastructure_error"),
    ],
)
def test_a_row_that_says_so_is_infrastructure_beyond_doubt(fields: Row, field: str, quote: str) -> None:
    found = only(infra_error, make_task(silent(**fields)))
    assert (found.severity, found.cause, found.confidence) == (3, Cause.INFRASTRUCTURE, Confidence.PROVED)
    assert found.evidence[0].field == field
    assert quote in found.evidence[0].quote


@pytest.mark.parametrize(
    "fields",
    [
        {"error": None, "exception_type": "", "failure_kind": "none", "verifier_error": False},
        {"evaluation_completed": True},
        {"error": "prompt is too long: 210000 tokens > 200000 maximum"},
        {"failure_kind": "agent_command_not_allowed"},
        {"error": "AssertionError: expected 3, got 4", "response": {}},
        {"termination_reason": "user_stop"},
    ],
)
def test_what_is_no_error_or_the_models_own_is_no_infrastructure(fields: Row) -> None:
    assert not findings(infra_error, make_task(rollout(did("the answer"), **fields)))


def test_a_refused_connection_is_an_error_and_no_refusal() -> None:
    found = only(infra_error, make_task(silent(error="Connection refused")))
    assert found.severity == 3


def test_a_tool_that_stays_out_of_reach_weighs_more_than_one_that_comes_back() -> None:
    lost = did(("look", "{}", "Error: HTTP 503 from backend"), ("other", "{}", "fine"), "I could not look.")
    back = did(("look", "{}", "Error: HTTP 503 from backend"), ("look", "{}", "fine"), "All good.")
    one, other = only(infra_error, make_task(rollout(lost))), only(infra_error, make_task(rollout(back)))
    assert (one.severity, other.severity) == (2, 1)
    assert one.evidence[0].step == 1
    assert one.evidence[0].quote == "Error: HTTP 503 from backend"
    assert one.confidence is Confidence.LIKELY


@pytest.mark.parametrize(
    "call",
    [
        ("fetch", '{"url":"https://nowhere.test/x"}', "Error: HTTP status 503"),
        ("look", '{"id":"503"}', "Error: order 503 not found"),
        ("look", "{}", "The room 429 is free; 500 guests."),
    ],
)
def test_a_number_or_a_made_up_address_is_no_outage(call: tuple[str, str, str]) -> None:
    assert not findings(infra_error, make_task(rollout(did(call, "done"))))


def test_an_error_in_the_place_of_an_answer_is_found() -> None:
    found = only(infra_error, make_task(rollout(did("Error: 429 Too Many Requests"))))
    assert (found.severity, found.evidence[0].step) == (2, 0)


# ---- timeout ------------------------------------------------------------------------------------


def test_a_command_that_times_out_is_behaviour() -> None:
    task = make_task(rollout(did(("run", '{"command":"sleep 999"}', "Error: command timed out after 30 s"))))
    found = only(timeout, task)
    assert (found.severity, found.cause, found.evidence[0].step) == (2, Cause.BEHAVIOUR, 1)
    assert found.evidence[0].quote == "Error: command timed out after 30 s"


def test_a_command_that_works_later_weighs_little_and_text_about_timeouts_nothing() -> None:
    later = did(("run", "{}", "Error: timed out"), ("run", "{}", "fine"))
    assert only(timeout, make_task(rollout(later))).severity == 1
    about = did(("read", "{}", "The option timeout sets how long to wait."), "The timeout is 30 s.")
    assert not findings(timeout, make_task(rollout(about)))


def test_who_timed_out_decides_the_cause() -> None:
    verifier, fine = silent(eval_timed_out=True), silent(eval_timed_out=False)
    assert only(timeout, make_task(verifier, fine)).cause is Cause.INFRASTRUCTURE
    assert {one.cause for one in findings(timeout, make_task(verifier, verifier))} == {Cause.TASK_OR_VERIFIER}
    assert (
        only(timeout, make_task(silent(error="litellm.Timeout: request timed out"))).cause
        is Cause.INFRASTRUCTURE
    )
    agent = rollout(did("still at it"), failure_kind="agent_timeout")
    assert only(timeout, make_task(agent)).cause is Cause.BEHAVIOUR


def test_a_duration_counts_only_beside_its_limit() -> None:
    assert only(timeout, make_task(rollout(did("x"), duration_s=600.2, timeout_s=600))).severity == 3
    assert not findings(timeout, make_task(rollout(did("x"), duration_s=599.0, timeout_s=600)))
    assert not findings(timeout, make_task(rollout(did("x"), duration_s=600.2)))


# ---- truncated ----------------------------------------------------------------------------------


def test_a_cut_text_is_behaviour_until_the_run_is_full_of_them() -> None:
    task = make_task(rollout(did("The answer is"), response=CUT))
    found = only(truncated, task)
    assert (found.severity, found.cause, found.confidence) == (2, Cause.BEHAVIOUR, Confidence.PROVED)
    assert (found.evidence[0].step, found.evidence[0].quote) == (0, "The answer is")
    assert (found.evidence[1].field, found.evidence[1].quote) == (
        "response.incomplete_details.reason",
        "max_output_tokens",
    )
    assert only(truncated, task, share_truncated=0.11).cause is Cause.INFRASTRUCTURE
    assert only(truncated, make_task(rollout([], response=CUT))).severity == 3


def test_a_cut_item_is_quoted_by_its_text_or_else_as_it_stands() -> None:
    cut = only(truncated, make_task(rollout([{**make_message("The answer is"), "status": "incomplete"}])))
    assert [one.step for one in cut.evidence] == [0]
    silent_cut = only(truncated, make_task(rollout([{**make_message(""), "status": "incomplete"}])))
    assert [one.field for one in silent_cut.evidence] == ["response.output"]


def test_token_use_counts_against_the_limit_of_one_turn_alone() -> None:
    def row(used: int, *items: object) -> Row:
        told = rollout(did(*items), response={"usage": {"input_tokens": 1, "output_tokens": used}})
        told["responses_create_params"]["max_output_tokens"] = 1000
        return told

    assert only(truncated, make_task(row(995, "x"))).confidence is Confidence.LIKELY
    assert not findings(truncated, make_task(row(980, "x")))
    assert not findings(truncated, make_task(row(1500, ("look", "{}", "seen"), "x")))


def test_another_reason_for_being_incomplete_is_no_cut() -> None:
    filtered = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    assert not findings(truncated, make_task(rollout(did("x"), response=filtered)))
    assert not findings(truncated, make_task(rollout(did("x"))))


# ---- context_overflow ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 128000 tokens",
        "ContextWindowExceededError",
        "prompt is too long: 210000 tokens",
        "context_length_exceeded",
    ],
)
def test_an_error_about_the_context_is_an_overflow(text: str) -> None:
    big = did(("read", "{}", "x" * 900), ("look", "{}", "y"))
    found = only(context_overflow, make_task(rollout(big, error=text)))
    assert (found.severity, found.cause, found.confidence) == (3, Cause.BEHAVIOUR, Confidence.PROVED)
    assert (found.evidence[0].step, found.evidence[0].quote) == (3, "y")  # where it ended
    assert (found.evidence[1].field, found.evidence[1].quote) == ("error", text)
    (alone,) = only(context_overflow, make_task(silent(error=text))).evidence
    assert (alone.field, alone.quote) == ("error", text)


def test_a_row_that_stopped_for_its_context_is_quoted_where_it_ended() -> None:
    items = did(("look", "{}", "seen"))
    found = only(context_overflow, make_task(rollout(items, termination_reason="context_window")))
    assert (found.severity, found.evidence[0].quote, found.evidence[1].quote) == (3, "seen", "context_window")
    assert not findings(context_overflow, make_task(rollout(items, termination_reason="user_stop")))


def test_context_in_other_words_is_none() -> None:
    assert not findings(context_overflow, make_task(rollout(did("x"), error="context deadline exceeded")))
    talk = did(("read", "{}", "Keep the context length below the maximum context of the model."), "done")
    assert not findings(context_overflow, make_task(rollout(talk)))


def test_a_full_window_counts_for_one_request_alone() -> None:
    use = {"usage": {"input_tokens": 9700, "output_tokens": 5}}
    assert (
        only(context_overflow, make_task(rollout(did("x"), response=use, context_window=10_000))).severity
        == 2
    )
    assert not findings(context_overflow, make_task(rollout(did("x"), response=use, context_window=20_000)))
    several = did(("look", "{}", "seen"), "x")
    assert not findings(context_overflow, make_task(rollout(several, response=use, context_window=10_000)))
    assert not findings(context_overflow, make_task(rollout(did("x"), response=use)))


# ---- turn_limit ---------------------------------------------------------------------------------


def test_where_rollouts_end_as_soon_as_they_pass_the_limit_says_no_more_than_the_reward() -> None:
    items = did(("look", "{}", "ok"), ("look", "{}", "ok"))
    told = {"turn_cap": 2, "n_at_cap": 101, "n_rollouts": 200, "ends_when_solved": True}
    found = only(turn_limit, make_task(rollout(items)), **told)
    assert (found.severity, found.cause) == (1, Cause.BEHAVIOUR)
    named = only(turn_limit, make_task(rollout(items, termination_reason="max_steps")), **told)
    assert named.severity == 1


def test_the_row_may_name_its_turn_limit() -> None:
    items = did(("look", "{}", "seen"), ("look", "{}", "seen again"))
    found = only(turn_limit, make_task(rollout(items, termination_reason="max_steps")))
    assert (found.severity, found.confidence, found.cause) == (3, Confidence.PROVED, Cause.BEHAVIOUR)
    assert (found.evidence[0].step, found.evidence[0].quote) == (3, "seen again")
    assert found.evidence[1].quote == "max_steps"
    assert not findings(turn_limit, make_task(rollout(items, termination_reason="user_stop")))


def test_a_cap_of_the_run_cuts_those_without_the_last_word() -> None:
    items = did(("look", "{}", "seen"), ("look", "{}", "seen again"))
    found = only(turn_limit, make_task(rollout(items)), turn_cap=2, n_at_cap=40)
    assert (found.severity, found.evidence[0].step) == (2, 3)
    assert "2 turns" in found.summary
    assert not findings(turn_limit, make_task(rollout(items)), turn_cap=3, n_at_cap=40)
    ended = did(("look", "{}", "seen"), "the answer")
    assert not findings(turn_limit, make_task(rollout(ended)), turn_cap=2, n_at_cap=40)


def test_a_limit_that_stops_most_rollouts_is_a_wrong_setting() -> None:
    items = did(("look", "{}", "seen"), ("look", "{}", "seen again"))
    told = rollout(items, termination_reason="max_steps")
    for row in (rollout(items), told):
        most = only(turn_limit, make_task(row), turn_cap=2, n_at_cap=101, n_rollouts=200)
        half = only(turn_limit, make_task(row), turn_cap=2, n_at_cap=100, n_rollouts=200)
        assert (most.cause, half.cause) == (Cause.INFRASTRUCTURE, Cause.BEHAVIOUR)
    ended = did(("look", "{}", "seen"), "the answer")
    assert not findings(turn_limit, make_task(rollout(ended)), turn_cap=2, n_at_cap=200, n_rollouts=200)


def test_a_cut_rollout_whose_last_result_is_empty_is_quoted_where_it_says_something() -> None:
    items = did(("look", '{"a":1}', "seen"), ("look", '{"a":2}', ""))
    assert only(turn_limit, make_task(rollout(items)), turn_cap=2, n_at_cap=9).evidence[0].step == 2


def test_without_steps_there_is_no_turn_to_count() -> None:
    assert is_lacking(turn_limit, make_task(silent())) == "steps"
    for detector in (infra_error, timeout, truncated, context_overflow):
        assert not findings(detector, make_task(silent()))

"""What the model says at the end, or fails to say."""

from __future__ import annotations

import pytest

from blade.detect import (
    asks_user,
    degenerate_text,
    empty_output,
    format_mismatch,
    language_switch,
    overlong_vs_passers,
    refusal,
    right_then_wrong,
)
from blade.model import Cause, Confidence, TaskTraces
from tests.builders import Row, make_call, make_message, make_row
from tests.detect.hits import findings, is_lacking, only
from tests.traces import did, make_task, rollout

NOTHING = make_task(rollout([]))


def said(text: str, reward: float = 0.0, **fields: object) -> Row:
    return rollout(did(text), reward, **fields)


def thought(text: str) -> Row:
    return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": text}]}


# ---- asks_user ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "There are two files.\nWhich one do you want me to change?",
        "I need more. Please provide the order number.",
        "Could you confirm the date?",
    ],
)
def test_a_closing_question_to_nobody(text: str) -> None:
    found = only(asks_user, make_task(said(text)))
    assert (found.severity, found.cause, found.evidence[0].step) == (2, Cause.BEHAVIOUR, 0)
    assert found.evidence[0].quote == text


@pytest.mark.parametrize(
    "text",
    [
        "The answer is 4.",
        "Which one? The first. The answer is 4.",
        "Q: What is the capital of France?",
        "Let me know if you need anything else.",
        "",
    ],
)
def test_an_answer_is_no_question(text: str) -> None:
    assert not findings(asks_user, make_task(said(text)))


def test_an_offer_weighs_little_and_a_user_may_be_asked() -> None:
    assert only(asks_user, make_task(said("Done. Would you like me to explain it to you?"))).severity == 1
    provided = "It is 4. If you meant another one, please provide more details."
    assert only(asks_user, make_task(said(provided))).severity == 1
    question = said("Which one do you want?")
    assert not findings(asks_user, make_task(question), share_user=0.5)
    talk = rollout([make_message("hello", "user"), make_message("Which one do you want?")])
    assert not findings(asks_user, make_task(talk))


def test_where_every_repeat_asks_the_task_may_lack_it() -> None:
    row = said("Please provide the file.")
    assert {one.cause for one in findings(asks_user, make_task(row, row, row))} == {Cause.TASK_OR_VERIFIER}
    assert {one.cause for one in findings(asks_user, make_task(row, row, said("4")))} == {Cause.BEHAVIOUR}
    assert is_lacking(asks_user, NOTHING) == "steps"


# ---- refusal ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot assist with this request.",
        "I won’t participate in this.",
        "I am unable to comply.",
    ],
)
def test_a_text_that_declines(text: str) -> None:
    found = only(refusal, make_task(said(text)))
    assert (found.severity, found.cause, found.evidence[0].step, found.evidence[0].quote) == (
        2,
        Cause.BEHAVIOUR,
        0,
        text,
    )


@pytest.mark.parametrize(
    "text",
    [
        "I can't find the file.",
        "I cannot access the database.",
        "I can't help but notice that 4 is even.",
        "I was unable to complete the booking.",
        "You cannot assist with two hands tied; the answer is 4.",
        "The answer is 4. " * 30 + "I can't help with that.",
    ],
)
def test_a_text_that_only_fails_does_not_decline(text: str) -> None:
    assert not findings(refusal, make_task(said(text)))


def test_filters_and_refusal_parts_say_so_themselves() -> None:
    cut = only(refusal, make_task(rollout([], response={"incomplete_details": {"reason": "content_filter"}})))
    assert (cut.severity, cut.confidence) == (3, Confidence.PROVED)
    assert cut.evidence[0].quote == "content_filter"
    part = {**make_message("x"), "content": [{"type": "refusal", "refusal": "Not this one."}]}
    found = only(refusal, make_task(rollout([part])))
    assert (found.severity, found.evidence[0].step, found.evidence[0].quote) == (3, 0, "Not this one.")


def test_policy_in_a_conversation_weighs_little_and_a_lost_connection_nothing() -> None:
    talk = rollout([make_message("cancel it", "user"), make_message("I cannot help with this.")])
    assert only(refusal, make_task(talk)).severity == 1
    assert not findings(refusal, make_task(rollout([], error="Connection refused")))
    assert not findings(refusal, NOTHING)


# ---- empty_output -------------------------------------------------------------------------------


def test_no_items_is_behaviour_until_the_whole_run_is_silent() -> None:
    task = make_task(rollout([], response={"usage": None}))
    found = only(empty_output, task)
    assert (found.severity, found.cause) == (3, Cause.BEHAVIOUR)
    assert (found.evidence[0].field, found.evidence[0].quote) == ("response.output", "[]")
    assert only(empty_output, task, share_empty=0.95).cause is Cause.INFRASTRUCTURE
    used = make_task(rollout([], response={"usage": {"output_tokens": 50}}))
    assert only(empty_output, used, share_empty=0.95).cause is Cause.BEHAVIOUR
    broken = make_task(rollout([], response={"usage": None}, error="Connection reset"))
    assert only(empty_output, broken).cause is Cause.INFRASTRUCTURE


@pytest.mark.parametrize(
    "fields",
    [{"error": "prompt is too long: 210000 tokens"}, {"context_length_exceeded_error": True}],
)
def test_no_text_for_want_of_room_is_no_infrastructure(fields: Row) -> None:
    assert only(empty_output, make_task(rollout([], **fields))).cause is Cause.BEHAVIOUR
    broken_off = rollout(did(("look", "{}", "seen")), expected_answer="4", **fields)
    assert only(empty_output, make_task(broken_off)).cause is Cause.BEHAVIOUR
    lost = rollout(did(("look", "{}", "seen")), expected_answer="4", error="Connection reset")
    assert only(empty_output, make_task(lost)).cause is Cause.INFRASTRUCTURE


def test_a_rollout_that_breaks_off_where_an_answer_is_due() -> None:
    broken = rollout(did(("look", "{}", "seen")), expected_answer="4")
    found = only(empty_output, make_task(broken))
    assert (found.severity, found.evidence[0].step, found.evidence[0].quote) == (2, 1, "seen")
    thinking = rollout([thought("so it is four")])
    assert only(empty_output, make_task(thinking)).evidence[0].quote == "so it is four"
    empty = rollout([make_call("a"), make_message("  ")], expected_answer="4")
    assert only(empty_output, make_task(empty)).severity == 2


def test_an_environment_may_end_a_rollout_itself() -> None:
    acting = rollout(did(("execute", "{}", "ok")))
    assert not findings(empty_output, make_task(acting))
    submitted = rollout(did(("submit", "{}", "ok")), expected_answer="4")
    assert not findings(empty_output, make_task(submitted))
    capped = rollout(did(("look", "{}", "seen")), expected_answer="4")
    assert not findings(empty_output, make_task(capped), turn_cap=1)
    assert not findings(empty_output, make_task(said("4")))


def test_a_row_without_a_response_still_has_something_to_quote() -> None:
    assert only(empty_output, make_task(make_row(0, 0, 0.0, response=None))).evidence[0].field is not None


# ---- format_mismatch ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        {"parse_failed": True},
        {"extraction_successful": False},
        {"extracted_answer": None},
        {"extracted_answer": "None"},
        {"failure_reason": "no_sql_extracted"},
        {"error_mode": "format_violation"},
        {"status": "no_code_block"},
        {"verifier": {"parse_error": True}},
    ],
)
def test_a_verifier_that_could_not_read_the_text(fields: Row) -> None:
    found = only(
        format_mismatch, make_task(said("It is, I think, seven or so.", expected_answer="4", **fields))
    )
    assert (found.severity, found.cause, found.confidence) == (3, Cause.BEHAVIOUR, Confidence.PROVED)
    assert (found.evidence[0].step, found.evidence[0].quote) == (0, "It is, I think, seven or so.")
    assert found.evidence[1].field is not None


@pytest.mark.parametrize(
    "fields",
    [{"parse_failed": False}, {"extracted_answer": "5"}, {"failure_reason": "none"}, {"status": "fail"}, {}],
)
def test_a_wrong_answer_is_no_matter_of_format(fields: Row) -> None:
    assert not findings(format_mismatch, make_task(said("The answer is 5.", expected_answer="4", **fields)))


def test_the_expected_answer_unread_is_the_verifiers_fault() -> None:
    row = said("So the answer is **4**.", expected_answer="4", extracted_answer=None)
    assert only(format_mismatch, make_task(row)).cause is Cause.TASK_OR_VERIFIER


def test_a_field_that_is_empty_in_passes_too_fires_on_both_so_that_its_base_rate_shows() -> None:
    fails, passes = said("5", extracted_answer=None), said("4", 1.0, extracted_answer=None)
    assert len(findings(format_mismatch, make_task(fails, passes))) == 2
    assert not findings(format_mismatch, make_task(said(" ", parse_failed=True)))
    assert is_lacking(format_mismatch, NOTHING) == "steps"


# ---- right_then_wrong ---------------------------------------------------------------------------


def test_the_right_answer_given_up_for_another() -> None:
    items = [thought("The answer is 42. Wait, let me check."), make_message("\\boxed{41}")]
    found = only(right_then_wrong, make_task(rollout(items, expected_answer="42")))
    assert (found.severity, found.cause, found.evidence[0].step) == (2, Cause.UNRELIABLE_KNOWLEDGE, 1)
    assert found.evidence[0].quote == "\\boxed{41}"
    assert (found.evidence[1].step, "answer is 42" in found.evidence[1].quote) == (0, True)
    within = said("First \\boxed{42}. No: \\boxed{41}", expected_answer=42)
    assert only(right_then_wrong, make_task(within)).evidence[0].step == 0


@pytest.mark.parametrize(
    "items",
    [
        [thought("The answer is 41."), make_message("\\boxed{42}")],
        [thought("There are 42 cases to look at."), make_message("\\boxed{41}")],
        [make_message("\\boxed{41}")],
        [
            thought("The answer is 42."),
            make_message("I do not know, and what I found so far does not settle it. " * 2),
        ],
    ],
)
def test_no_change_of_mind_away_from_the_answer(items: list[Row]) -> None:
    assert not findings(right_then_wrong, make_task(rollout(items, expected_answer="42")))


def test_a_pass_did_not_end_wrong_and_without_gold_nothing_is_right() -> None:
    items = [thought("The answer is 42."), make_message("\\boxed{42.0 exactly}")]
    assert not findings(right_then_wrong, make_task(rollout(items, 1.0, expected_answer="42")))
    assert is_lacking(right_then_wrong, make_task(rollout(items))) == "gold answer"


# ---- degenerate_text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "I will now try it again. " * 80,
        "Working.\n" + "Let me check the file.\n" * 12,
        "abcd" * 400,
        "这是一个测试" * 100,
    ],
)
def test_a_text_that_repeats_itself(text: str) -> None:
    found = only(degenerate_text, make_task(said(text)))
    assert (found.severity, found.cause, found.evidence[0].step) == (3, Cause.BEHAVIOUR, 0)


@pytest.mark.parametrize(
    "text",
    [
        "I will now try it again. " * 10,
        "\n".join(f"{number}. Item number {number} is the {number}th of them." for number in range(60)),
        "0 0 0 1 0 0\n" * 40,
        "}\n" * 40,
        "\n".join(["| a | b |"] * 9),
    ],
)
def test_a_text_with_some_repetition(text: str) -> None:
    assert not findings(degenerate_text, make_task(said(text)))


def test_an_early_repetition_weighs_less_than_a_last_one() -> None:
    items = [thought("over and over again. " * 100), make_message("4")]
    found = only(degenerate_text, make_task(rollout(items)))
    assert (found.severity, found.evidence[0].step) == (2, 0)
    assert is_lacking(degenerate_text, NOTHING) == "steps"


# ---- language_switch ----------------------------------------------------------------------------

CYRILLIC = "Ответ на этот вопрос равен четырём, потому что два плюс два."


def test_a_script_the_task_does_not_use() -> None:
    found = only(language_switch, make_task(said(CYRILLIC)))
    assert (found.severity, found.cause, found.evidence[0].quote) == (2, Cause.BEHAVIOUR, CYRILLIC)
    assert "Cyrillic" in found.summary
    inside = rollout(
        [thought("Let us see. 我们需要先计算这个数字，然后再检查一遍答案是否正确。" * 2), make_message("4")]
    )
    assert (only(language_switch, make_task(inside)).severity) == 1


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        (CYRILLIC, "Сколько будет два плюс два?"),
        (CYRILLIC, "Answer in Russian."),
        (CYRILLIC, "Translate this sentence."),
        ("With α, β, γ, δ and θ we get α + β = γ, and so the answer is four. " * 5, "Solve it."),
        ("The word да means yes.", "What is yes?"),
        ("Cela coûte très cher à l’été.", "How much?"),
    ],
)
def test_a_script_that_was_asked_for_or_is_rare(text: str, prompt: str) -> None:
    assert not findings(language_switch, make_task(said(text, prompt=prompt)))


def test_a_tool_may_bring_a_script_in() -> None:
    items = did(("look", "{}", "Москва"), CYRILLIC)
    assert not findings(language_switch, make_task(rollout(items)))
    assert is_lacking(language_switch, NOTHING) == "steps"


# ---- overlong_vs_passers ------------------------------------------------------------------------


def lengths(*passing: int, failing: int) -> TaskTraces:
    rows = [said("x" * length, 1.0, response={"usage": None}) for length in passing]
    return make_task(*rows, said("y" * failing, response={"usage": None}))


def test_longer_than_all_that_pass_is_a_weak_sign() -> None:
    found = only(overlong_vs_passers, lengths(300, 310, 320, 330, 340, failing=1000))
    assert (found.severity, found.repeat, found.evidence[0].step) == (1, 5, 0)
    assert "1,000 characters" in found.summary


def test_tokens_count_where_all_rows_tell_them() -> None:
    rows = [said("x", 1.0, response={"usage": {"output_tokens": 300 + at}}) for at in range(5)]
    task = make_task(*rows, said("x", response={"usage": {"output_tokens": 900}}))
    assert "900 output tokens" in only(overlong_vs_passers, task).summary


def test_little_is_no_excess_and_few_passes_no_measure() -> None:
    assert not findings(overlong_vs_passers, lengths(300, 310, 320, 330, 340, failing=345))
    assert not findings(overlong_vs_passers, lengths(10, 10, 11, 11, 12, failing=50))
    assert not findings(overlong_vs_passers, lengths(300, 310, failing=1000))
    assert is_lacking(overlong_vs_passers, make_task(said("x"))) == "passes"

"""One root cause per failed task: data, infrastructure, task, then the model; every lost point booked once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blade import attribute
from blade.attribute.grounds import Ground
from blade.attribute.tasks import Row, decide
from blade.model import (
    Behaviour,
    Cause,
    Confidence,
    Evidence,
    Finding,
    Found,
    Health,
    Judged,
    Level,
    Meaning,
    Mechanism,
    Rule,
    Suspicion,
)
from tests.traces import did, make_task, rollout

QUOTE = (Evidence("run", "0", 0, step=1, quote="it"),)


def ground(name: str = "loop", cause: Cause = Cause.BEHAVIOUR, weight: float = 0.7, **changed: Any) -> Ground:
    usual = {"kind": "cause", "procedural": cause is Cause.BEHAVIOUR, "detail": ""}
    told = {**usual, **changed}
    return Ground(
        name, cause, name, told["kind"], weight, f"{name} happened", 1, QUOTE, told["procedural"], ""
    )


def row(repeat: int, passed: bool, *grounds: Ground, content: str = "") -> Row:
    return Row(repeat, repeat, passed, 0.0 if passed else 1.0, list(grounds), content)


def test_a_procedural_behaviour_that_passes_lack_is_behaviour() -> None:
    told = decide([row(0, False, ground()), row(1, False, ground()), row(2, True)], None)
    assert (told.cause, told.mode) == (Cause.BEHAVIOUR, "loop")
    assert told.confidence >= 0.8
    assert told.grounds[0].startswith("2 of 2 failing repeats show it (loop); in repeat 0: ")


def test_a_behaviour_as_common_among_passes_explains_nothing() -> None:
    told = decide([row(0, False, ground()), row(1, True, ground()), row(2, True)], None)
    assert (told.cause, told.mode) == (Cause.UNRELIABLE_KNOWLEDGE, "varies between repeats")


def test_content_is_unreliable_where_repeats_pass_and_a_gap_where_none_does() -> None:
    wrong = ground("wrong_arg_field", Cause.KNOWLEDGE_GAP)
    assert decide([row(0, False, wrong), row(1, True)], None).cause is Cause.UNRELIABLE_KNOWLEDGE
    assert decide([row(0, False, wrong), row(1, False, wrong)], 0.8).cause is Cause.KNOWLEDGE_GAP


def test_infrastructure_comes_before_the_model() -> None:
    outage = ground("infra_error", Cause.INFRASTRUCTURE, 0.9, kind="row says so")
    told = decide([row(0, False, outage, ground()), row(1, False, outage), row(2, False, ground())], 0.8)
    assert (told.cause, told.mode) == (Cause.INFRASTRUCTURE, "infra_error")
    assert told.modes == {
        0: (Cause.INFRASTRUCTURE, "infra_error"),
        1: (Cause.INFRASTRUCTURE, "infra_error"),
        2: (Cause.BEHAVIOUR, "loop"),
    }


def test_one_row_of_infrastructure_among_many_failures_is_not_the_tasks_cause() -> None:
    outage = ground("infra_error", Cause.INFRASTRUCTURE, 0.9, kind="row says so")
    rows = [row(0, False, outage), *(row(n, False, ground()) for n in range(1, 4))]
    told = decide(rows, 0.8)
    assert told.cause is Cause.BEHAVIOUR
    assert told.modes[0] == (Cause.INFRASTRUCTURE, "infra_error")


def test_the_same_wrong_result_every_time_is_a_knowledge_gap() -> None:
    told = decide([row(n, False, content="answer 7") for n in range(3)], 0.7)
    assert (told.cause, told.mode) == (Cause.KNOWLEDGE_GAP, "same wrong result")


def test_different_wrong_results_are_left_open_when_few_repeats_cannot_tell() -> None:
    rows = [row(n, False, content=f"answer {n}") for n in range(3)]
    assert decide(rows, 0.9).cause is Cause.KNOWLEDGE_GAP
    assert decide(rows, 0.3).cause is Cause.UNRELIABLE_KNOWLEDGE
    assert decide(rows, None).cause is Cause.UNDETERMINED


def test_one_failing_repeat_without_a_finding_is_undetermined() -> None:
    told = decide([row(0, False, content="answer 7")], 0.4)
    assert told.cause is Cause.UNDETERMINED
    assert told.confidence < 0.5


# ---- the whole stage ---------------------------------------------------------------------------

RULES = {
    name: Rule(name, "B00", "rule", cause, "", cause is Cause.BEHAVIOUR, (), "prompt", "Fix {detail}")
    for name, cause in (("loop", Cause.BEHAVIOUR), ("infra_error", Cause.INFRASTRUCTURE))
}


def judged_of(outcomes: Sequence[Sequence[float]]) -> Judged:
    task = np.concatenate([np.full(len(repeats), code) for code, repeats in enumerate(outcomes)]).astype(int)
    score = np.array([value for repeats in outcomes for value in repeats], float)
    repeat = np.concatenate([np.arange(len(repeats)) for repeats in outcomes])
    keys = tuple(str(code) for code in range(len(outcomes)))
    broken = np.zeros(score.size, bool)
    return Judged("run", keys, np.arange(score.size), task, repeat, score >= 1, score, True, broken)


def found(judged: Judged, position: int, detector: str, severity: int = 3) -> Found:
    task, repeat = str(judged.task[position]), int(judged.repeat[position])
    quote = (Evidence("run", task, repeat, step=0, quote="it"),)
    finding = Finding(
        f"{detector}:{position}", "run", detector, task, repeat, f"{detector} seen", severity,
        Confidence.PROVED, quote, RULES[detector].cause,
    )  # fmt: skip
    return Found(finding, "the_tool", position)


def behaviour(detector: str, standing: str = "cause") -> Behaviour:
    return Behaviour("run", detector, 3, 3, 3, 5, 0, 5, 9.0, 2.0, 40.0, 0.01, 0.02, standing)


def quote_row(position: int) -> tuple[Evidence, ...]:
    return (Evidence("run", "0", 0, field="reward", quote="0"),)


def attributed(
    judged: Judged,
    hits: Sequence[Found],
    standing: str = "cause",
    health: Sequence[Health] = (),
    **known: Any,
) -> attribute.Attributed:
    codes = known.get("codes", {})
    broken = attribute.broken_rows(judged, hits, codes)
    held = attribute.known_of(
        judged, hits, codes, known.get("mechanisms", ()), [behaviour(name, standing) for name in RULES], RULES,
        known.get("suspects", ()), known.get("checks", {}),
    )  # fmt: skip
    return attribute.attribute(
        replace(judged, broken=broken), held, known.get("contents", {}), {}, health, quote_row
    )


def test_losses_add_up_and_are_apart_by_cause() -> None:
    judged = judged_of([[0, 1], [0, 0], [1, 1]])
    told = attributed(
        judged, [found(judged, 0, "loop"), found(judged, 2, "infra_error"), found(judged, 3, "infra_error")]
    )
    assert {(loss.cause, loss.mode): round(loss.lost, 6) for loss in told.losses} == {
        (Cause.INFRASTRUCTURE, "infra_error"): round(1 / 3, 6),
        (Cause.BEHAVIOUR, "loop"): round(1 / 6, 6),
    }
    assert [one.cause for one in told.attributions] == [Cause.BEHAVIOUR, Cause.INFRASTRUCTURE]
    assert all(one.evidence for one in told.attributions)


def test_a_style_note_is_no_cause() -> None:
    judged = judged_of([[0, 1]])
    told = attributed(judged, [found(judged, 0, "loop")], standing="style")
    assert told.attributions[0].mode == "varies between repeats"


def test_infrastructure_in_many_rows_is_a_cause_of_the_run_with_the_score_without_it() -> None:
    judged = judged_of([[0, 1], [0, 0], [1, 1]])
    told = attributed(judged, [found(judged, at, "infra_error") for at in (0, 2, 3)])
    cause = told.run_causes[0]
    assert (cause.cause, cause.n_rollouts, cause.score_without, cause.n_without) == (
        Cause.INFRASTRUCTURE,
        3,
        1.0,
        2,
    )
    assert cause.lost == pytest.approx(0.5)
    assert told.clean.value == 1.0
    assert told.clean.n == 2


def test_nothing_left_is_null_with_no_tasks() -> None:
    judged = judged_of([[0, 0], [0, 0]])
    told = attributed(judged, [found(judged, at, "infra_error") for at in range(4)])
    assert (told.run_causes[0].score_without, told.run_causes[0].n_without) == (None, 0)
    assert (told.clean.value, told.clean.n) == (None, 0)


def test_a_passing_row_that_infrastructure_spoiled_is_not_in_the_clean_score() -> None:
    judged = judged_of([[0, 1], [1, 1]])
    told = attributed(judged, [found(judged, 1, "infra_error")])
    assert told.clean.value == pytest.approx(0.5)


def test_a_suspect_task_is_its_own_cause_and_leaves_the_clean_score() -> None:
    judged = judged_of([[0, 0], [1, 1]])
    against = Suspicion("0", "gold_rejected", 3, Cause.TASK_OR_VERIFIER, "the gold answer scores 0", QUOTE)
    told = attributed(judged, [], suspects=[against])
    assert (told.attributions[0].cause, told.attributions[0].mode) == (
        Cause.TASK_OR_VERIFIER,
        "gold_rejected",
    )
    assert told.clean.value == 1.0
    few = Suspicion("0", "review", 1, Cause.TASK_OR_VERIFIER, "odd", QUOTE)
    assert attributed(judged, [], suspects=[few]).attributions[0].cause is not Cause.TASK_OR_VERIFIER


def test_a_known_code_of_the_verifier_is_a_cause() -> None:
    judged = judged_of([[0, 1]])
    meaning = Meaning("run", "exit_code", "137", Cause.INFRASTRUCTURE, "killed for memory", "known", 1, 0, 1)
    told = attributed(judged, [], codes={0: meaning})
    assert (told.attributions[0].cause, told.attributions[0].mode) == (
        Cause.INFRASTRUCTURE,
        "killed for memory",
    )


def test_a_mechanism_covers_rows_that_no_detector_explains() -> None:
    judged = judged_of([[0, 1], [0, 1]])
    mechanism = Mechanism(
        "m1", "run", "never looks", "never_calls(look)", 2, 0.0, 2, 1.0, 0.2, 1.0, 0.01, 0.02, True, "", "mechanism",
        1.0, "look", (("0", 0), ("1", 0)), QUOTE, True,
    )  # fmt: skip
    told = attributed(judged, [], mechanisms=[mechanism])
    assert {loss.mode for loss in told.losses} == {"never_calls(look)"}
    assert told.attributions[0].cause is Cause.UNRELIABLE_KNOWLEDGE
    how_it_reads = attributed(judged, [], mechanisms=[replace(mechanism, explains=False)])
    assert {loss.mode for loss in how_it_reads.losses} == {"varies between repeats"}


def test_flags_that_distort_without_losing_are_causes_of_the_run() -> None:
    judged = judged_of([[1, 1], [1, 0]])
    flag = Health("run", "misaligned_tasks", Level.PROBLEM, "rows hang on the wrong tasks", 0.5, 4)
    told = attributed(judged, [], health=[flag])
    assert [(one.cause, one.mode, one.lost) for one in told.run_causes] == [
        (Cause.DATA_ARTIFACT, "misaligned_tasks", 0.0)
    ]


@settings(deadline=None)  # the first example imports scipy
@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=5), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 39), st.sampled_from(sorted(RULES)), st.integers(1, 3)), max_size=20),
)
def test_every_lost_point_is_booked_exactly_once(
    outcomes: list[list[float]], hits: list[tuple[int, str, int]]
) -> None:
    judged = judged_of(outcomes)
    seen = [found(judged, at, name, severity) for at, name, severity in hits if at < judged.rows.size]
    told = attributed(judged, seen)
    score = float(np.mean([np.mean(repeats) for repeats in outcomes]))
    assert sum(loss.lost for loss in told.losses) == pytest.approx(1 - score, abs=1e-9)
    assert sum(one.lost for one in told.attributions) == pytest.approx(1 - score, abs=1e-9)
    assert {one.task for one in told.attributions} == {
        str(code) for code, repeats in enumerate(outcomes) if min(repeats) < 1
    }


def test_a_row_without_a_usable_reward_is_a_matter_of_data() -> None:
    judged = judged_of([[0, 1], [0, 0]])
    judged = replace(judged, unscored=np.array([True, False, False, False]))
    told = attributed(judged, [], contents={2: "answer 7", 3: "answer 7"})
    assert (told.attributions[0].cause, told.attributions[0].mode) == (
        Cause.DATA_ARTIFACT,
        "no usable reward",
    )
    assert told.modes[2][0] is Cause.KNOWLEDGE_GAP
    assert told.clean.value == 0.0  # task 0 is out with its rewards, task 1 stays


def test_what_is_proven_comes_before_what_is_not() -> None:
    proven = ground("wrong_arg_field", Cause.KNOWLEDGE_GAP, 0.3, kind="cause")
    unproven = ground("loop", Cause.BEHAVIOUR, 0.7, kind="unproven")
    assert decide([row(0, False, unproven, proven)], 0.8).mode == "wrong_arg_field"
    assert decide([row(0, False, unproven)], 0.8).mode == "loop"


def test_a_check_that_was_not_met_names_the_failure_without_claiming_a_cause() -> None:
    judged = judged_of([[0.0]])
    told = attributed(judged, [], checks={0: ("toggle_x", QUOTE[0])})
    assert told.attributions[0].mode == "check not met: toggle_x"
    assert told.attributions[0].cause is Cause.UNDETERMINED
    assert told.attributions[0].evidence == QUOTE


def test_to_change_nothing_is_a_result_where_the_task_is_to_change_something() -> None:
    idle = rollout(did("Good bye"), expected_actions=[{"name": "pay", "kwargs": {}}])
    other = rollout(did("See you"), expected_actions=[{"name": "pay", "kwargs": {}}])
    first, second = (one.content for one in attribute.observe(make_task(idle, other)))
    assert first == second != ""
    said = [one.content for one in attribute.observe(make_task(rollout(did("four")), rollout(did("five"))))]
    assert said[0] != said[1]


# ---- Results of one run beside those of another ----------------------------------------------------


def ends(*items: Any, **fields: Any) -> attribute.contents.Ended:
    """What a rollout of a task that is to change something ended with."""
    fields = {"expected_actions": [{"name": "set_order", "kwargs": {}}], **fields}
    return attribute.observe(make_task(rollout(did(*items), **fields)))[0]


def sent(text: str, **arguments: Any) -> tuple[str, str, str]:
    return "send_message", json.dumps({"customer": "C-7", "text": text, **arguments}), '{"ok": true}'


NOTE = "Hello, your order O-1187 now goes out by express. Kind regards, the desk."


def test_a_message_in_other_words_is_the_same_result_and_another_content() -> None:
    one, other = ends(sent(NOTE), "Done."), ends(sent("We have changed order O-1187 as you asked."), "Done.")
    assert one.result == other.result != 0
    assert one.words != other.words
    assert one.content != other.content  # repeats of one run are held together by every argument
    assert ends(sent("We have changed order O-1188 as you asked."), "Done.").result != one.result
    assert ends(sent(NOTE, customer="C-8"), "Done.").result != one.result


@pytest.mark.parametrize(
    ("value", "is_it"),
    [
        (NOTE, True),
        ("Order O-1187 was updated as you asked (speed: express).", True),
        ("Dear Ann,\n\nwe have looked into it, and it's a well-known fault.\nAll is fine now!", True),
        ("express", False),
        ("no longer needed", False),
        ("Ordered by mistake.", False),
        ("14 Mill Lane, Apartment 2, Upper Heyford, Oxford", False),
        ("The Old Man and the Sea and the Boy", False),  # no sentence: it does not end as one
        ("Ann B. Lee, John C. Fox, Mary D. Poe Jr.", False),
        ("2024-05-21 2024-05-22 2024-05-23 2024-05-24 2024-05-25.", False),
        ("for x in range(10): print(x) or fail.", False),
        ("total = the sum of all prices there are.", False),
        ("rm -r all of the old files here.", False),
        ("select name from users where id is <missing>.", False),
        ("этот заказ был изменён сегодня утром.", True),
        ("我们已经 更改了 您的 订单 并且 通知 了 您。", False),  # no small letters
        ("word " * 150 + "end.", False),  # a work of its own
    ],
)
def test_prose_is_what_reads_as_sentences(value: str, is_it: bool) -> None:
    assert attribute.contents.is_prose(value) is is_it


def test_values_that_are_no_prose_tell_results_apart() -> None:
    made = {json.dumps(value): ends(("set_order", json.dumps({"value": value}), "ok"), "Done.").result
            for value in ("express", "Express", 12.5, "12.50", ["a", "b"], {"city": "Ely"}, None)}  # fmt: skip
    assert len(set(made.values())) == len(made)
    nested = [
        ends(("set_order", json.dumps({"notes": [{"text": text}]}), "ok")) for text in (NOTE, f"Well: {NOTE}")
    ]
    assert nested[0].result == nested[1].result != 0


def test_the_last_words_count_to_the_word_and_not_for_what_was_meant() -> None:
    change = ("set_order", '{"value": "express"}', "ok")
    one, other, silent = ends(change, "Done: it is set."), ends(change, "All set."), ends(change)
    assert one.result == other.result
    assert one.words != other.words
    assert silent.result != one.result  # it broke off
    order = [("set_order", '{"value": 1}', "ok"), ("set_order", '{"value": 2}', "ok")]
    forth, back = ends(*order, "Done."), ends(*order[::-1], "Done.")
    assert forth.result == back.result
    assert forth.words != back.words


def test_who_changed_nothing_is_judged_by_what_was_said() -> None:
    idle, other = ends("It cannot be done."), ends("You may take 4 bags.")
    assert idle.content == other.content
    assert idle.result == other.result == 0
    assert len({idle.words, other.words, 0}) == 3
    failed = ends(("set_order", '{"value": 1}', "Error: no such order"), "It cannot be done.")
    assert failed.result == 0


def test_an_answer_is_what_was_meant_what_was_read_and_what_was_said() -> None:
    told = {"expected_actions": None, "expected_answer": "12"}
    plain, boxed = ends("The answer is 12.", **told), ends("So it is \\boxed{12.0}.", **told)
    assert plain.result == boxed.result != 0
    assert plain.words != boxed.words
    assert plain.read == boxed.read == 0
    one, other = (ends("See above", extracted_answer=value, **told) for value in ("12", "12.0"))
    assert one.result == other.result == plain.result
    assert len({one.read, other.read, 0}) == 3


def test_in_a_conversation_all_that_was_said_counts_to_the_word() -> None:
    def talked(reply: str) -> attribute.contents.Ended:
        heard = {"type": "message", "role": "user", "content": reply}
        return ends("Shall I?", heard, ("set_order", '{"value": 1}', "ok"), "Done.")

    assert talked("Yes.") == talked("Yes.")
    assert talked("Yes.").result == talked("Yes, and I reset it.").result
    assert talked("Yes.").words != talked("Yes, and I reset it.").words


def test_what_nobody_knows_to_be_harmless_counts_as_a_change() -> None:
    run = [ends(("bash", json.dumps({"command": f"python fix.py {n}"}), "ok"), "Done.") for n in (1, 2)]
    assert run[0].result != run[1].result
    told = {"expected_actions": None}
    click = [ends(("click", json.dumps({"x": n}), "ok"), "Done.", **told) for n in (1, 2)]
    assert click[0].result != click[1].result
    assert click[0].words != click[1].words
    asked = {**told, "expected_answer": "4"}
    look = [ends(("search", json.dumps({"query": n}), "found"), "4", **asked) for n in ("one", "two")]
    assert look[0] == look[1]

"""Where failing rollouts went wrong: every rule at its step, the vote, abstention, chronology."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade import events, locate
from blade.align import MODEL_KINDS
from blade.locate.prefixes import Trie, drop, value_drops
from blade.locate.vote import Candidate, admissible, located
from blade.model import Confidence, Evidence, Finding, Located, TaskTraces
from tests.builders import Row, make_call, make_message, make_result
from tests.traces import did, make_episode, make_task, rollout

LOOK = ("get_order", '{"id": "1"}', "order 1")
PRODUCT = ("get_product", '{"id": "7"}', "product 7")
RIGHT = ("update_order", '{"id": "1", "to": "blue"}', "ok")
WRONG = ("update_order", '{"id": "1", "to": "red"}', "ok")
EXPECTED = [{"name": "update_order", "kwargs": {"id": "1", "to": "blue"}}]


def task_of(*played: tuple[list[Any], float], **fields: Any) -> TaskTraces:
    return make_task(*[rollout(did(*calls), reward, **fields) for calls, reward in played])


def only(task: TaskTraces, *found: tuple[int, Finding]) -> Located:
    (told,) = locate.observe(task, found)
    return told


def reasons(one: Located) -> str:
    return " | ".join(blame.reason for blame in one.steps)


def finding(step: int | None, severity: int, repeat: int = 0) -> Finding:
    place = {"step": step, "quote": "q"} if step is not None else {"field": "reward", "quote": "0"}
    evidence = Evidence("run", "0", repeat, **place)
    return Finding(
        "f", "run", "loop", "0", repeat, "goes in circles", severity, Confidence.LIKELY, (evidence,)
    )


# ---- Expected actions --------------------------------------------------------------------------


def test_the_first_write_that_is_not_expected_is_blamed_with_its_field() -> None:
    told = only(task_of(([LOOK, WRONG, PRODUCT, "Done."], 0), expected_actions=EXPECTED))
    assert told.step == 2
    assert 'another to ("red" for "blue")' in reasons(told)
    assert told.evidence[0].quote == '{"id": "1", "to": "red"}'


def test_an_expected_write_is_not_blamed_and_its_repeat_is() -> None:
    told = only(task_of(([LOOK, RIGHT, RIGHT, "Done."], 0), expected_actions=EXPECTED))
    assert told.step == 4
    assert "not among the expected" in reasons(told)


def test_a_missing_action_is_placed_where_passing_repeats_take_it() -> None:
    task = task_of(
        ([LOOK, RIGHT, PRODUCT, "Done."], 1), ([LOOK, PRODUCT, "Done."], 0), expected_actions=EXPECTED
    )
    told = only(task)
    assert told.step == 2
    assert "does not call update_order as expected" in reasons(told)


def test_without_a_passing_repeat_a_missing_action_is_placed_at_the_end() -> None:
    told = only(task_of(([LOOK, PRODUCT, "Done."], 0), expected_actions=EXPECTED))
    assert told.step == 4
    assert "ends without the expected update_order" in reasons(told)


def test_a_rollout_that_does_all_that_is_expected_is_not_blamed_for_it() -> None:
    told = only(task_of(([LOOK, RIGHT, "Done."], 0), expected_actions=EXPECTED))
    assert told.step is None
    assert "expected" not in reasons(told)


def test_a_write_that_failed_and_was_made_good_is_not_the_first() -> None:
    refused = ("update_order", '{"id": "2", "to": "blue"}', "Error: not found")
    told = only(task_of(([refused, RIGHT, WRONG, "Done."], 0), expected_actions=EXPECTED))
    assert told.steps[0].step == 4


# ---- Prefix values -----------------------------------------------------------------------------


def spelled(word: str) -> list[tuple[str, int]]:
    return [(letter, at) for at, letter in enumerate(word)]


RUNS = [("SRETF", True), ("SRETF", True), ("SREF", False), ("SREF", False), ("SEF", False), ("SRETF", False)]


@pytest.mark.parametrize(
    ("word", "values", "place"),
    [
        ("SREF", [0.375, 0.375, 0.429, 0.429, 0.25], 3),
        ("SEF", [0.375, 0.375, 0.333, 0.333], 1),
        ("SRETF", [0.375, 0.375, 0.429, 0.429, 0.6, 0.6], None),
    ],
)
def test_the_value_of_a_beginning_drops_where_the_step_is_missing(
    word: str, values: list[float], place: int | None
) -> None:
    nodes = Trie((spelled(each), passed) for each, passed in RUNS).nodes(spelled(word))
    assert [round(node.value, 3) for node in nodes] == values
    assert drop(nodes) == place


def test_finishing_without_the_test_is_blamed_in_real_rollouts() -> None:
    def played(word: str) -> list[Any]:
        return [(f"tool_{letter}", "{}", "ok") for letter in word[:-1]] + ["Done."]

    task = task_of(*[(played(word), float(passed)) for word, passed in RUNS])
    drops = value_drops(task)
    assert {position: one.step for position, one in drops.items()} == {2: 6, 3: 6, 4: 2}
    assert drops[2].reason == "2 of 5 repeats that begin like this pass, 0 of 2 of those that finish here"
    first = locate.observe(task)[0]
    assert first.step == 6


def test_below_few_rollouts_no_value_drops() -> None:
    task = task_of(([LOOK, RIGHT, "Done."], 1), ([LOOK, PRODUCT, "Done."], 0))
    assert value_drops(task) == {}


# ---- The other rules ---------------------------------------------------------------------------


def test_the_parting_from_the_nearest_pass_is_told_from_both_sides() -> None:
    task = task_of(([LOOK, RIGHT, "Done."], 1), ([LOOK, WRONG, "Done."], 0))
    told = only(task)
    assert told.step == 2
    assert "red" in reasons(told)
    assert "repeat 0, which passes, calls update_order" in reasons(told)


def test_an_error_that_nothing_makes_good_is_blamed_on_its_call() -> None:
    broken = ("book_room", '{"id": "9"}', "Error: no such room")
    told = only(task_of(([LOOK, broken, PRODUCT, "All booked."], 0)))
    assert told.step == 2
    assert "no later call makes up" in reasons(told)


def test_an_error_that_is_made_good_counts_less() -> None:
    broken = ("book_room", '{"id": "9"}', "Error: no such room")
    fixed = ("book_room", '{"id": "8"}', "ok")
    told = only(task_of(([LOOK, broken, fixed, "All booked."], 0)))
    assert "returns the first error" in reasons(told)
    assert "makes up" not in reasons(told)


def test_an_error_that_is_owned_up_to_is_no_silent_one() -> None:
    broken = ("book_room", '{"id": "9"}', "Error: no such room")
    told = only(task_of(([LOOK, broken, "Unfortunately I could not book it."], 0)))
    assert "makes up" not in reasons(told)


def test_a_cut_rollout_is_blamed_where_most_of_its_budget_went() -> None:
    rows = did(LOOK, "x" * 2000, PRODUCT, "and")
    response = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    told = only(make_task(rollout(rows, 0, response=response)))
    assert told.step == 2
    assert "token limit" in reasons(told)


def test_a_rollout_without_an_answer_is_blamed_at_its_last_call() -> None:
    told = only(task_of(([LOOK, PRODUCT], 0)))
    assert told.step == 2
    assert "no answer follows" in reasons(told)
    assert "no answer follows" not in reasons(only(task_of(([LOOK, PRODUCT, "Done."], 0))))


def test_a_severe_finding_votes_and_a_weak_one_does_not() -> None:
    task = task_of(([LOOK, PRODUCT, RIGHT, "Done."], 0))
    told = only(task, (0, finding(2, 3)))
    assert told.step == 2
    assert "loop: goes in circles" in reasons(told)
    assert only(task, (0, finding(2, 1))).step is None
    assert only(task, (0, finding(None, 3))).step is None
    assert only(task, (5, finding(2, 3))).step is None


def test_a_finding_at_a_result_blames_its_call_and_at_a_user_the_message_before() -> None:
    items = [
        make_call("a", "look"), make_call("b", "look"), make_result("a", "1"), make_result("b", "2"),
        make_message("Which one?"), make_message("that one", "user"), make_message("Done."),
    ]  # fmt: skip
    task = make_task(rollout(items, 0))
    assert only(task, (0, finding(2, 3))).step == 0
    assert only(task, (0, finding(5, 3))).step == 4


def test_passing_and_unjudged_rollouts_are_not_located() -> None:
    assert locate.observe(task_of(([LOOK], 1))) == []


# ---- The vote ----------------------------------------------------------------------------------


def long_row() -> Row:
    return rollout(did(*[("look", f'{{"n": {at}}}', "ok") for at in range(20)], "Done."), 0)


def voted(*candidates: Candidate) -> Located:
    return located(make_episode(long_row()), candidates)


def test_rules_that_agree_add_up_and_at_most_three_steps_remain() -> None:
    told = voted(
        Candidate(4, "divergence", "parts"), Candidate(4, "value_drop", "drops"),
        Candidate(10, "expected_action", "differs"), Candidate(20, "first_error", "errs"),
        Candidate(30, "finding_2", "loops"),
    )  # fmt: skip
    assert [blame.step for blame in told.steps] == [4, 10, 30]
    assert sum(blame.weight for blame in told.steps) == pytest.approx(1)
    assert told.steps[0].reason == "drops; parts"


def test_neighbours_are_one_act() -> None:
    told = voted(Candidate(4, "finding_2", "loops"), Candidate(5, "expected_action", "differs"))
    assert [blame.step for blame in told.steps] == [4]
    assert told.step == 4


def test_far_candidates_without_a_majority_are_an_abstention() -> None:
    told = voted(
        Candidate(2, "expected_action", "a"),
        Candidate(20, "unrecovered_error", "b"),
        Candidate(38, "finding_2", "c"),
    )
    assert told.step is None
    assert [blame.step for blame in told.steps] == [2, 20, 38]


def test_near_candidates_need_no_majority_and_far_ones_need_it() -> None:
    near = voted(
        Candidate(2, "expected_action", "a"), Candidate(6, "finding_2", "b"), Candidate(8, "divergence", "c")
    )
    assert near.step == 2
    far = voted(Candidate(2, "finding_3", "a"), Candidate(38, "divergence", "b"))
    assert far.step == 2


def test_no_step_is_blamed_for_what_came_before_it() -> None:
    episode = make_episode(long_row())
    late = Candidate(10, "unrecovered_error", "blames what follows the error", shown_at=5)
    assert admissible(episode, [late]) == []
    assert admissible(episode, [late._replace(step=4)])[0].step == 4


def test_a_lone_message_is_the_step_and_a_long_rollout_without_votes_has_none() -> None:
    assert only(task_of((["42"], 0))).step == 0
    told = only(task_of(([LOOK, RIGHT, "Done."], 0)))
    assert told.step is None
    assert [blame.step for blame in told.steps] == [4]


# ---- Any rollout -------------------------------------------------------------------------------

ITEMS = st.one_of(
    st.builds(make_message, st.sampled_from(["", "Done.", "Sorry, I could not."]), st.sampled_from(["assistant", "user"])),
    st.builds(
        make_call, st.sampled_from("abc"), st.sampled_from(["get_x", "update_x", ""]),
        st.sampled_from(["{}", '{"id": 1}', '{"id": 2}', "{", "[1]", ""]),
    ),
    st.builds(make_result, st.sampled_from("abc"), st.sampled_from(["", "ok", "Error: bad", '{"success": false}'])),
)  # fmt: skip
ACTIONS = st.sampled_from([None, [{"name": "update_x", "arguments": {"id": 1}}], [{"name": "get_x"}], "none"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.lists(ITEMS, max_size=12), st.sampled_from([0.0, 1.0])), min_size=1, max_size=5),
    ACTIONS,
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 14), st.integers(0, 3)), max_size=4),
)
def test_blame_falls_on_steps_of_the_model_before_the_harm(
    played: list[tuple[list[Row], float]], actions: Any, hits: list[tuple[int, int, int]]
) -> None:
    task = make_task(*[rollout(items, reward, expected_actions=actions) for items, reward in played])
    found = [(position, finding(step, severity, position)) for position, step, severity in hits]
    told = locate.observe(task, found)
    by_position = {one.position: one for one in task.episodes}
    assert [one.position for one in told] == [one.position for one in task.episodes if not one.passed]
    for one in told:
        episode = by_position[one.position]
        steps = episode.trace.steps
        assert len(one.steps) <= 3
        assert one.step is None or one.step == one.steps[0].step
        assert not one.steps or sum(blame.weight for blame in one.steps) == pytest.approx(1)
        for blame in one.steps:
            assert steps[blame.step].kind in MODEL_KINDS
        for quote in one.evidence:
            assert str(quote.quote) in events.step_text(steps[quote.step or 0])
        errors = [call.result_step or call.step for call in episode.calls if call.failed]
        for blame in one.steps:
            if "returns the first error" in blame.reason and ";" not in blame.reason:
                assert blame.step <= min(errors)
        severe = [step for position, step, severity in hits if position == one.position and severity >= 2]
        for blame in one.steps:
            if blame.reason == "loop: goes in circles":
                assert any(blame.step <= step for step in severe)

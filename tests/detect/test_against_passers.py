"""What passing rollouts or the expected actions do and a rollout does not, or does otherwise."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from blade.detect import (
    extra_side_effect,
    missing_required_tool,
    no_verification,
    order_violation,
    premature_stop,
    tool_never_used,
    wrong_arg_field,
)
from blade.detect.rule import Hit
from blade.detect.run import detected
from blade.model import Cause, TaskTraces
from tests.builders import Row, make_message
from tests.traces import did, make_facts, make_task, make_tool, rollout

LOOK = ("look", '{"id": 7}', "a lamp")
PAY = ("pay_bill", '{"bill_id": "b1", "amount": 5}', "paid")
END = "Goodbye."


def found(module: ModuleType, task: TaskTraces) -> list[Hit]:
    return [one for one in module.find(task, make_facts()) if one is not None]


def on_row(module: ModuleType, row: int, *rows: Row) -> list[Hit]:
    return [one for one in found(module, make_task(*rows)) if one.episode.position == row]


def failing(*calls: Any, **fields: Any) -> Row:
    return rollout(did(*calls), 0.0, **fields)


def passing(*calls: Any, **fields: Any) -> Row:
    return rollout(did(*calls), 1.0, **fields)


def gold(*actions: tuple[str, dict[str, Any]]) -> list[Row]:
    return [{"name": name, "kwargs": arguments} for name, arguments in actions]


# ---- tool_never_used


def test_no_call_where_passing_rollouts_make_some() -> None:
    tools = [make_tool("look"), make_tool("think")]
    rows = [failing("It is a lamp.", tools=tools), *[passing(LOOK, END, tools=tools)] * 2]
    (one,) = on_row(tool_never_used, 0, *rows)
    assert one.severity == 3
    assert (one.evidence[0].step, one.evidence[0].quote) == (0, "It is a lamp.")
    assert one.detail == "look"
    assert "2 of 2" in one.summary


def test_no_call_is_fine_where_passing_rollouts_need_none() -> None:
    tools = [make_tool("look")]
    rows = [failing("a", tools=tools), passing("b", tools=tools), passing(LOOK, END, tools=tools)]
    assert not on_row(tool_never_used, 0, *rows)


def test_tool_never_used_needs_declared_tools_and_a_pass() -> None:
    name = {"tool_never_used": tool_never_used}
    assert detected(make_task(failing("a"), passing(LOOK)), make_facts(), name).lacking == {
        "tool_never_used": "declared tools"
    }
    alone = make_task(failing("a", tools=[make_tool("look")]))
    assert detected(alone, make_facts(), name).lacking == {"tool_never_used": "passes"}


# ---- missing_required_tool


def test_a_tool_that_all_passing_rollouts_call_is_missed_where_they_call_it() -> None:
    rows = [failing(PAY, END), *[passing(LOOK, PAY, END)] * 3, failing(LOOK, END)]
    first, second = found(missing_required_tool, make_task(*rows))
    assert (first.detail, first.severity, first.cause) == ("look", 2, None)
    assert (first.evidence[0].step, first.evidence[0].quote) == (0, PAY[1])
    assert (second.detail, second.severity) == ("pay_bill", 3)
    assert second.evidence[0].quote == END
    few = found(missing_required_tool, make_task(rows[0], *rows[1:3], rows[4]))
    assert [one.severity for one in few] == [1, 1]  # two may agree by chance


def test_an_expected_action_that_no_rollout_takes_is_a_knowledge_gap() -> None:
    actions = gold(("look", {"id": 7}), ("pay_bill", {"bill_id": "b1"}))
    task = make_task(*[failing(LOOK, END, expected_actions=actions)] * 2)
    one, _ = found(missing_required_tool, task)
    assert (one.detail, one.cause, one.severity) == ("pay_bill", Cause.KNOWLEDGE_GAP, 3)
    assert one.evidence[0].quote == END
    assert one.evidence[1].field == "expected_actions"
    assert '"pay_bill"' in (one.evidence[1].quote or "")


def test_a_tool_that_one_passing_rollout_does_without_is_not_required() -> None:
    rows = [failing(PAY, END), passing(LOOK, PAY, END), passing(PAY, END)]
    assert not on_row(missing_required_tool, 0, *rows)


def test_without_expected_actions_one_pass_requires_nothing() -> None:
    assert not found(missing_required_tool, make_task(failing(PAY, END), passing(LOOK, PAY, END)))


def drop(number: int, told: str = "gone") -> tuple[str, str, str]:
    return ("delete_mail", f'{{"mail_id": {number}}}', told)


DROPPED = gold(*(("delete_mail", {"mail_id": number}) for number in (1, 2, 3)))


def test_an_expected_write_that_is_left_out_is_named_although_its_tool_is_called() -> None:
    some = failing(drop(1), drop(3), END, expected_actions=DROPPED)
    (one,) = on_row(missing_required_tool, 0, some, passing(drop(1), drop(2), drop(3), END))
    assert (one.detail, one.severity, one.cause) == ("delete_mail", 3, None)
    assert "called for 2 of the 3 calls that" in one.summary
    assert "left out after step 2: mail_id 2" in one.summary
    assert (one.evidence[0].step, one.evidence[0].quote) == (4, END)
    assert one.evidence[1].field == "expected_actions"
    always = found(missing_required_tool, make_task(some, some))
    assert [each.cause for each in always] == [Cause.KNOWLEDGE_GAP] * 2


def test_a_write_that_was_tried_or_went_to_another_thing_is_not_left_out() -> None:
    broken = ("delete_mail", '{"mail_id": 2', "Error: no JSON")
    near = ("delete_mail", '{"mail_id": "2?"}', "Error: no such mail")
    for other in (drop(2, "Error: locked"), drop(9), broken, near):
        row = failing(drop(1), other, drop(3), END, expected_actions=DROPPED)
        assert not found(missing_required_tool, make_task(row))
    assert found(wrong_arg_field, make_task(failing(drop(1), drop(9), drop(3), expected_actions=DROPPED)))
    retried = failing(drop(1, "Error: busy"), drop(1), drop(3), END, expected_actions=DROPPED)
    (one,) = found(missing_required_tool, make_task(retried))
    assert "left out after step 4: mail_id 2" in one.summary


def test_what_is_expected_twice_is_asked_once_and_far_too_many_are_not_compared() -> None:
    twice = failing(drop(1), drop(2), drop(3), END, expected_actions=[*DROPPED, *DROPPED])
    assert not found(missing_required_tool, make_task(twice))
    many = gold(*(("delete_mail", {"mail_id": number}) for number in range(40)))
    assert not found(missing_required_tool, make_task(failing(drop(1), END, expected_actions=many)))


def test_only_what_every_caller_leaves_out_is_a_knowledge_gap() -> None:
    rows = [failing(drop(1), drop(last), END, expected_actions=DROPPED) for last in (2, 3)]
    assert [one.cause for one in found(missing_required_tool, make_task(*rows))] == [None, None]


def test_what_a_passing_rollout_leaves_out_too_is_weak() -> None:
    rows = [call(drop(1), drop(3), END, expected_actions=DROPPED) for call in (failing, passing)]
    assert [one.severity for one in found(missing_required_tool, make_task(*rows))] == [1, 1]


def test_missing_required_tool_needs_steps() -> None:
    told = detected(
        make_task(rollout([])), make_facts(), {"missing_required_tool": missing_required_tool}
    ).lacking
    assert told == {"missing_required_tool": "steps"}


# ---- wrong_arg_field


def test_an_expected_write_with_another_value_names_field_and_both_values() -> None:
    actions = gold(("pay_bill", {"bill_id": "b1", "amount": 6}))
    (one,) = found(wrong_arg_field, make_task(failing(PAY, END, expected_actions=actions)))
    assert (one.severity, one.detail, one.cause) == (3, "pay_bill.amount", Cause.KNOWLEDGE_GAP)
    assert "`amount` is 5, expected 6" in one.summary
    assert (one.evidence[0].step, one.evidence[0].quote) == (0, PAY[1])


def test_a_field_that_another_rollout_gets_right_is_unreliable_knowledge() -> None:
    actions = gold(("pay_bill", {"bill_id": "b1", "amount": 5}))
    wrong = ("pay_bill", '{"bill_id": "b1", "amount": 4}', "paid")
    task = make_task(failing(wrong, expected_actions=actions), failing(PAY, expected_actions=actions))
    (one,) = found(wrong_arg_field, task)
    assert one.cause is None
    assert wrong_arg_field.RULE.cause is Cause.UNRELIABLE_KNOWLEDGE


def test_numbers_order_spelling_prose_and_inner_extras_do_not_differ() -> None:
    actions = gold(
        (
            "order_items",
            {"items": [{"id": "a"}, {"id": "b"}], "n": 2, "city": "Bonn", "note": "as the user asked me to"},
        )
    )
    made = '{"items": [{"id": "b", "size": 3}, {"id": "a"}], "n": "2.0", "city": " bonn", "note": "for the user who called us"}'
    assert not found(
        wrong_arg_field, make_task(failing(("order_items", made, "ok"), expected_actions=actions))
    )


def test_lists_tell_only_what_differs() -> None:
    actions = gold(("order_items", {"items": ["a", "b"], "to": "x"}))
    (one,) = found(
        wrong_arg_field,
        make_task(failing(("order_items", '{"items": ["b"], "to": "x"}', "ok"), expected_actions=actions)),
    )
    assert '`items` lacks ["a"]' in one.summary


def test_calls_are_matched_one_to_one_by_what_they_share() -> None:
    actions = gold(("pay_bill", {"bill_id": "b1", "amount": 5}), ("pay_bill", {"bill_id": "b2", "amount": 9}))
    second = ("pay_bill", '{"bill_id": "b2", "amount": 8}', "paid")
    (one,) = found(wrong_arg_field, make_task(failing(second, PAY, expected_actions=actions)))
    assert one.evidence[0].step == 0
    assert "`amount` is 8, expected 9" in one.summary


def test_a_reading_with_other_arguments_is_exploration() -> None:
    actions = gold(("look", {"id": 9}), ("pay_bill", {"bill_id": "b1", "amount": 5}))
    assert not found(wrong_arg_field, make_task(failing(LOOK, PAY, expected_actions=actions)))
    only = gold(("look", {"id": 9}))
    assert [
        one.severity for one in found(wrong_arg_field, make_task(failing(LOOK, expected_actions=only)))
    ] == [2]


def test_what_all_passing_rollouts_write_is_expected() -> None:
    wrong = ("pay_bill", '{"bill_id": "b1", "amount": 4}', "paid")
    rows = [failing(wrong, END), passing(PAY, END), passing(PAY, END)]
    (one,) = found(wrong_arg_field, make_task(*rows))
    assert one.episode.position == 0
    disagreeing = [failing(wrong, END), passing(PAY, END), passing(wrong, END)]
    assert not on_row(wrong_arg_field, 0, *disagreeing)


def test_a_value_that_a_passing_rollout_gives_too_is_right() -> None:
    actions = gold(("pay_bill", {"bill_id": "b1", "amount": 6}))
    task = make_task(failing(PAY, expected_actions=actions), passing(PAY, expected_actions=actions))
    assert {one.episode.position for one in found(wrong_arg_field, task)} == {1}


def test_wrong_arg_field_needs_calls_and_something_to_compare_with() -> None:
    told = detected(make_task(failing("a")), make_facts(), {"wrong_arg_field": wrong_arg_field})
    assert told.lacking == {"wrong_arg_field": "calls"}
    assert not found(wrong_arg_field, make_task(failing(PAY), passing(PAY)))


# ---- extra_side_effect


def test_a_write_that_nothing_asks_for() -> None:
    actions = gold(("pay_bill", {"bill_id": "b1", "amount": 5}))
    cancel = ("cancel_order", '{"order_id": "o9"}', "ok")
    (one,) = found(extra_side_effect, make_task(failing(PAY, cancel, END, expected_actions=actions)))
    assert (one.severity, one.detail) == (3, "cancel_order")
    assert (one.evidence[0].step, one.evidence[0].quote) == (2, '{"order_id": "o9"}')
    assert one.evidence[1].field == "expected_actions"


def test_a_write_that_failed_or_that_a_passing_rollout_makes_is_not_extra() -> None:
    actions = gold(("pay_bill", {"bill_id": "b1", "amount": 5}))
    refused = ("cancel_order", '{"order_id": "o9"}', "Error: not allowed")
    cancel = ("cancel_order", '{"order_id": "o9"}', "ok")
    assert not found(extra_side_effect, make_task(failing(PAY, refused, expected_actions=actions)))
    rows = [failing(PAY, cancel, expected_actions=actions), passing(PAY, cancel, expected_actions=actions)]
    assert not on_row(extra_side_effect, 0, *rows)


def test_what_a_write_acts_on_is_told_by_its_ids() -> None:
    def give(customer: str) -> tuple[str, str, str]:
        return ("update_customer", f'{{"assigned_to_email": "kim@x.example", "customer_id": "{customer}"}}', "ok")

    actions = gold(("update_customer", {"customer_id": "c1", "assigned_to_email": "kim@x.example"}))
    passes = passing(give("c1"), END, expected_actions=actions)
    (one,) = on_row(
        extra_side_effect, 0, failing(give("c1"), give("c2"), END, expected_actions=actions), passes
    )
    assert '"c2"' in one.summary
    again = failing(give("c1"), give("c1"), END, expected_actions=actions)
    assert not on_row(extra_side_effect, 0, again, passes)


def test_without_expected_actions_two_passes_say_what_is_extra() -> None:
    cancel = ("cancel_order", '{"order_id": "o9"}', "ok")
    rows = [failing(PAY, cancel), passing(PAY), passing(PAY)]
    (one,) = found(extra_side_effect, make_task(*rows))
    assert (one.severity, one.episode.position, one.certain) == (2, 0, False)
    assert not found(extra_side_effect, make_task(*rows[:2]))


def test_a_refused_write_is_not_held_against_a_later_one_that_is_right() -> None:
    actions = gold(("pay_bill", {"bill_id": "b1", "amount": 5}))
    refused = ("pay_bill", '{"bill_id": "b1", "amount": 7}', "Error: the amount does not add up")
    assert not found(wrong_arg_field, make_task(failing(refused, PAY, expected_actions=actions)))
    (one,) = found(wrong_arg_field, make_task(failing(refused, expected_actions=actions)))
    assert one.detail == "pay_bill.amount"


def test_extra_side_effect_needs_calls() -> None:
    told = detected(make_task(failing("a")), make_facts(), {"extra_side_effect": extra_side_effect})
    assert told.lacking == {"extra_side_effect": "calls"}


# ---- order_violation


def test_two_tools_in_the_reverse_of_the_usual_order() -> None:
    rows = [failing(PAY, LOOK), *[passing(LOOK, PAY)] * 5]
    (one,) = found(order_violation, make_task(*rows))
    assert (one.severity, one.detail) == (2, "look before pay_bill")
    assert (one.evidence[0].step, one.evidence[0].quote) == (0, PAY[1])
    assert "5 of 5" in one.summary


def test_four_passes_or_a_mixed_order_make_no_order() -> None:
    assert not found(order_violation, make_task(failing(PAY, LOOK), *[passing(LOOK, PAY)] * 4))
    mixed = [passing(LOOK, PAY)] * 5 + [passing(PAY, LOOK)]
    assert not on_row(order_violation, 0, failing(PAY, LOOK), *mixed)


def test_order_violation_needs_passes() -> None:
    told = detected(make_task(failing(PAY, LOOK)), make_facts(), {"order_violation": order_violation})
    assert told.lacking == {"order_violation": "passes"}


# ---- no_verification


def test_no_check_after_the_last_write_where_passing_rollouts_check() -> None:
    edit, test = ("edit_file", '{"path": "a.py"}', "ok"), ("run_tests", "{}", "3 passed")
    rows = [failing(edit, END), passing(edit, test, END), passing(edit, test, ("submit", "{}", "ok"))]
    (one,) = found(no_verification, make_task(*rows))
    assert (one.severity, one.detail) == (2, "run_tests")
    assert (one.evidence[0].step, one.evidence[0].quote) == (2, END)  # where it is handed in unchecked
    assert (one.evidence[1].step, one.evidence[1].quote) == (0, '{"path": "a.py"}')
    (silent,) = found(no_verification, make_task(failing(edit), *rows[1:]))
    assert [each.step for each in silent.evidence] == [0]
    # a check before the last write has a rule of its own: edit_after_last_test
    assert not found(no_verification, make_task(failing(test, edit, END), *rows[1:]))


def test_no_check_is_fine_where_most_passing_rollouts_make_none() -> None:
    edit, test = ("edit_file", '{"path": "a.py"}', "ok"), ("run_tests", "{}", "3 passed")
    rows = [failing(edit), passing(edit, test), passing(edit), passing(edit)]
    assert not on_row(no_verification, 0, *rows)
    assert not found(no_verification, make_task(failing(edit, test), *[passing(edit, test)] * 2))


def test_no_verification_needs_passes() -> None:
    told = detected(make_task(failing(PAY)), make_facts(), {"no_verification": no_verification})
    assert told.lacking == {"no_verification": "passes"}


# ---- premature_stop


def test_half_the_calls_of_the_shortest_pass_and_a_write_left_out() -> None:
    rows = [failing(LOOK, END), *[passing(LOOK, PAY, END)] * 2]
    (one,) = found(premature_stop, make_task(*rows))
    assert (one.severity, one.evidence[0].quote) == (2, END)
    assert "after 1 call; the 2 other passing rollouts of the task make at least 2" in one.summary
    assert one.detail == "2 calls"


def test_few_calls_are_enough_if_nothing_is_left_out_or_the_talk_needed_none() -> None:
    looks = [("look", f'{{"id": {n}}}', "a lamp") for n in range(4)]
    assert not on_row(premature_stop, 0, failing(LOOK, END), *[passing(*looks, END)] * 2)
    talk = [make_message("hi", "user")]
    rows = [rollout([*talk, make_message(END)], 0.0), *[rollout([*talk, *did(*looks)], 1.0)] * 2]
    assert not on_row(premature_stop, 0, *rows)
    assert not on_row(premature_stop, 0, failing(LOOK, END), passing(LOOK, PAY, END), failing(END))


def test_premature_stop_needs_passes() -> None:
    told = detected(make_task(failing(PAY)), make_facts(), {"premature_stop": premature_stop})
    assert told.lacking == {"premature_stop": "passes"}


def test_a_passing_rollout_can_show_what_a_failing_one_can() -> None:
    """Else a rule would look like a cause by its making: with two passes both sides must be open to it."""
    rows = [passing(PAY, END), passing(LOOK, PAY, END), failing(PAY, END)]
    assert {one.episode.position for one in found(missing_required_tool, make_task(*rows))} == {0}

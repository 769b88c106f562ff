"""Quotations in sentences, block quotes and tables: looked up where they are said to stand."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE

from .conftest import Told

CALL = '{"order_id":"O-20048","action":"refund","value":"44.40"}'  # stands in 4/1, step 4
FALSE = "I have asked my manager about this and will call back"


def quotes(told: Told, text: str) -> list[str]:
    return [one.verdict for one in checked(text, told.world) if one.kind == "quote"]


@pytest.mark.parametrize(
    "text",
    [
        f"In task `4/1`, step 4, the call is “{CALL}”.",
        f"At step 4 of task 4/1 it sends “{CALL}” once more.",
        f"“{CALL}” (task 4/1, step 4) is the call that matters.",
        f"Task 4, repeat 1, step 4 sends “{CALL}”.",
        "Task `4/1` sends “{'order_id': 'O-20048', … 'value': '44.40'}” at step 4.",
        'Task `4/1` sends “{"order_id":"O-20048", [the action] "value":"44.40"}” at step 4.',
        f"In steps 3 to 5 of task `4/1` we find “{CALL}”.",
        f"Seen in task `4/1`, step 4:\n\n> {CALL}\n",
        f"Task 4/1 shows it:\n> {CALL}\n> — task 4/1, step 4\n",
        f"| Task | Repeat | Step | Quote |\n|---|---|---|---|\n| 4 | 1 | 4 | {CALL} |\n",
        f"| Rollout | Evidence |\n|---|---|\n| `4/1` | “{CALL}” |\n",
        f"## Task 4\n\nThe agent writes “{CALL}”.",
        f"The agent sends “{CALL}”, which is a refund.",
        "See “Task Outcome Buckets” and “Deep Dives” for task 4/1.",
    ],
)
def test_a_quotation_that_stands_there_is_supported(told: Told, text: str) -> None:
    assert quotes(told, text) == [SUPPORTED]


@pytest.mark.parametrize(
    "text",
    [
        f"In task `4/1`, step 4, the agent says “{FALSE}”.",
        f'Task 4/1 says "{FALSE}" at the end.',
        f"“{FALSE}” (task 4/1) is the reply.",
        f"The agent says “{FALSE}”.",
        f"“{FALSE},” the assistant replies.",
        f"In task 4 the model ends with “{FALSE}”.",
        f"In task `4/1` the agent gives up. It says “{FALSE}”.",
        f"Seen in task `4/1`, step 4:\n\n> {FALSE}\n",
        f"What the agent says:\n\n> {FALSE}\n",
        f"| Task | Quote |\n|---|---|\n| 4 | {FALSE} |\n",
        f"| Rollout | Evidence |\n|---|---|\n| `4/1` | “{FALSE}” |\n",
        # the pieces stand there, but in another order
        'Task `4/1` sends “"value":"44.40" … "order_id":"O-20048"” at step 4.',
    ],
)
def test_a_quotation_that_no_rollout_holds_is_contradicted(told: Told, text: str) -> None:
    assert quotes(told, text) == [CONTRADICTED]


@pytest.mark.parametrize(
    "text",
    [
        f"In task `4/1`, step 5, the call is “{CALL}”.",
        f"“{CALL}” (task 4/0) is the call that matters.",
        f"Seen in task `7/1`:\n\n> {CALL}\n",
        f"| Task | Repeat | Step | Quote |\n|---|---|---|---|\n| 4 | 1 | 6 | {CALL} |\n",
        f"In task 9 the agent writes “{CALL}”.",
    ],
)
def test_a_quotation_from_elsewhere_is_contradicted_with_where_it_stands(told: Told, text: str) -> None:
    (found,) = (one for one in checked(text, told.world) if one.kind == "quote")
    assert (found.verdict, found.expected) == (CONTRADICTED, "it stands in 4/1, step 4")


@pytest.mark.parametrize(
    "text",
    [
        "The failure mode “the agent stops before the last update” covers task `4/1`.",
        f"The agent should have said “{FALSE}” in task `4/1`.",
        f"The agent never says “{FALSE}” in task `4/1`.",
        f"Task `4/1` ends without saying “{FALSE}”.",
        f"## Recommendations\n\n1. For task 4, add “{FALSE}” to the prompt.",
        f"The policy states “{FALSE}”, which task 4 breaks.",
        f"The authors of the benchmark write “{FALSE}”.",
        f"In task `4/1` the agent effectively says “{FALSE}”.",
        f"We call this “{FALSE}”.",
        "The field “answer” and the code “E_LOCKED” are in task `4/1`.",
        "Task `4/1` is “hard”.",
    ],
)
def test_words_in_quotation_marks_that_quote_no_rollout_are_no_claim(told: Told, text: str) -> None:
    assert quotes(told, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Task 4 (“a refund that nobody has asked for”) fails.",
        "Some call it “an agent in love with its own voice”.",
        "> Note that “a curious and unexpected dip” is seen.\n",
    ],
)
def test_a_quotation_of_nobody_is_unverifiable_at_most(told: Told, text: str) -> None:
    assert quotes(told, text) in ([], [UNVERIFIABLE])


def test_what_a_rollout_says_is_no_claim_of_the_report(told: Told) -> None:
    """A block quote from a rollout is looked up, its numbers are the rollout's own."""
    steps = (step for one in told.world.rows.at(told.world.rows.runs[0], "4", 1) for step in one.steps)
    said = next(step for step in steps if step.text and "\n" not in step.text and len(step.text) > 30)
    text = f"Task `4/1`, step {said.index}:\n\n> {said.text} … \n"
    assert {one.kind for one in checked(text, told.world) if one.line > 1} == {"quote"}
    note = "Task `4/1` is hard.\n\n> The model scored 82.0% pass@1 on 24 tasks.\n"
    assert [one.found for one in checked(note, told.world) if one.verdict == CONTRADICTED] == ["82.0%"]


def test_many_quotations_that_stand_nowhere_are_answered(told: Told) -> None:
    text = "".join(f"The agent says “this is what I never said, number {at}”.\n\n" for at in range(2_000))
    assert set(quotes(told, text)) <= {CONTRADICTED, UNVERIFIABLE}


LOCKED = "Error: order O-20023 is locked by the packing line, nothing was changed."  # 2/2, step 9
DONE = "Done: order O-20023 now has exchange green lamp 34."  # 2/2, step 10, and other rollouts of task 2


@pytest.mark.parametrize(
    "text",
    [
        f'Rollout 2/2 does the same: step 9 says "{LOCKED}" and the final message says "{DONE}"',
        f'In 2/2 step 9 returns "{LOCKED}"; the agent answers "{DONE}"',
        f'In 2/2 the tool says "{LOCKED}" (step 9), the reply is "{DONE}"',
        f"In 2/2 “{LOCKED}” at step 9, the agent says “{DONE}”",
        f"The update at step 9 of 2/2 fails and the agent nevertheless says “{DONE}”",
        f"At step 9 of task 2/2 the tool fails, the agent replies “{DONE}”",
        f"In 2/2, step 9 returns an error; then “{DONE}”",
        f"“{DONE}” — after the update at step 9 of task 2/2 had failed.",
        f"The update at step 9 of task `2/2` fails, and the agent ends with:\n\n> {DONE}\n",
        f"In task `2/2` the update at step 9 fails, and the agent ends with:\n\n```\n{DONE}\n```\n",
    ],
)
def test_a_step_is_not_the_place_of_what_is_said_after_it(told: Told, text: str) -> None:
    assert set(quotes(told, text)) == {SUPPORTED}


@pytest.mark.parametrize(
    "text",
    [
        f'In 2/2 step 9 returns "{DONE}"',
        f"In task 2/2, step 9, the agent says “{DONE}”",
        f"In 2/2 the agent says “{DONE}” (step 9).",
        f"Task `2/2` ends with “{DONE}” at step 9.",
        f'In 2/2 step 9 returns "{DONE}" and the agent answers "{LOCKED}"',
        f"Task `2/2`, step 9:\n\n> {DONE}\n",
        f"Task `2/2`, step 9:\n\n```\n{DONE}\n```\n",
    ],
)
def test_the_step_of_a_quotation_is_held_to_and_the_same_rollout_is_told_first(told: Told, text: str) -> None:
    wrong = [one for one in checked(text, told.world) if one.kind == "quote" and one.verdict == CONTRADICTED]
    assert [one.expected for one in wrong] == ["it stands in 2/2, step 10"]


@pytest.mark.parametrize(
    "text",
    [
        f'In 2/2 step 9 returns "{LOCKED}" and the final message says "{FALSE}"',
        f"The update at step 9 of 2/2 fails and the agent says “{CALL}”",
    ],
)
def test_what_is_said_after_a_step_must_stand_in_the_rollout(told: Told, text: str) -> None:
    assert quotes(told, text)[-1] == CONTRADICTED


@pytest.mark.parametrize("place", ["4/1", "99/1"])
def test_a_block_from_another_rollout_is_told_with_where_it_stands(told: Told, place: str) -> None:
    (found,) = (
        one for one in checked(f"Task `{place}`, step 9:\n\n```\n{LOCKED}\n```\n", told.world)
        if one.kind == "quote"
    )  # fmt: skip
    assert (found.verdict, found.expected) == (CONTRADICTED, "it stands in 2/2, step 9")


@pytest.mark.parametrize(
    "text",
    [
        f"Task `8/²`, step 4 says “{CALL}”.",
        f"Task `8/²`, step 4:\n\n```\n{CALL}\n```\n",
        f"| Task | Repeat | Quote |\n|---|---|---|\n| 4 | ² | {CALL} |\n",
    ],
)
def test_a_digit_that_is_no_number_names_no_repeat(told: Told, text: str) -> None:
    assert len(quotes(told, text)) == 1

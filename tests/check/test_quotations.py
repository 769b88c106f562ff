"""Quotations in sentences, block quotes, fences and tables: looked up where they are said to stand."""

from __future__ import annotations

import pytest

from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE

from .conftest import Desk

CALL = '{"order_id":"O-20048","action":"refund","value":"44.40"}'  # stands in 4/1, step 4
LOCKED = "Error: order O-20023 is locked by the packing line, nothing was changed."  # 2/2, step 9
DONE = "Done: order O-20023 now has exchange green lamp 34."  # 2/2, step 10, and other rollouts of task 2
FALSE = "I have asked my manager about this and will call back"
FENCED, BLOCK = "```text\n{}\n```\n", "> {}\n"
WRONG = "the order was never mine to change"


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
        # the citation form
        f"It sends “{CALL}” (4/1#4).",
        f"It sends “{CALL}”<!--blade: 4/1#4--> and stops.",
        "It names “O-20048” (4/1#4) and no other order.",
        f"| Call | Where |\n|---|---|\n| “{CALL}” (4/1#4) | here |\n",
        f"Failing, task `4/1#4`:\n\n```text\n{CALL}\n```\n",
        "The row has the reward “0.0” (4/1#reward).",
        f"In 2/2#9 the tool says “{LOCKED}” and in 2/2#10 the agent says “{DONE}”.",
        f"The update at 2/2#8 fails with “{LOCKED}”.",  # a result goes by the step of its call too
        # a step is not the place of what is said after it
        f"After step 9 of 2/2 the agent says “{DONE}”",
        f"Before 2/2#10 the tool says “{LOCKED}”",
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
        f"The final message claims success (“{DONE}”); task `2/2#9`:\n\n```text\n{LOCKED}\n```\n",
    ],
)
def test_a_quotation_that_stands_there_is_supported(desk: Desk, text: str) -> None:
    assert set(desk.verdicts(text, "quotation")) == {SUPPORTED}


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
        f"It says “{FALSE}” (4/1#4).",
        f"It says “{FALSE}”<!--blade: 4/1#4-->.",
        "It names “O-20049” (4/1#4) and no other order.",
        f"Failing, task `4/1#4`:\n\n```text\n{FALSE}\n```\n",
        # the pieces stand there, but in another order
        'Task `4/1` sends “"value":"44.40" … "order_id":"O-20048"” at step 4.',
    ],
)
def test_a_quotation_that_no_rollout_holds_is_contradicted(desk: Desk, text: str) -> None:
    assert desk.verdicts(text, "quotation") == [CONTRADICTED]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"In task `4/1`, step 5, the call is “{CALL}”.", "4/1, step 4"),
        (f"“{CALL}” (task 4/0) is the call that matters.", "4/1, step 4"),
        (f"Seen in task `7/1`:\n\n> {CALL}\n", "4/1, step 4"),
        (f"| Task | Repeat | Step | Quote |\n|---|---|---|---|\n| 4 | 1 | 6 | {CALL} |\n", "4/1, step 4"),
        (f"In task 9 the agent writes “{CALL}”.", "4/1, step 4"),
        (f"It sends “{CALL}” (4/1#5).", "4/1, step 4"),
        (f"It sends “{CALL}”<!--blade: 4/0#4-->.", "4/1, step 4"),
        (f"Task `4/1#5`:\n\n```text\n{CALL}\n```\n", "4/1, step 4"),
        (f'In 2/2 step 9 returns "{DONE}"', "2/2, step 10"),
        (f"In task 2/2, step 9, the agent says “{DONE}”", "2/2, step 10"),
        (f"In 2/2 the agent says “{DONE}” (step 9).", "2/2, step 10"),
        (f"Task `2/2` ends with “{DONE}” at step 9.", "2/2, step 10"),
        (f'In 2/2 step 9 returns "{DONE}" and the agent answers "{LOCKED}"', "2/2, step 10"),
        (f"Task `2/2`, step 9:\n\n> {DONE}\n", "2/2, step 10"),
        (f"Task `2/2`, step 9:\n\n```\n{DONE}\n```\n", "2/2, step 10"),
        (f"Task `4/1`, step 9:\n\n```\n{LOCKED}\n```\n", "2/2, step 9"),
        (f"Task `99/1`, step 9:\n\n```\n{LOCKED}\n```\n", "2/2, step 9"),
        (f"The update at step 9 of 2/2 fails and the agent says “{CALL}”", "4/1, step 4"),
    ],
)
def test_a_quotation_from_elsewhere_is_contradicted_with_where_it_stands(
    desk: Desk, text: str, place: str
) -> None:
    wrong = [item for item in desk.check(text, "quotation") if item.verdict == CONTRADICTED]
    assert [item.expected for item in wrong] == [f"it stands in {place}"]


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
        "```sh\nblade check report.md --run results\n```\n",
        "```python\nprint('nothing of a rollout at all')\n```\n",
    ],
)
def test_words_in_quotation_marks_that_quote_no_rollout_are_no_claim(desk: Desk, text: str) -> None:
    assert desk.verdicts(text, "quotation") == []


@pytest.mark.parametrize(
    "text",
    [
        "Task 4 (“a refund that nobody has asked for”) fails.",
        "Some call it “an agent in love with its own voice”.",
        "> Note that “a curious and unexpected dip” is seen.\n",
        "See “Task Outcome Buckets” and “Deep Dives” for task 4/1.",
        "Task `8/²`, step 4, (“a refund that nobody has asked for”) fails.",
    ],
)
def test_a_quotation_of_nobody_is_unverifiable_at_most(desk: Desk, text: str) -> None:
    assert desk.verdicts(text, "quotation") in ([], [UNVERIFIABLE])


@pytest.mark.parametrize("form", [FENCED, BLOCK])
@pytest.mark.parametrize(
    "above",
    [
        "- `4/1`, step 4, BI (misread): step 2 lists two lamps; at step 4 the model writes it.",
        "- `4/1` (step 4) writes it",
        "- `4/1` writes it.",
        "- `4`, step 4: it writes.",
        "- `4/0` beside `4/1`: only one of them writes.",
        "### `4/1`, step 4",
        "As seen in `4/1`, it writes",
        # the sentence that names the rollout is far back in its paragraph
        "- `4/1`, step 4, BI: it writes. It goes on. It goes on for long. It never asks. It stops.",
    ],
)
def test_a_block_is_looked_up_where_the_line_above_says(desk: Desk, above: str, form: str) -> None:
    assert desk.verdicts(f"{above}\n\n{form.format(CALL)}", "quotation") == [SUPPORTED]


@pytest.mark.parametrize("form", [FENCED, BLOCK])
@pytest.mark.parametrize(
    "above",
    [
        "- `4/1`, step 5, BI (misread): the model writes it.",
        "- `4/0`, step 4, BI (misread): the model writes it.",
        "- `4/0` writes it.",
        "`99/0`, step 3: it writes",
    ],
)
def test_a_block_from_elsewhere_is_contradicted(desk: Desk, above: str, form: str) -> None:
    (item,) = desk.check(f"{above}\n\n{form.format(CALL)}", "quotation")
    assert (item.verdict, item.expected) == (CONTRADICTED, "it stands in 4/1, step 4")


@pytest.mark.parametrize(
    ("above", "form", "verdicts"),
    [
        ("- `4/1`, step 4, BI: wrong.", FENCED, [CONTRADICTED]),
        ("- `4/1`, step 4, BI: wrong.", "> “{}”\n", [CONTRADICTED]),
        ("- `4/1`, step 4, BI: wrong.", BLOCK, [UNVERIFIABLE]),
        ("- `4/1` goes wrong.", BLOCK, []),
        ("- `4/1`, step 4, goes wrong.", "> Note: {}\n", []),
        ("- `4/1` goes wrong.", FENCED, [UNVERIFIABLE]),
        ("In `4/1` the model should have written:", FENCED, [UNVERIFIABLE]),
        ("Nobody knows where from.", FENCED, [UNVERIFIABLE]),
    ],
)
def test_what_no_rollout_holds_is_false_only_if_it_is_a_quotation(
    desk: Desk, above: str, form: str, verdicts: list[str]
) -> None:
    assert desk.verdicts(f"{above}\n\n{form.format(WRONG)}", "quotation") == verdicts


def test_what_a_rollout_says_is_no_claim_of_the_report(desk: Desk) -> None:
    """A block quote from a rollout is looked up; its numbers are the rollout's own."""
    steps = (step for trace in desk.world.rows.at(desk.world.rows.runs[0], "4", 1) for step in trace.steps)
    step = next(step for step in steps if step.text and "\n" not in step.text and len(step.text) > 30)
    text = f"Task `4/1`, step {step.index}:\n\n> {step.text} … \n"
    assert {item.kind for item in desk.check(text) if item.line > 1} == {"quotation"}
    note = "Task `4/1` is hard.\n\n> The model scored 82.3% pass@1 on these.\n"
    assert [item.printed for item in desk.check(note, "number")] == ["82.3%"]


def test_a_placeholder_is_not_called_wrong(desk: Desk) -> None:
    redacted = LOCKED.replace("O-20023", "[ID:1a2b3c4d]")
    assert desk.verdicts(f"The tool says “{redacted}” (2/2#9).", "quotation") == [SUPPORTED]
    assert desk.verdicts(f"The tool says “{redacted} Twice.” (2/2#9).", "quotation") == [CONTRADICTED]


def test_the_notes_beside_a_run_may_be_quoted(desk: Desk) -> None:
    note = "Every task, tool, rollout and reward of this run is invented."
    assert desk.verdicts(f"A note left beside the run:\n\n```text\n{note}\n```\n", "quotation") == [SUPPORTED]


def test_many_quotations_that_stand_nowhere_are_answered(desk: Desk) -> None:
    text = "".join(f"The agent says “this is what I never said, number {n}”.\n\n" for n in range(2_000))
    assert set(desk.verdicts(text, "quotation")) <= {CONTRADICTED, UNVERIFIABLE}

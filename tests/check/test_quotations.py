"""Quotations in sentences, block quotes, fences and tables: looked up where they are said to stand."""

from __future__ import annotations

import pytest

from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE
from tests.case_tables import cases

from .conftest import Desk

CALL = '{"order_id":"O-20048","action":"refund","value":"44.40"}'  # stands in 4/1, step 4
FENCED, BLOCK = "```text\n{}\n```\n", "> {}\n"


VERDICTS = {  # what may become of the texts of each table
    "a_quotation_that_stands_there_is_supported": [[SUPPORTED] * n for n in range(1, 9)],
    "a_quotation_that_no_rollout_holds_is_contradicted": [[CONTRADICTED]],
    "words_in_quotation_marks_that_quote_no_rollout_are_no_claim": [[]],
    "a_quotation_of_nobody_is_unverifiable_at_most": [[], [UNVERIFIABLE]],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name in VERDICTS for text in cases(__file__, name)])
def test_what_becomes_of_a_quotation(desk: Desk, name: str, text: str) -> None:
    assert desk.verdicts(text, "quotation") in VERDICTS[name]


@pytest.mark.parametrize("form", [FENCED, BLOCK])
@pytest.mark.parametrize(("above", "place"), [
    *((above, "") for above in cases(__file__, "a_block_is_looked_up_where_the_line_above_says_1")),
    *((above, "it stands in 4/1, step 4") for above in cases(__file__, "a_block_from_elsewhere_is_contradicted_1")),
])  # fmt: skip
def test_a_block_is_looked_up_where_the_line_above_says(desk: Desk, above: str, place: str, form: str) -> None:
    (item,) = desk.check(f"{above}\n\n{form.format(CALL)}", "quotation")
    assert (item.verdict, item.expected) == (CONTRADICTED if place else SUPPORTED, place)


@pytest.mark.parametrize(("above", "form", "verdicts"), cases(__file__, "what_no_rollout_holds_is_false_only_if_it_is_a_quotation"))
def test_what_no_rollout_holds_is_false_only_if_it_is_a_quotation(
    desk: Desk, above: str, form: str, verdicts: list[str]
) -> None:
    assert desk.verdicts(above + "\n\n" + form.format("the order was never mine to change"), "quotation") == verdicts


def test_what_a_rollout_says_is_no_claim_of_the_report(desk: Desk) -> None:
    """A block quote from a rollout is looked up; its numbers are the rollout's own."""
    steps = (step for trace in desk.world.rows.at(desk.world.rows.runs[0], "4", 1) for step in trace.steps)
    step = next(step for step in steps if step.text and "\n" not in step.text and len(step.text) > 30)
    text = f"Task `4/1`, step {step.index}:\n\n> {step.text} … \n"
    assert {item.kind for item in desk.check(text) if item.line > 1} == {"quotation"}
    note = "Task `4/1` is hard.\n\n> The model scored 82.3% pass@1 on these.\n"
    assert [item.printed for item in desk.check(note, "number")] == ["82.3%"]


def test_placeholders_and_notes_beside_a_run_are_not_called_wrong_and_many_quotations_are_answered(desk: Desk) -> None:
    redacted = "Error: order [ID:1a2b3c4d] is locked by the packing line, nothing was changed."
    assert desk.verdicts(f"The tool says “{redacted}” (2/2#9).", "quotation") == [SUPPORTED]
    assert desk.verdicts(f"The tool says “{redacted} Twice.” (2/2#9).", "quotation") == [CONTRADICTED]
    note = "Every task, tool, rollout and reward of this run is invented."
    assert desk.verdicts(f"A note left beside the run:\n\n```text\n{note}\n```\n", "quotation") == [SUPPORTED]
    text = "".join(f"The agent says “this is what I never said, number {n}”.\n\n" for n in range(2_000))
    assert set(desk.verdicts(text, "quotation")) <= {CONTRADICTED, UNVERIFIABLE}

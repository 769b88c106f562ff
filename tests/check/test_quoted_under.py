"""A quotation is from the rollout that the line right above it names, whatever else that line says."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE

from .conftest import Told

QUOTE = '{"order_id":"O-20048","action":"refund","value":"44.40"}'  # 4/1, step 4
FENCED, BLOCK = "```text\n{}\n```\n", "> {}\n"


def quoted(told: Told, above: str, form: str, quote: str = QUOTE) -> list[tuple[str, str | None]]:
    found = checked(f"{above}\n\n{form.format(quote)}", told.world)
    return [(one.verdict, one.expected) for one in found if one.kind == "quote"]


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
def test_it_is_looked_up_there(told: Told, above: str, form: str) -> None:
    assert quoted(told, above, form) == [(SUPPORTED, None)]


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
def test_it_is_contradicted_if_it_stands_elsewhere(told: Told, above: str, form: str) -> None:
    assert quoted(told, above, form) == [(CONTRADICTED, "it stands in 4/1, step 4")]


@pytest.mark.parametrize(
    ("form", "verdict"), [(FENCED, CONTRADICTED), ("> “{}”\n", CONTRADICTED), (BLOCK, UNVERIFIABLE)]
)
def test_what_no_rollout_holds_is_false_under_a_step_if_it_is_a_quotation(
    told: Told, form: str, verdict: str
) -> None:
    above = "- `4/1`, step 4, BI: wrong."
    assert quoted(told, above, form, "the order was never mine to change") == [(verdict, None)]


@pytest.mark.parametrize(
    ("above", "form", "told_of"),
    [
        ("- `4/1` goes wrong.", BLOCK, []),
        ("- `4/1`, step 4, goes wrong.", "> Note: {}\n", []),
        ("- `4/1` goes wrong.", FENCED, [(UNVERIFIABLE, None)]),
        ("In `4/1` the model should have written:", FENCED, [(UNVERIFIABLE, None)]),
        ("Nobody knows where from.", FENCED, [(UNVERIFIABLE, None)]),
    ],
)
def test_a_remark_under_such_a_line_is_no_false_quotation(
    told: Told, above: str, form: str, told_of: list[tuple[str, str | None]]
) -> None:
    assert quoted(told, above, form, "the order was never mine to change") == told_of

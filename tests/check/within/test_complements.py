"""What passed and what failed add up to all of it, over neighbouring sentences."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.model import CONTRADICTED


def wrong(text: str) -> list[tuple[str, str | None]]:
    return [(one.found, one.expected) for one in checked(text, None) if one.verdict == CONTRADICTED]


@pytest.mark.parametrize(
    "text",
    [
        "40 of 50 passed (80%). 12 failed.",
        "Overall, 40 of 50 tasks passed and 12 failed.",
        "40 out of 50 rollouts failed; 12 passed.",
        "All 50 rollouts are there; 40 of them passed and 12 failed.",
        "40 of 50 tasks were solved. The other 12 were not solved.",
        "40 of the 50 tasks passed (80.0%).\nThe model is new.\n12 tasks failed.",
    ],
)
def test_parts_that_are_more_than_the_whole_are_found(text: str) -> None:
    assert wrong(text) == [("12", "10")]


@pytest.mark.parametrize(
    "text",
    [
        "All 50 rollouts are there; 40 of them passed and 10 failed.",
        "We read 50 rollouts by hand, 40 of them twice; 12 failed.",
        "40 of 50 passed (80%). 10 failed.",
        "40 of 50 passed. 8 failed. 2 errored.",
        "40 of 50 tasks passed at least once. 30 failed.",
        "40 of 50 tasks passed. 12 rollouts failed.",
        "40 of 50 tasks passed.\n\n12 failed.",
        "40 of 50 tasks passed. 12 failed before the fix.",
        "40 of 50 tasks passed. Of these, 12 failed in one repeat.",
        "`a`: 40 of 50 tasks passed. `b`: 12 failed.",
        "40 of 50 tasks passed. 12 failed in run b.",
        "40 of 50 tasks passed, 38 of 50 passed before.",
    ],
)
def test_other_wholes_and_third_lots_need_not_add_up(text: str) -> None:
    assert wrong(text) == []

"""Amounts that no reader understands are told as not read, also where nothing else of the sentence is."""

from __future__ import annotations

import pytest

from blade.check.unread import unread


@pytest.mark.parametrize(
    "sentence",
    [
        "Most of the lost points, roughly two thirds, come from the agent.",
        "Three of the four tasks in the group were cut off.",
        "The model gave up in nearly half of its tries.",
        "Latency was 4x higher than before.",
        "It calls the tool twice as often.",
    ],
)
def test_a_strong_amount_is_told(sentence: str) -> None:
    assert [one.text for one in unread(f"# Notes\n\n{sentence}\n", [])] == [sentence]


@pytest.mark.parametrize(
    "sentence",
    [
        "Begin with the policy and have it restated.",
        "The agent gives way because the user presses.",
        "All of this is an opinion.",
        "One of the reasons is plain.",
    ],
)
def test_opinion_is_not(sentence: str) -> None:
    assert unread(f"# Notes\n\n{sentence}\n", []) == []

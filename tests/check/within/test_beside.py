"""Verdicts in words and the numbers beside them: each false one has a true twin, and twins that only look false."""

from __future__ import annotations

import pytest

from tests.check.within.said import contradicted, supported

FALSE_AND_TRUE = [
    ("The difference is significant (p = 0.38).", "The difference is significant (p = 0.008)."),
    ("That is a statistically significant gain, p = 0.2.", "That is a statistically significant gain, p = 0.02."),
    ("B improves significantly with a p-value of 0.61.", "B improves significantly with a p-value of 0.01."),
    ("Long answers do better: 31% pass against 46% of the others.", "Long answers do worse: 31% pass against 46% of the others."),
    ("Rollouts with a check are solved more often (41% versus 62%).", "Rollouts with a check are solved more often (62% versus 41%)."),
    ("Hard tasks score lower, 80% of them pass compared with 55% of the easy ones.", "Hard tasks score lower, 55% of them pass compared with 80% of the easy ones."),
]


@pytest.mark.parametrize(("false", "true"), FALSE_AND_TRUE)
def test_a_verdict_that_its_numbers_turn_round_is_told(false: str, true: str) -> None:
    assert contradicted(false)
    assert not contradicted(true)
    assert supported(true)


@pytest.mark.parametrize(
    "text",
    [
        "The difference is not significant (p = 0.38).",
        "It looks like a significant gain, but p = 0.38.",
        "No significant change was found: p = 0.61.",
        "We would call it significant if p = 0.2 were the bar.",
        "It is close to significant (p = 0.07).",
        "At a significance level of 0.05 nothing holds (p = 0.4).",
        "The baseline is worse: it fails 62% of the time against 41%.",
        "Lower is better: 31% of rollouts time out against 46%, and more of them pass.",
        "It does better on hard tasks: 31% is missing against 46% before.",
    ],
)
def test_what_only_looks_false_is_left_alone(text: str) -> None:
    assert not contradicted(text)

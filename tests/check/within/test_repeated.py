"""What a report says twice: the same quantity must be the same, and others by its name may differ."""

from __future__ import annotations

import pytest

from tests.check.within.said import contradicted, supported


def report(
    score: str = "67.0%", low: str = "52.9%", always: int = 9, fires: int = 11, extra: str = ""
) -> str:
    return f"""# help-desk report

## Executive Summary

The agent scored {score} [{low}, 78.6%] pass@1 on the desk (n = 24 tasks).

Of 24 tasks, {always} passed in every repeat, {24 - always - 2} in some and 2 in none.

- `ignored_error` fires on {fires} of 28 failing and 0 of 61 passing rollouts of the desk.

## Aggregate Results

| Measure | Value, 95% interval | n |
| --- | ---: | ---: |
| pass@1 | 67.0% [52.9%, 78.6%] | 24 tasks |
| pass@4 | 90.0% [69.9%, 97.2%] | 20 tasks |

## Buckets

| Bucket | Tasks | Share of 24 |
| --- | ---: | ---: |
| always | 9 | 37.5% |
| sometimes | 13 | 54.2% |
| never | 2 | 8.3% |

## Failures

- `ignored_error` fires on 11 of 28 failing and 0 of 61 passing rollouts of the desk.

{extra}
"""


def test_a_report_that_repeats_itself_truly_is_supported() -> None:
    assert not contradicted(report())
    assert sum(one.kind == "repeated" for one in supported(report())) >= 6


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (report(score="68.5%"), 5),
        (report(low="51.9%"), 15),
        (report(always=10), 22),
        (report(fires=12), 9),
    ],
)
def test_two_values_of_one_quantity_contradict_each_other(changed: str, line: int) -> None:
    wrong = contradicted(changed)
    assert wrong
    assert {one.kind for one in wrong} == {"repeated"}
    assert line in {one.line for one in wrong}
    assert all("line" in one.why for one in wrong)


@pytest.mark.parametrize(
    "extra",
    [
        "Without the errored rows pass@1 is 69.1% (n = 24 tasks).",
        "Over rows instead of tasks, pass@1 is 66.3%.",
        "On the hard subset it scored 41.7% pass@1.",
        "The target for pass@1 is 80%.",
        "### Task `14`\n\n`ignored_error` fires on 3 of 3 failing and 0 of 61 passing rollouts of the desk.",
        "### Slice refund\n\n| Measure | Value | n |\n| --- | --- | --- |\n| pass@1 | 70.8% | 8 tasks |",
        "Rounded, it scored 67% pass@1.",
    ],
)
def test_other_quantities_by_the_same_name_are_left_alone(extra: str) -> None:
    assert not contradicted(report(extra=extra))


def test_reports_of_two_runs_state_two_values() -> None:
    text = report(score="60.0%").replace("# help-desk report", "# Baseline and candidate runs compared")
    assert not contradicted(text)


@pytest.mark.parametrize(
    ("sentence", "is_false"),
    [
        ("Task outcomes are bimodal.", True),
        ("Task outcomes are not bimodal.", False),
        ("Within the refund category outcomes are bimodal.", False),
    ],
)
def test_bimodal_is_held_against_the_buckets(sentence: str, is_false: bool) -> None:
    assert bool(contradicted(report(extra=sentence))) == is_false


def test_bimodal_outcomes_are_supported() -> None:
    text = "# R\n\nOf 24 tasks, 12 passed in every repeat, 2 in some and 10 in none.\n\nTask outcomes are bimodal.\n"
    assert [one.kind for one in supported(text)].count("word") == 1


def test_two_bare_sentences_may_be_about_two_things() -> None:
    assert not contradicted(
        "# R\n\nThe agent scored 60.0% pass@1.\n\nThe stronger one scored 70.0% pass@1.\n"
    )
    assert not contradicted(report(extra="Of 8 tasks, 3 passed in every repeat, 4 in some and 1 in none."))

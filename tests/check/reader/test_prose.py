"""Sentences as people write them: the true one is supported, its twin with one thing wrong is contradicted."""

from __future__ import annotations

import pytest

from blade.check.world import World
from tests.check.reader.worlds import false_lines, said

TWINS = {
    "metric": ("pass@1 is 43.8%.", "pass@1 is 44.8%."),
    "fraction": ("The run reaches a pass rate of 0.44.", "The run reaches a pass rate of 0.46."),
    "metric of k": ("pass@4 is 66.7% and pass^4 is 25%.", "pass@4 is 66.7% and pass^4 is 27%."),
    "before its name": ("It achieves 44% accuracy.", "It achieves 47% accuracy."),
    "interval beside": ("pass@1 is 43.8% [30%, 58%].", "pass@1 is 48.3% [30%, 58%]."),
    "x of y": ("alpha solved 8 of 12 tasks (66.7%).", "alpha solved 9 of 12 tasks (75.0%)."),
    "other denominator": ("alpha solved 8 of 12 tasks.", "alpha solved 8 of 14 tasks."),
    "share in brackets": ("21 of 48 rollouts passed (43.8%).", "21 of 48 rollouts passed (53.8%)."),
    "always": ("3 tasks always pass.", "4 tasks always pass."),
    "number words": ("Four tasks never pass.", "Six tasks never pass."),
    "all three": ("Of 12 tasks, 3 always pass, 5 sometimes and 4 never.", "Of 12 tasks, 3 always pass, 6 sometimes and 4 never."),
    "share": ("56% of the rollouts failed.", "65% of the rollouts failed."),
    "third": ("A third of the tasks never pass.", "Half of the tasks never pass."),
    "at least once": ("It solves 8 of 12 tasks at least once.", "It solves 9 of 12 tasks at least once."),
    "over tasks": ("Mean pass rate across tasks: 0.44", "Mean pass rate across tasks: 0.49"),
    "bracket before the verb": ("Of the 12 tasks, 4 (33%) never passed.", "Of the 12 tasks, 4 (43%) never passed."),
    "about": ("About 55% of the rollouts failed.", "About 70% of the rollouts failed."),
    "at least": ("At least 3 tasks never pass.", "At least 6 tasks never pass."),
    "more than": ("More than 40% of rollouts passed.", "More than 50% of rollouts passed."),
    "size": ("The benchmark has 12 tasks and 48 rollouts.", "The benchmark has 12 tasks and 46 rollouts."),
    "listed": ("Failed rollouts: 27", "Failed rollouts: 28"),
    "task": ("Task 4 passed 2 of 4 repeats.", "Task 4 passed 3 of 4 repeats."),
    "rate of a task": ("Task 6 has a pass rate of 75%.", "Task 6 has a pass rate of 50%."),
    "rate of a slice": ("The pass rate of refund is 81%.", "The pass rate of refund is 71%."),
    "slice by field": ("For category=exchange the pass rate is 50%.", "For category=exchange the pass rate is 60%."),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_a_true_amount_is_supported_and_its_twin_contradicted(alpha: World, name: str) -> None:
    true, false = TWINS[name]
    assert not said(true, alpha, "contradicted")
    assert said(true, alpha, "supported")
    assert said(false, alpha, "contradicted")


NO_ALARM = (
    "Roughly 44% of all rollouts succeed.",
    "Tasks: 12",
    "1 task: `9`.",
    "2 tasks: one of them is odd.",
    "Among tasks with tools, pass@1 is 60%.",
    "pass@1 would be 60% without the timeouts.",
    "The published pass@1 is 61%.",
    "Our target is a pass rate of 90%.",
    "The retry pass@1 is 60%.",
    "Excluding the flaky ones, pass@1 is 58%.",
    "The first 10 tasks pass.",
    "Covers 9 failing rollouts.",
    "The mode explains 40% of the failures.",
    "pass@1 rose by 5 points over last week.",
    "The tool call succeeded in 90% of cases.",
    "Of its 3 failing rollouts, 2 show the same error.",
    "We ran 7 tasks again by hand.",
    "0 of 4 repeats passed.",
    "Version 2 of the prompt has 14 rules.",
    "The median pass rate is 50%.",
    "Die Erfolgsquote beträgt 99%, und 7 Aufgaben scheitern immer.",
    "通过率为 99%。有 7 个任务从未通过。",
    "Доля успешных запусков 99%.",
)


@pytest.mark.parametrize("text", NO_ALARM)
def test_what_may_mean_something_else_raises_no_alarm(alpha: World, text: str) -> None:
    assert not said(text, alpha, "contradicted")


def test_a_claim_that_no_run_settles_says_why(both: World) -> None:
    (one,) = said("The score is 61%.", both, "unverifiable")
    assert one.why == "two runs could be meant"


def test_a_heading_says_whose_the_numbers_are(both: World) -> None:
    assert false_lines("## alpha\n\npass@1 is 79.2%.\n\n## beta\n\npass@1 is 79.2%.\n", both) == [3]


def test_an_assertion_says_where_it_stands_and_what_the_rows_say(alpha: World) -> None:
    (one,) = said("Notes.\n\nOverall, pass@1 is 48.0% here.\n", alpha, "contradicted")
    assert (one.kind, one.line, one.found, one.run, one.subject) == (
        "metric",
        3,
        "48.0%",
        "alpha",
        "pass_at_1",
    )
    assert one.text[one.start :].startswith(one.found)
    assert one.expected is not None
    assert "43.8%" in one.expected
    assert one.query == "measures[run=alpha,name=pass_at_1,k=null,slice=null].value"


RUNS = {
    "in turn": ("alpha scores 44% and beta 79%.", "alpha scores 79% and beta 44%."),
    "behind": ("pass@1 is 44% for alpha and 79% for beta.", "pass@1 is 79% for alpha and 44% for beta."),
    "by model": ("alpha-7b has a pass rate of 44%.", "beta-7b has a pass rate of 44%."),
    "by role": ("The baseline solved 8 of 12 tasks.", "The candidate solved 7 of 12 tasks."),
    "from to": ("pass@1 rose from 0.44 to 0.79.", "pass@1 rose from 0.44 to 0.97."),
    "swapped ends": ("pass@1 went from 43.8% to 79.2%.", "pass@1 went from 79.2% to 43.8%."),
}


@pytest.mark.parametrize("name", RUNS)
def test_of_two_runs_each_has_its_own_numbers(both: World, name: str) -> None:
    true, false = RUNS[name]
    assert not said(true, both, "contradicted")
    assert said(true, both, "supported")
    assert said(false, both, "contradicted")


def test_a_share_of_the_lost_score_is_a_sum_and_one_of_the_failures_a_judgement(alpha: World) -> None:
    lost = {loss.cause.value: 0.0 for loss in alpha.report.losses}
    for loss in alpha.report.losses:
        lost[loss.cause.value] += loss.lost
    share = lost["KG"] / sum(lost.values())
    assert said(f"KG accounts for {share:.0%} of the lost score.", alpha, "supported")
    wrong = share - 0.2 if share > 0.5 else share + 0.2
    assert said(f"KG accounts for {wrong:.0%} of the lost score.", alpha, "contradicted")
    assert not said(f"KG accounts for {wrong:.0%} of the failures.", alpha, "contradicted")

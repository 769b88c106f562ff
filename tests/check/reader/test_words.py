"""Words that are claims: buckets, outcomes, ids, labels, better and worse, most and best, and their denials."""

from __future__ import annotations

import pytest

from blade.check.world import World
from tests.check.reader.worlds import said

PARTS = {
    "never": ("Task 2 never passes.", "Task 4 never passes."),
    "list": ("Tasks 4, 6 and 9 are flaky.", "Tasks 4, 5 and 9 are flaky."),
    "always": ("Tasks 0 and 1 pass in every repeat.", "Tasks 0 and 2 pass in every repeat."),
    "denied": ("Task 2 is not flaky.", "Task 4 is not flaky."),
    "colon": ("Never-pass tasks (4): 2, 5, 8, 11", "Never-pass tasks (4): 2, 5, 8, 10"),
    "only": ("Only tasks 0, 1 and 3 always pass.", "Only task 0 always passes."),
    "failed": ("Task 2 failed.", "Task 0 failed."),
    "outcome": ("Rollout 4/1 passed.", "Rollout 4/1 failed."),
    "code": ("`4/3` failed because of the tool.", "`4/0` failed because of the tool."),
    "denied outcome": ("4/3 did not pass.", "4/0 did not pass."),
    "id": ("Task 11 is hard.", "Task 17 is hard."),
    "repeat": ("See `4/3`.", "See task 4/9."),
    "no cause of a pass": ("Task 2 never passes.", "Task 0 fails (KG)."),
}


@pytest.mark.parametrize("name", PARTS)
def test_of_tasks_and_rollouts(alpha: World, name: str) -> None:
    true, false = PARTS[name]
    assert not said(true, alpha, "contradicted")
    assert said(true, alpha, "supported")
    assert said(false, alpha, "contradicted")


def test_another_cause_than_ours_is_no_contradiction(alpha: World) -> None:
    (one,) = [one for one in said("Task 2 failed (BI).", alpha, "unverifiable") if one.kind == "label"]
    assert "proposal" in one.why
    ours = alpha.report.attributions[0]
    other = "BI" if ours.cause.value != "BI" else "KG"
    assert said(f"BLADE labels task {ours.task} as {other}.", alpha, "contradicted")
    assert not said(f"BLADE labels task {ours.task} as {ours.cause.value}.", alpha, "contradicted")


def test_a_step_must_be_there(alpha: World) -> None:
    assert not said("In `4/3` step 1 goes wrong.", alpha, "contradicted")
    (one,) = said("In `4/3` step 90 goes wrong.", alpha, "contradicted")
    assert one.kind == "step"


QUANTIFIED = {
    "most": ("Most rollouts failed.", "Most rollouts passed."),
    "most tasks": ("Most tasks pass at least once.", "Most tasks never pass."),
    "no": ("No rollout timed out.", "No task always passes."),
    "all": ("Not all tasks pass at least once.", "All tasks pass at least once."),
    "of failures": ("No failures are timeouts.", "Most failures are timeouts."),
    "weakest slice": ("Category lookup is the weakest slice.", "Category refund is the weakest slice."),
    "best slice": ("The best category is refund.", "The best category is exchange."),
    "denied rank": ("Category refund is not the weakest slice.", "Category lookup is not the weakest slice."),
    "bucket": ("The largest bucket is sometimes-pass.", "The largest bucket is never-pass."),
}


@pytest.mark.parametrize("name", QUANTIFIED)
def test_of_most_and_best(alpha: World, name: str) -> None:
    true, false = QUANTIFIED[name]
    assert not said(true, alpha, "contradicted")
    assert said(true, alpha, "supported")
    assert said(false, alpha, "contradicted")


CHANGES = {
    "beats": ("beta beats alpha.", "alpha beats beta."),
    "a part of its name": ("The beta model beats the alpha model.", "The beta model trails the alpha model."),
    "denied": ("alpha does not beat beta.", "beta does not beat alpha."),
    "than": ("alpha is worse than beta.", "alpha is better than beta."),
    "no better": ("alpha is no better than beta.", "beta is no better than alpha."),
    "improved": ("The candidate improved.", "The candidate regressed."),
    "did not": ("The candidate did not regress.", "The candidate did not improve."),
    "measure": ("pass@1 rose.", "pass@1 fell."),
    "significant": ("beta is significantly better than alpha.", "beta is significantly worse than alpha."),
    "no difference": ("beta outperforms alpha.", "There is no difference between the two runs."),
    "by": ("beta beats alpha by 35.4 points.", "beta beats alpha by 25.4 points."),
    "best": ("beta is the best model.", "alpha is the best model."),
    "not best": ("alpha is not the best model.", "beta is not the best model."),
    "last": ("alpha ranks last.", "beta ranks last."),
}


@pytest.mark.parametrize("name", CHANGES)
def test_of_two_runs(both: World, name: str) -> None:
    true, false = CHANGES[name]
    assert not said(true, both, "contradicted")
    assert said(true, both, "supported")
    assert said(false, both, "contradicted")


@pytest.mark.parametrize(
    "text",
    [
        "Would alpha beat beta with more turns?",
        "alpha may be better than beta on long tasks.",
        "On tasks with tools alpha is better than beta.",
        "alpha is cheaper, and beta slower.",
        "Task 4 would pass if the verifier were fixed.",
        "Score lost",
        "The step after task 4 is better documented.",
        "Task: improve the prompt",
    ],
)
def test_what_is_asked_or_narrowed_raises_no_alarm(both: World, text: str) -> None:
    assert not said(text, both, "contradicted")

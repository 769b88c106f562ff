"""What people and agents write of a run, true and with one thing wrong, and what the checker says of it."""

from __future__ import annotations

import pytest

from blade.check import checked
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED
from tests.check.conftest import Told

# of the demo: true, and the same with one wrong value, subject or direction
PEOPLE = (
    ("Overall pass@1 is 67.0%.", "Overall pass@1 is not 67.0%."),
    ("pass@1 is not 76.0%.", "pass@1 is not 67%."),
    ("Task 18 never failed.", "Task 16 never failed."),
    ("Task 8 never passed in any of its attempts.", "Task 9 never passed in any of its attempts."),
    ("Task 17 passed in no run.", "Task 4 passed in no run."),
    ("Task 8 failed all four repeats.", "Task 13 failed all four repeats."),
    ("In no repeat did task 17 succeed.", "In no repeat did task 14 succeed."),
    ("Task 0 has no failing rollout.", "Task 2 has no failing rollout."),
    ("Task 4 passed only once out of 4 tries.", "Task 21 passed only once out of 4 tries."),
    ("Task 2 succeeded in half of its repeats.", "Task 4 succeeded in half of its repeats."),
    ("Task 13 failed three of its four rollouts.", "Task 12 failed three of its four rollouts."),
    ("Task 5 went 2/3.", "Task 5 went 1/3."),
    (
        "Tasks 8 and 17 are the only ones that are never solved.",
        "Tasks 8 and 14 are the only ones that are never solved.",
    ),
    ("Two tasks are never solved.", "Four tasks are never solved."),
    ("Nine tasks pass every time; 13 are flaky.", "Nine tasks pass every time; 15 are flaky."),
    ("More than half of the tasks are flaky.", "More than half of the tasks are always solved."),
    ("Roughly a third of rollouts fail.", "Roughly half of rollouts fail."),
    ("Two thirds of the rollouts pass.", "A third of the rollouts pass."),
    ("Nearly all tasks are solved at least once.", "Nearly all tasks pass in every repeat."),
    ("Twice as many rollouts pass as fail.", "Three times as many rollouts fail as pass."),
    ("Passing rollouts outnumber failing ones about two to one.", "Failing rollouts outnumber passing ones."),
    ("Hard tasks fail more often than easy ones.", "Easy tasks fail more often than hard ones."),
    ("The agent does worst on hard tasks.", "The agent does worst on easy tasks."),
    ("Exchange is the weakest category.", "Refund is the weakest category."),
    ("Address tasks do better than refund tasks.", "Exchange tasks do better than refund tasks."),
    ("Accuracy on hard tasks is only 41.7%.", "Accuracy on hard tasks is only 51.7%."),
    (
        "The pass rate falls from 91.7% on easy to 41.7% on hard tasks.",
        "The pass rate falls from 81.7% on easy to 41.7% on hard tasks.",
    ),
    (
        "Success drops with difficulty: easy 91.7%, medium 59.3%, hard 41.7%.",
        "Success drops with difficulty: easy 91.7%, medium 69.3%, hard 41.7%.",
    ),
    (
        "Exchange requests pass at 49%, against 81% for address changes.",
        "Exchange requests pass at 49%, against 71% for address changes.",
    ),
    ("There are 6 hard tasks and 9 easy ones.", "There are 8 hard tasks and 9 easy ones."),
    (
        "Refund tasks outperform exchange tasks by 22 points.",
        "Refund tasks outperform exchange tasks by 32 points.",
    ),
    ("The largest failure mode is ignored_error.", "The largest failure mode is format_mismatch."),
    ("The most common failure is an ignored error.", "The most common failure is a format mismatch."),
    (
        "ignored_error shows up in more rollouts than missing_required_tool.",
        "missing_required_tool shows up in more rollouts than ignored_error.",
    ),
    ("ignored_error outnumbers format_mismatch.", "format_mismatch outnumbers ignored_error."),
    ("wrong_arg_field affects 11 rollouts.", "wrong_arg_field affects 16 rollouts."),
    ("wrong_arg_field occurs in 6 tasks.", "wrong_arg_field occurs in 9 tasks."),
    (
        "format_mismatch was seen in 5 rollouts, all of them failures.",
        "format_mismatch was seen in 8 rollouts, all of them failures.",
    ),
    ("ignored_error costs 10.8 points of pass@1.", "ignored_error costs 15.8 points of pass@1."),
    (
        "Behavioural issues account for 45% of the lost score.",
        "Behavioural issues account for 65% of the lost score.",
    ),
    ("A rollout takes 5.5 turns on average.", "A rollout takes 8.5 turns on average."),
    ("Mean tool calls per rollout: 4.6.", "Mean tool calls per rollout: 6.4."),
    (
        "Passing rollouts use 5.0 tool calls on average and failing ones 4.0.",
        "Passing rollouts use 5.0 tool calls on average and failing ones 6.0.",
    ),
    (
        "Passing rollouts make more tool calls than failing ones.",
        "Failing rollouts make more tool calls than passing ones.",
    ),
    ("The average rollout consumes about 1,430 tokens.", "The average rollout consumes about 2,430 tokens."),
    (
        "Failed rollouts are shorter (5.0 turns) than passed ones (6.0 turns).",
        "Failed rollouts are longer (7.0 turns) than passed ones (6.0 turns).",
    ),
    ("pass@1 is 67.0% (95% CI 52.9–78.6%).", "pass@1 is 67.0% (95% CI 60.9–72.6%)."),
    (
        "The 95% confidence interval of pass@1 is 53% to 79%.",
        "The 95% confidence interval of pass@1 is 63% to 71%.",
    ),
    ("Each task was attempted 4 times.", "Each task was attempted 8 times."),
    ("There are four repeats per task.", "There are five repeats per task."),
    (
        "Coverage is 95.8%: 4 of 96 expected rollouts are missing.",
        "Coverage is 99.8%: 4 of 96 expected rollouts are missing.",
    ),
    ("Four rollouts are missing.", "Seven rollouts are missing."),
    ("The model under test is sim-model-a.", "The model under test is sim-model-b."),
    ("The benchmark is sim-help-desk.", "The benchmark is sim-web-shop."),
    ("Sampling temperature was 1.0.", "Sampling temperature was 0.2."),
    ("pass@4 is 90%, so retries help a lot.", "pass@4 is 80%, so retries help a lot."),
    (
        "| Task | Pass/Total |\n|---|---|\n| 2 | 2/4 |\n| 8 | 0/4 |\n| 18 | 4/4 |",
        "| Task | Pass/Total |\n|---|---|\n| 2 | 2/4 |\n| 8 | 1/4 |\n| 18 | 4/4 |",
    ),
    (
        "| Task | Fail/Pass |\n|---|---|\n| 4 | 3/1 |\n| 8 | 4/0 |",
        "| Task | Fail/Pass |\n|---|---|\n| 4 | 2/2 |\n| 8 | 4/0 |",
    ),
    (
        "| Difficulty | Tasks | Pass rate |\n|---|---|---|\n| easy | 9 | 91.7% |\n| hard | 6 | 41.7% |",
        "| Difficulty | Tasks | Pass rate |\n|---|---|---|\n| easy | 9 | 91.7% |\n| hard | 6 | 47.1% |",
    ),
    (
        "| Failure mode | Rollouts |\n|---|---|\n| ignored_error | 11 |\n| format_mismatch | 5 |",
        "| Failure mode | Rollouts |\n|---|---|\n| ignored_error | 17 |\n| format_mismatch | 5 |",
    ),
    ("We measured a pass@1 of 67%.", "We measured a pass@1 of 57%."),
    ("Overall accuracy is 67.0%, far from saturated.", "Overall accuracy is 71.0%, far from saturated."),
    ("Task 19 never fails.", "Task 20 never fails."),
    ("Not once did task 8 pass.", "Not once did task 6 pass."),
    ("Task 17 has zero passes.", "Task 14 has zero passes."),
    ("Task 23 failed once and passed three times.", "Task 16 failed once and passed three times."),
    ("Task 12 (3/4) is nearly solved.", "Task 12 (2/4) is nearly solved."),
    ("Task 15 passes twice in four attempts.", "Task 13 passes twice in four attempts."),
    ("Only tasks 8 and 17 never pass.", "Only task 8 never passes."),
    ("BLADE labels task 8 as KG.", "BLADE labels task 8 as IR."),
    (
        "Performance on hard tasks is worse than on medium ones.",
        "Performance on easy tasks is worse than on medium ones.",
    ),
    ("Hard tasks have the lowest pass rate (41.7%).", "Hard tasks have the lowest pass rate (48.7%)."),
    (
        "By category: address 81%, refund 71%, exchange 49%.",
        "By category: address 81%, refund 61%, exchange 49%.",
    ),
    (
        "Exchange lags behind address by more than 30 points.",
        "Exchange lags behind address by more than 50 points.",
    ),
    ("The benchmark has 9 medium tasks.", "The benchmark has 5 medium tasks."),
    (
        "format_mismatch is less common than ignored_error.",
        "ignored_error is less common than format_mismatch.",
    ),
    (
        "missing_required_tool was detected in 6 rollouts.",
        "missing_required_tool was detected in 2 rollouts.",
    ),
    ("Knowledge gaps account for 12.6% of the loss.", "Knowledge gaps account for 32.6% of the loss."),
    ("wrong_arg_field costs about 10 points.", "wrong_arg_field costs about 20 points."),
    (
        "Passing rollouts average 6.0 turns, failing ones 5.0.",
        "Passing rollouts average 6.0 turns, failing ones 9.0.",
    ),
    (
        "Successful rollouts take more turns than failed ones.",
        "Failed rollouts take more turns than successful ones.",
    ),
    ("On average each rollout makes 4.6 tool calls.", "On average each rollout makes 2.6 tool calls."),
    ("The median rollout has 6 turns.", "The median rollout has 9 turns."),
    ("pass@1: 67.0%, 95% CI [52.9%, 78.6%].", "pass@1: 67.0%, 95% CI [64.9%, 69.6%]."),
    ("All tasks were run with 4 attempts each.", "All tasks were run with 6 attempts each."),
    ("Model: sim-model-a", "Model: sim-model-z"),
    ("The temperature is set to 1.", "The temperature is set to 0.7."),
    ("About a third of the rollouts failed.", "About a fifth of the rollouts failed."),
    ("More than 60 rollouts passed.", "More than 70 rollouts passed."),
    (
        "| Category | Pass rate |\n|---|---|\n| address | 81.2% |\n| exchange | 49.0% |",
        "| Category | Pass rate |\n|---|---|\n| address | 81.2% |\n| exchange | 59.0% |",
    ),
    (
        "| Task | Repeat 0 | Repeat 1 | Repeat 2 | Repeat 3 |\n|---|---|---|---|---|\n| 8 | ✗ | ✗ | ✗ | ✗ |\n| 18 | ✓ | ✓ | ✓ | ✓ |",
        "| Task | Repeat 0 | Repeat 1 | Repeat 2 | Repeat 3 |\n|---|---|---|---|---|\n| 8 | ✗ | ✗ | ✗ | ✗ |\n| 18 | ✓ | ✓ | ✗ | ✓ |",
    ),
    (
        "| Task | Passed/Failed |\n|---|---|\n| 12 | 3/1 |",
        "| Task | Passed/Failed |\n|---|---|\n| 12 | 1/3 |",
    ),
)
# true and false, but nothing here settles it: never the wrong way round
OPEN = (
    ("Task 14 is the model's: it ignored an error.", "Task 14 is an infrastructure issue."),
    (
        "The failure of task 5 was caused by infrastructure.",
        "The failure of task 8 was caused by infrastructure.",
    ),
    ("Medium tasks sit between easy and hard at 59%.", "Medium tasks sit between easy and hard at 69%."),
    ("Infrastructure errors cost 3.5 points.", "Infrastructure errors cost 8.5 points."),
    ("Three rollouts died of infrastructure errors.", "Nine rollouts died of infrastructure errors."),
    (
        "The model fails 28 rollouts outright and three more error out.",
        "The model fails 38 rollouts outright and three more error out.",
    ),
    (
        "Only 35% of the tasks would pass four times in a row (pass^4 = 35.0%).",
        "Only 45% of the tasks would pass four times in a row (pass^4 = 45.0%).",
    ),
    ("The pass rate isn't 50%.", "The pass rate isn't 67.0%."),
    ("Task 10 did not fail a single time.", "Task 12 did not fail a single time."),
    ("Task 17 is the hardest: 0/4.", "Task 17 is the hardest: 2/4."),
    (
        "Easy tasks are solved more often than medium tasks.",
        "Hard tasks are solved more often than medium tasks.",
    ),
    ("On easy tasks the agent passes 92% of the time.", "On easy tasks the agent passes 72% of the time."),
    ("truncated fires in 2 rollouts.", "truncated fires in 7 rollouts."),
    ("24 tasks, of which 9 always pass.", "24 tasks, of which 12 always pass."),
)
# of alpha and beta
TWO_RUNS = (
    ("alpha reaches 43.8% and beta 79.2%.", "alpha reaches 79.2% and beta 43.8%."),
    ("alpha trails beta.", "beta trails alpha."),
    ("alpha (43.8%) is behind beta (79.2%).", "alpha (43.8%) is behind beta (89.2%)."),
    ("Two tasks fail in both runs.", "Five tasks fail in both runs."),
    ("alpha fails more often than beta.", "beta fails more often than alpha."),
    ("Task 5 fails in alpha but passes in beta.", "Task 5 passes in alpha but fails in beta."),
    ("Task 2 fails in both runs.", "Task 0 fails in both runs."),
    ("Tasks 0, 1 and 3 are solved by both models.", "Tasks 0, 2 and 3 are solved by both models."),
    ("Most rollouts of beta pass.", "Most rollouts of beta fail."),
    ("2 tasks are solved by beta only.", "7 tasks are solved by beta only."),
    ("beta solves task 5, alpha does not.", "beta solves task 8, alpha does not."),
    ("Both runs cover 12 tasks.", "Both runs cover 20 tasks."),
    (
        "| Metric | alpha | beta |\n|---|---|---|\n| pass@1 | 43.8% | 79.2% |",
        "| Metric | alpha | beta |\n|---|---|---|\n| pass@1 | 43.8% | 43.8% |",
    ),
    (
        "| Task | alpha | beta |\n|---|---|---|\n| 2 | fail | fail |\n| 0 | pass | pass |",
        "| Task | alpha | beta |\n|---|---|---|\n| 2 | fail | pass |\n| 0 | pass | pass |",
    ),
    (
        "| Task | alpha | beta |\n|---|---|---|\n| 4 | 2/4 | 4/4 |",
        "| Task | alpha | beta |\n|---|---|---|\n| 4 | 4/4 | 2/4 |",
    ),
)


# true, or not about these rows in this way: nothing of it may be called false
HONEST = (
    "If the hard tasks were fixed, pass@1 would reach 80%.",
    "It is easy to see that hard tasks fail.",
    "Task 4 failed once the tool returned an error.",
    "Passing rollouts spend 3 turns on lookups on average.",
    "Rollouts of task 8 take 9 turns on average.",
    "In the first two repeats task 2 passed once.",
    "The model is weak-ish on exchanges.",
    "The benchmark is well-designed.",
    "Hard tasks make up 25% of the benchmark.",
    "A temperature of 0.2 might help.",
    "Only 11% of easy tasks ever fail in more than one repeat.",
    "ignored_error occurs in 3 rollouts of task 16.",
    "Previously, pass@1 was 58% (95% CI 40–76%).",
    "The 95% CI of the hard slice is 14% to 76%.",
    "Half of the passing rollouts make more than 6 tool calls.",
    "Passing rollouts are not shorter than failing ones.",
    "4 expected rollouts have no score.",
    "For: 3 of 3 failing repeats show it (ignored error).",
)


def said(text: str, known: World) -> set[str]:
    return {one.verdict for one in checked(text, known) if one.kind != "id"}


@pytest.mark.parametrize(("true", "false"), PEOPLE)
def test_of_one_run(told: Told, true: str, false: str) -> None:
    assert CONTRADICTED not in said(true, told.world)
    assert SUPPORTED in said(true, told.world)
    assert CONTRADICTED in said(false, told.world)


@pytest.mark.parametrize(("true", "false"), TWO_RUNS)
def test_of_two_runs(both: World, true: str, false: str) -> None:
    assert CONTRADICTED not in said(true, both)
    assert SUPPORTED in said(true, both)
    assert CONTRADICTED in said(false, both)


@pytest.mark.parametrize(("true", "false"), OPEN)
def test_what_nothing_settles_is_open(told: Told, true: str, false: str) -> None:
    assert CONTRADICTED not in said(true, told.world)
    assert said(false, told.world) != {SUPPORTED}


@pytest.mark.parametrize("text", HONEST)
def test_what_is_not_false_is_not_called_so(told: Told, text: str) -> None:
    assert CONTRADICTED not in said(text, told.world)

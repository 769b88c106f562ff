"""Sentences in nobody's pattern, clause by clause: true ones raise no alarm, and one wrong thing is found."""

from __future__ import annotations

import pytest

from blade.check.reader.clauses import clauses
from blade.check.reader.ground import Ground
from blade.check.reader.mentions import Reader
from blade.check.world import World
from tests.check.reader.worlds import said

# of 12 tasks with four repeats each: 21 of 48 rollouts pass; 3 always, 5 sometimes, 4 never
ONE = (
    ("alpha gets 21 of 48 right, i.e. 43.8%.", "alpha gets 24 of 48 right, i.e. 50.0%."),
    ("The file holds 48 rollouts.", "The file holds 58 rollouts."),
    ("Of 48 rollouts, 27 failed.", "Of 84 rollouts, 27 failed."),
    ("Of 48 samples 27 are wrong.", "Of 48 samples 17 are wrong."),
    ("pass@1 43.8% over 48 rollouts of 12 tasks, as planned.", "pass@1 48.3% over 48 rollouts of 12 tasks."),
    ("pass@1 43.8% over 48 rollouts of 12 tasks.", "pass@1 43.8% over 68 rollouts of 12 tasks."),
    ("We found 4 tasks that never pass.", "We found 7 tasks that never pass."),
    ("Every one of the 48 rows was scored.", "Every one of the 45 rows was scored."),
    ("Four tasks were never solved, 3 every time.", "Four tasks were never solved, 6 every time."),
    ("Four tasks are never solved, 3 always and 5 in between.", "Four tasks are never solved, 3 always and 8 in between."),
    ("No repeat of task 2 succeeds.", "No repeat of task 4 succeeds."),
    ("The hopeless tasks are 2, 5 and 8.", "The hopeless tasks are 2, 5 and 9."),
    ("The tasks that never pass are 2, 5 and 11.", "The tasks that never pass are 2, 5 and 10."),
    ("Four tasks (2, 5, 8 and 11) never pass.", "Four tasks (2, 5, 8 and 10) never pass."),
    ("Task 4 passes 2 times out of 4.", "Task 4 passes 3 times out of 4."),
)
TWO = (
    ("beta passes 79% and alpha 44%.", "beta passes 69% and alpha 44%."),
    ("beta lifted pass@1 from 43.8% to 79.2%, a gain of 35.4 points.",
     "beta lifted pass@1 from 43.8% to 79.2%, a gain of 45.4 points."),
    ("beta lifted pass@1 from 43.8% to 79.2%.", "beta lifted pass@1 from 43.8% to 72.9%."),
    ("The gain is solid (p < 0.05).", "The gain is solid (p = 0.9)."),
    ("2 tasks are solved by beta only, 0 by alpha only.", "2 tasks are solved by beta only, 3 by alpha only."),
    ("Seven tasks were gained.", "Nine tasks were gained."),
    ("Both fail on task 2, and beta gained tasks 5 and 6.", "beta gained tasks 5 and 8."),
    ("| | alpha | beta |\n|---|---|---|\n| failed | 27 | 10 |", "| | alpha | beta |\n|---|---|---|\n| failed | 27 | 15 |"),
)  # fmt: skip
# true, or said of something else
OTHERS = (
    "One pass over 12 tasks.",
    "—",
    "All 48 rollouts are there; 21 of them passed and 27 failed.",
    "Of 9 transfers, 5 passed.",
    "In a pilot over 20 rollouts, pass@1 was 55%.",
    "pass@1 is 43.8%, against 60% in the paper.",
    "pass@1 is 43.8% here and 50% on another benchmark.",
    "Rollouts with more than 10 calls pass 15% of the time and the others 55%.",
    "The agent gets 3 of 5 payments right.",
    "We looked at 20 rollouts by hand; 12 of them failed.",
    "After the fix 30 rollouts passed and 18 failed.",
    "The tasks that fail most are 4, 6 and 7.",
    "We lost 3 points to rounding.",
    "Covers 9 failing rollouts; it fires on a passing one too.",
    "The largest cluster has 9 rollouts, the smallest 2 rollouts.",
    "There are 2 tasks: one of them is odd.",
)


@pytest.mark.parametrize(("true", "false"), ONE)
def test_clauses_of_one_run(alpha: World, true: str, false: str) -> None:
    assert not said(true, alpha, "contradicted")
    assert said(true, alpha, "supported")
    assert said(false, alpha, "contradicted")


@pytest.mark.parametrize(("true", "false"), TWO)
def test_clauses_of_two_runs(both: World, true: str, false: str) -> None:
    assert not said(true, both, "contradicted")
    assert said(true, both, "supported")
    assert said(false, both, "contradicted")


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_said_of_something_else_raises_no_alarm(alpha: World, text: str) -> None:
    assert not said(text, alpha, "contradicted")


def test_a_number_that_is_not_settled_says_what_it_could_be(alpha: World) -> None:
    found = said("Nightly rollouts pass 60% of the time.", alpha, "unverifiable")
    assert [one.found for one in found] == ["60%"]
    assert "could be" in found[0].why


def test_a_clause_ends_where_another_amount_is_told(alpha: World) -> None:
    sentence = Reader(Ground(alpha)).sentence(
        "21 rollouts passed and 27 (56.2%) failed; tasks 2, 5 and 8 are hard."
    )
    told = [sentence.text[one.first : one.last].strip() for one in clauses(sentence)]
    assert told == ["21 rollouts passed", "27 (56.2%) failed", "56.2%", "tasks 2, 5 and 8 are hard."]

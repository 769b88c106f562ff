"""Whole reports as people and agents write them, with a few subtle errors: these are told, and nothing else."""

from __future__ import annotations

from blade.check.world import World
from tests.check.reader.worlds import false_lines, said

NOTES = """# alpha, eval notes

quick pass over the rollouts, 12 tasks x 4 repeats.

## numbers

- pass@1 43.8%, pass@4 66.7%
- pass^4 is 25%
- 21/48 rollouts passed
- 3 tasks always pass, 5 are flaky, 4 never pass
- never: 2, 5, 8, 11
- flaky: 4, 6, 7, 9, 10

## slices

refund is fine (81% pass rate). lookup never works, pass rate of lookup is 0%.
The pass rate of exchange is 50%.
Category lookup is the weakest slice, by far.

## tasks worth a look

- task 6 passed 3 of 4 repeats, only 6/3 failed
- task 7 passed in one of four tries; 7/0 passed, `7/2` failed with the usual error
- task 9 is flaky too
- task 10: I think the verifier is too strict (TI?)
- task 2 never passes. Looked at `2/0` and `2/1`, same mistake in both.
- tasks 0, 1 and 3 always pass, nothing to see

## next

Raise the turn limit from 10 to 20 and rerun; should give us 5-10 points.
If lookup gets fixed, pass@1 would be about 60%.
Last week the same model was at 51% on the old prompt.
More than half of the rollouts failed, but no rollout timed out.
"""

NOTES_FALSE = (
    ("- pass^4 is 25%", "- pass^4 is 20%"),
    ("- 21/48 rollouts passed", "- 21/50 rollouts passed"),
    ("- flaky: 4, 6, 7, 9, 10", "- flaky: 4, 6, 8, 9, 10"),
    ("only 6/3 failed", "only 6/2 failed"),
    ("tasks 0, 1 and 3 always", "tasks 0, 1 and 2 always"),
)

AGENT = """# Benchmark Analysis Report: alpha-7b

## Executive Summary

The model **alpha-7b** was evaluated on 12 tasks with 4 rollouts per task, for a total of 48 rollouts.
It achieved a **pass@1 of 43.8%** and a **pass@4 of 66.7%**, which indicates headroom for best-of-n sampling.
Overall, 8 of 12 tasks (66.7%) were solved at least once, while 4 tasks (33.3%) were never solved.
The weakest category is **lookup**; the strongest category is **refund**.

## Aggregate Results

| Metric | Value |
| --- | --- |
| pass@1 | 43.8% |
| pass@2 | 55.6% |
| pass@4 | 66.7% |
| pass^4 | 25.0% |
| Total tasks | 12 |
| Total rollouts | 48 |
| Passed rollouts | 21 |
| Failed rollouts | 27 |

## Task Outcome Buckets

| Bucket | Tasks | Share |
| --- | --- | --- |
| Always pass | 3 | 25.0% |
| Sometimes pass | 5 | 41.7% |
| Never pass | 4 | 33.3% |

## Category Breakdown

| Category | Tasks | Pass rate |
| --- | --- | --- |
| exchange | 4 | 50.0% |
| lookup | 4 | 0.0% |
| refund | 4 | 81.2% |

## Deep Dives

### Task 4

Task 4 passed 2 of 4 rollouts. In rollout 4/0 the agent finds the answer at once; `4/2` failed after the same start.

### Task 11

Task 11 never passes. All rollouts end with a wrong answer, and the root cause is probably a knowledge gap.

## Recommendations

1. Improve retrieval for lookup tasks: expected gain of 10 to 15 points.
2. Add a self-check before the final answer; about a third of the failures look avoidable.
"""

AGENT_FALSE = (
    ("**pass@4 of 66.7%**", "**pass@4 of 76.7%**"),
    ("8 of 12 tasks (66.7%) were solved", "7 of 12 tasks (58.3%) were solved"),
    ("| pass@2 | 55.6% |", "| pass@2 | 56.5% |"),
    ("| Sometimes pass | 5 | 41.7% |", "| Sometimes pass | 5 | 47.1% |"),
    ("| exchange | 4 | 50.0% |", "| exchange | 5 | 50.0% |"),
    ("`4/2` failed", "`4/1` failed"),
    ("Task 11 never passes", "Task 10 never passes"),
)

COMPARISON = """# alpha against beta

We compared **beta** (candidate) with **alpha** (baseline) on the same 12 tasks.

pass@1 rose from 43.8% to 79.2%. That is, beta beats alpha by 35.4 points.

beta is significantly better than alpha.
beta always passes 8 tasks, alpha only 3.

| Model | pass@1 | pass@4 | Always pass | Never pass |
| --- | --- | --- | --- | --- |
| alpha | 43.8% | 66.7% | 3 | 4 |
| beta | 79.2% | 83.3% | 8 | 2 |

| Category | alpha | beta |
| --- | --- | --- |
| refund | 81.2% | 100% |
| exchange | 50.0% | 93.8% |
| lookup | 0.0% | 43.8% |

## alpha

alpha solved 8 of 12 tasks. Tasks 2, 5, 8 and 11 never pass.
The weakest category is lookup at a pass rate of 0%.

## beta

beta solved 10 of 12 tasks. Only tasks 2 and 8 never pass.
Task 11 passed 3 of 4 rollouts.

## Verdict

alpha does not beat beta on any category.
The candidate did not regress.
"""

COMPARISON_FALSE = (
    ("pass@1 rose from 43.8% to 79.2%", "pass@1 rose from 43.8% to 72.9%"),
    ("beta is significantly better than alpha", "alpha is significantly better than beta"),
    ("| beta | 79.2% | 83.3% | 8 | 2 |", "| beta | 79.2% | 83.3% | 2 | 8 |"),
    ("| lookup | 0.0% | 43.8% |", "| lookup | 0.0% | 48.3% |"),
    ("Only tasks 2 and 8 never pass", "Only tasks 2 and 11 never pass"),
    ("The candidate did not regress", "The candidate did not improve"),
)


def planted(text: str, changes: tuple[tuple[str, str], ...]) -> tuple[str, list[int]]:
    """A report with errors put in, and the lines on which they stand."""
    for true, false in changes:
        assert text.count(true) == 1, true
        text = text.replace(true, false)
    lines = text.splitlines()
    return text, sorted({at for at, line in enumerate(lines, 1) for _, false in changes if false in line})


def test_terse_notes(alpha: World) -> None:
    assert false_lines(NOTES, alpha) == []
    text, lines = planted(NOTES, NOTES_FALSE)
    assert false_lines(text, alpha) == lines
    assert len(said(NOTES, alpha, "supported")) >= 20


def test_a_long_report_of_an_agent(alpha: World) -> None:
    assert false_lines(AGENT, alpha) == []
    text, lines = planted(AGENT, AGENT_FALSE)
    assert false_lines(text, alpha) == lines
    assert len(said(AGENT, alpha, "supported")) >= 20


def test_a_comparison_of_two_models(both: World) -> None:
    assert false_lines(COMPARISON, both) == []
    text, lines = planted(COMPARISON, COMPARISON_FALSE)
    assert false_lines(text, both) == lines
    assert len(said(COMPARISON, both, "supported")) >= 20


def test_our_own_pages_raise_no_alarm(alpha: World, both: World) -> None:
    from blade.check.reader import read

    for known in (alpha, both):
        for page in known.pages:
            assert [one for one in read(page, known) if one.verdict == "contradicted"] == []

"""What holds for every run: the order of rows never shows, and nothing is counted twice or not at all."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from blade.measure import funnel, health, outcome_rates, reconciliation, slices
from blade.measure.scoring import Scoring, buckets, scoring, task_results
from blade.model import Benchmark, Coverage, Outcome, ReportedNumber, Rollouts
from tests.measure.builders import make_coverage, make_rollouts

REPORTED = [ReportedNumber("run", "f", "a", name, 0.5) for name in ("mean/reward", "pass@2/accuracy", "num_rollouts")]
REWARDS = {
    "binary": st.sampled_from([0.0, 1.0]),
    "graded": st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]),
    "continuous": st.floats(0, 1),
    "unbounded": st.floats(-100, 100),
    "null": st.sampled_from([0.0, 1.0, None]),
    "copied": st.just(0.0571),
}
rows_of = st.sampled_from(sorted(REWARDS)).flatmap(
    lambda kind: st.lists(
        st.tuples(
            st.sampled_from(["0", "1", "2", "10", "x"]),  # task
            st.integers(0, 4),  # repeat
            REWARDS[kind],
            st.sampled_from(["scored", "scored", "scored", "masked", "failed", "lost"]),
            st.booleans(),  # errored
            st.integers(0, 3),  # items
            st.sampled_from(["A", "B", None]),  # answer
        ),
        max_size=24,
        unique_by=lambda row: (row[0], row[1]),
    )
)
KIND_OF = {"0": "even", "1": "odd", "2": "even", "10": "even", "x": "odd"}


def build(rows: list[Any]) -> tuple[Rollouts, Coverage]:
    present = [row for row in rows if row[3] in ("scored", "masked")]
    rollouts = make_rollouts(
        [(task, repeat, reward) for task, repeat, reward, *_ in present],
        tasks=[row[0] for row in rows],
        masked=[row[3] == "masked" for row in present],
        errored=[row[4] for row in present],
        n_items=[row[5] for row in present],
        fields={"extracted_answer": [row[6] for row in present], "category": [KIND_OF[row[0]] for row in present]},
    )
    keys = {state: sorted((row[0], row[1]) for row in rows if row[3] == state) for state in ("failed", "lost")}
    return rollouts, make_coverage(rollouts, failed=keys["failed"], lost=keys["lost"])


def everything(rollouts: Rollouts, coverage: Coverage, threshold: float | None = None) -> list[Any]:
    rule, facts = scoring(rollouts, threshold), Benchmark()
    return [
        *outcome_rates.measures("run", rollouts, coverage, rule),
        *outcome_rates.majority(rollouts, rule, facts),
        *outcome_rates.effort(rollouts, rule),
        *task_results(rollouts, coverage, rule),
        buckets(rollouts, rule),
        *health.health(rollouts, coverage, rule),
        funnel.funnel(rollouts, coverage, rule, facts),
        *sliced(rollouts, rule, facts),
        *reconciliation.compared("run", REPORTED, rollouts, coverage, rule),
    ]


def sliced(rollouts: Rollouts, rule: Scoring, facts: Benchmark) -> list[Any]:
    """The fields that describe tasks, each with the value of every counted row by its key."""
    keys = [(rollouts.task_keys[rollouts.task[row]], int(rollouts.repeat[row])) for row in rule.rows]
    return [
        (name, sorted((*key, labels[code] if code >= 0 else None) for key, code in zip(keys, codes, strict=True)))
        for name, (codes, labels) in slices.by_row(rollouts, rule, facts).items()
    ]


@settings(max_examples=80, deadline=None)
@given(rows_of, st.randoms(use_true_random=False), st.sampled_from([None, 0.5]))
def test_the_order_of_rows_never_shows(rows: list[Any], random: Any, threshold: float | None) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert everything(*build(rows), threshold) == everything(*build(shuffled), threshold)


@settings(max_examples=80, deadline=None)
@given(rows_of)
def test_every_expected_rollout_is_somewhere_once(rows: list[Any]) -> None:
    rollouts, coverage = build(rows)
    assert coverage.expected == coverage.scored + coverage.failed + coverage.masked + coverage.lost
    rule = scoring(rollouts, None)
    results = task_results(rollouts, coverage, rule)
    repeats = [each.outcome for result in results for each in result.repeats]
    assert len(repeats) == coverage.expected
    assert repeats.count(Outcome.MISSING) == coverage.failed + coverage.lost
    assert repeats.count(Outcome.MASKED) == coverage.masked
    assert sum(result.n for result in results) == coverage.scored
    found = buckets(rollouts, rule)
    if rule.has_pass_rate:
        listed = [*found.always, *found.sometimes, *found.never, *found.missing]
        assert sorted(listed) == sorted(rollouts.task_keys)
        assert [result.bucket for result in results if result.task in found.always] == ["always"] * len(found.always)


@settings(max_examples=80, deadline=None)
@given(rows_of)
def test_estimates_lie_in_their_intervals_and_stages_within_the_expected(rows: list[Any]) -> None:
    rollouts, coverage = build(rows)
    rule = scoring(rollouts, None)
    found = {(each.name, each.k): each for each in outcome_rates.measures("run", rollouts, coverage, rule)}
    for each in found.values():
        if each.low is not None and each.high is not None:
            assert each.low - 1e-12 <= each.value <= each.high + 1e-12
        assert each.value is None or each.n > 0 or each.name == "coverage"
    if (high := found.get(("bound_high", None))) and high.value is not None:
        assert 0 <= found["bound_low", None].value <= high.value <= 1 + 1e-12
    stages = funnel.funnel(rollouts, coverage, rule, Benchmark()).stages
    assert all(0 <= each.reached <= each.of == coverage.expected for each in stages)

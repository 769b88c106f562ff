"""Pass rates, rewards, spread, missing-row bounds, the vote of k answers and effort, against reference values."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from blade.measure.outcome_rates import effort, ks_up_to, majority, measures
from blade.measure.scoring import scoring
from blade.model import Benchmark, Measure
from tests.case_tables import cases, tables
from tests.measure.builders import F1_A, TAU_AIRLINE, make_coverage, make_rollouts


def measured(rewards: Any, threshold: float | None = None, missing: Any = None, **columns: Any) -> dict[Any, Measure]:
    """The measures by name, or by (name, k)."""
    rollouts = make_rollouts(rewards, **columns)
    coverage = make_coverage(rollouts, **(missing or {}))
    found = list(measures("run", rollouts, coverage, scoring(rollouts, threshold)))
    keys = [each.name if each.k is None else (each.name, each.k) for each in found]
    assert len(set(keys)) == len(keys), "a measure stands twice"
    return dict(zip(keys, found, strict=True))


@pytest.mark.parametrize("case", tables(__file__, "outcome_cases.yaml"), ids=lambda case: case["name"])
def test_measures(case: dict[str, Any]) -> None:
    rewards = {"F1_A": F1_A, "TAU_AIRLINE": TAU_AIRLINE}[case["rewards"]] if isinstance(case["rewards"], str) else case["rewards"]
    missing = {name: [tuple(key) for key in keys] for name, keys in case.get("missing", {}).items()}
    columns = case.get("columns", {})
    found = measured(rewards, case.get("threshold"), missing, tasks=case.get("tasks", ()), **columns)
    by_name = {key if isinstance(key, str) else f"{key[0]} {key[1]}": measure for key, measure in found.items()}
    assert not set(case.get("absent", ())) & set(by_name)
    for name, expected in case["expect"].items():
        parts = expected if isinstance(expected, dict) else {"value": expected}
        for part, value in parts.items():
            result = getattr(by_name[name], part)
            assert result == (pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value), (name, part)


def test_intervals_at_the_ends() -> None:
    unbounded = measured({"a": [-1.0, 3.0], "b": [5.0, 0.5]})
    assert unbounded["mean_reward"].low < 0, "an interval of rewards is not cut to [0, 1]"
    nothing = measured({"a": [0.0, 0.0], "b": [0.0, 0.0]})
    assert nothing["pass_at_1"].high > 0.3, "four failures do not prove that nothing can pass"


@pytest.mark.parametrize(
    ("most", "tail"), [(0, []), (1, [1]), (4, [1, 2, 3, 4]), (200, [199, 200]), (3000, [1024, 2048, 3000])]
)
def test_k_of_large_tasks_thins_out(most: int, tail: list[int]) -> None:
    found = ks_up_to(most)
    assert found[len(found) - len(tail) :] == tail
    assert found[:1024] == list(range(1, min(most, 1024) + 1))


def voted(rewards: Any, answers: list[Any], benchmark: Benchmark | None = None, **others: Any) -> dict[int, Any]:
    rollouts = make_rollouts(rewards, fields={(benchmark and benchmark.answer) or "extracted_answer": answers}, **others)
    return {each.k: each for each in majority(rollouts, scoring(rollouts, None), benchmark or Benchmark())}


def by_enumeration(answers: list[Any], rewards: list[float], k: int) -> float:
    """The definition: over all subsets, the mean score of the answers tied for most votes."""
    score = {a: np.mean([r for b, r in zip(answers, rewards, strict=True) if b == a]) for a in answers}
    won = []
    for subset in combinations(answers, k):
        votes = {a: subset.count(a) for a in subset if a is not None}
        best = [score[a] for a in votes if votes[a] == max(votes.values())]
        won.append(np.mean(best) if best else 0.0)
    return float(np.mean(won))


def test_none_and_blank_never_vote_and_without_answers_or_a_pass_rate_there_is_no_vote() -> None:
    for silent in (None, ..., "", "  "):
        found = voted({"a": [1, 0, 0]}, ["A", silent, silent])
        assert (found[3].value, found[1].value) == (1.0, pytest.approx(1 / 3))
    assert voted({"a": [1, 0]}, [None, None]) == {}
    assert voted({"a": [-5, 7]}, ["A", "B"]) == {}
    rollouts = make_rollouts({"a": [1, 0]})
    assert list(majority(rollouts, scoring(rollouts, None), Benchmark())) == []


def test_many_tasks_against_enumeration() -> None:
    rng = np.random.default_rng(3)
    rewards: dict[str, list[float]] = {}
    answers: list[Any] = []
    expected: dict[int, list[float]] = {k: [] for k in range(1, 6)}
    for i in range(60):
        n = int(rng.integers(2, 6))
        cast = [None if v == 3 else "ABC"[v] for v in rng.integers(0, 4, n)]
        right = [float(a == "A") for a in cast]
        if i % 7 == 0:
            right[0] = 1.0 - right[0]  # a verifier that wavers
        rewards[str(i)] = right
        answers += cast
        for k in range(1, n + 1):
            expected[k].append(by_enumeration(cast, right, k))
    found = voted(rewards, answers)
    for k, values in expected.items():
        assert found[k].n == len(values)
        assert found[k].value == pytest.approx(float(np.mean(values)))


def test_votes_that_would_take_minutes_are_named_and_left_out() -> None:
    rng = np.random.default_rng(0)
    answers = [f"answer {i}" for i in rng.integers(0, 30, 40 * 600)]
    rewards = {str(i): [float(a == "answer 0") for a in answers[600 * i : 600 * i + 600]] for i in range(40)}
    found = voted(rewards, answers)
    assert found[256].value is None
    assert found[256].method.startswith("not computed")
    assert found[1].value == pytest.approx(sum(a == "answer 0" for a in answers) / len(answers))
    assert found[600].n == 40, "the vote of all rows is a mere count"


@pytest.mark.parametrize("case", cases(__file__, "efforts"))
def test_effort_over_rows_that_report(case: dict[str, Any]) -> None:
    rollouts = make_rollouts(case["rewards"], **case.get("columns", {}))
    result = {f"{each.name} {each.slice}": each for each in effort(rollouts, scoring(rollouts, None))}
    for name, parts in case.get("expect", {}).items():
        assert {part: getattr(result[name], part) for part in parts} == parts
    names, labels = (sorted({getattr(each, part) for each in result.values()}) for part in ("name", "slice"))
    assert (names, labels) == (case.get("names", names), case.get("labels", labels))

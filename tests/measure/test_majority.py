"""What a vote of k answers would score."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from blade.measure.outcome_rates import majority as measures
from blade.measure.scoring import scoring
from blade.model import Benchmark
from tests.measure.builders import make_rollouts


def voted(rewards: Any, answers: list[Any], benchmark: Benchmark | None = None, **others: Any) -> dict[int, Any]:
    rollouts = make_rollouts(rewards, fields={(benchmark and benchmark.answer) or "extracted_answer": answers}, **others)
    return {each.k: each for each in measures(rollouts, scoring(rollouts, None), benchmark or Benchmark())}


def by_enumeration(answers: list[Any], rewards: list[float], k: int) -> float:
    """The definition: over all subsets, the mean score of the answers tied for most votes."""
    score = {a: np.mean([r for b, r in zip(answers, rewards, strict=True) if b == a]) for a in answers}
    won = []
    for subset in combinations(answers, k):
        votes = {a: subset.count(a) for a in subset if a is not None}
        best = [score[a] for a in votes if votes[a] == max(votes.values())]
        won.append(np.mean(best) if best else 0.0)
    return float(np.mean(won))


def test_reference_value() -> None:
    found = voted({"a": [1, 1, 0, 0]}, ["A", "A", "B", "C"])
    assert found[3].value == pytest.approx(2 / 3)
    assert found[1].value == pytest.approx(0.5)
    assert found[3].n == 1


def test_none_and_blank_never_vote() -> None:
    for silent in (None, ..., "", "  "):
        found = voted({"a": [1, 0, 0]}, ["A", silent, silent])
        assert found[3].value == 1.0
        assert found[1].value == pytest.approx(1 / 3)


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


def test_numbers_vote_and_the_field_can_be_declared() -> None:
    found = voted({"a": [1, 1, 0]}, [3, 3, 4], Benchmark(answer="verifier.answer"))
    assert found[3].value == 1.0


def test_masked_rows_do_not_vote() -> None:
    found = voted({"a": [0, 1, 1]}, ["B", "A", "A"], masked=[False, True, True])
    assert list(found) == [1]
    assert found[1].value == 0.0


def test_nothing_without_answers_or_a_pass_rate() -> None:
    assert voted({"a": [1, 0]}, [None, None]) == {}
    assert voted({"a": [-5, 7]}, ["A", "B"]) == {}
    rollouts = make_rollouts({"a": [1, 0]})
    assert list(measures(rollouts, scoring(rollouts, None), Benchmark())) == []


def test_k_is_dense_to_sixteen() -> None:
    found = voted({"a": [1.0, 0.0] * 20}, ["A", "B"] * 20)
    assert list(found) == [*range(1, 17), 32, 40]


def test_graded_answers_score_their_mean() -> None:
    rewards, answers = [0.2, 0.4, 0.9, 0.0, 0.1], ["A", "A", "B", "B", None]
    found = voted({"a": rewards}, answers)
    for k in range(1, 6):
        assert found[k].value == pytest.approx(by_enumeration(answers, rewards, k))


def test_votes_that_would_take_minutes_are_named_and_left_out() -> None:
    rng = np.random.default_rng(0)
    answers = [f"answer {i}" for i in rng.integers(0, 30, 40 * 600)]
    rewards = {str(i): [float(a == "answer 0") for a in answers[600 * i : 600 * i + 600]] for i in range(40)}
    found = voted(rewards, answers)
    assert found[256].value is None
    assert found[256].method.startswith("not computed")
    assert found[1].value == pytest.approx(sum(a == "answer 0" for a in answers) / len(answers))
    assert found[600].n == 40, "the vote of all rows is a mere count"

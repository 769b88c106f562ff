"""Scores by slice: a planted effect, its null twin, and fields that are no slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blade.measure.scoring import scoring
from blade.measure.slices import gaps, slices
from blade.model import Benchmark, Slice
from tests.measure.builders import make_rollouts


def sliced(rewards: Any, fields: Any, declared: tuple[str, ...] = (), **others: Any) -> dict[tuple[str, str], Slice]:
    rollouts = make_rollouts(rewards, fields=fields, **others)
    found = list(slices(rollouts, scoring(rollouts, None), Benchmark(slices=declared)))
    return {(each.field, each.value): each for each in found}


def planted(effect: float, seed: int = 5) -> tuple[dict[str, list[float]], dict[str, str]]:
    """120 tasks of 4 repeats; those of the category `hard` pass less often by `effect`."""
    rng = np.random.default_rng(seed)
    category = {str(i): ("easy", "medium", "hard")[i % 3] for i in range(120)}
    rewards = {
        key: (rng.random(4) < 0.7 - effect * (kind == "hard")).astype(float).tolist() for key, kind in category.items()
    }
    return rewards, category


def test_a_planted_effect_is_found_and_its_twin_is_not() -> None:
    rewards, category = planted(0.4)
    hard = sliced(rewards, {"category": category})["category", "hard"]
    assert hard.n_tasks == 40
    assert hard.p_adjusted < 1e-6
    assert hard.low < hard.pass_rate < hard.high < 0.5
    rewards, category = planted(0.0)
    twin = sliced(rewards, {"category": category})
    assert len(twin) == 3
    assert min(each.p_adjusted for each in twin.values()) > 0.05


def test_the_null_rejects_as_often_as_it_says() -> None:
    least = []
    for seed in range(60):
        rewards, category = planted(0.0, seed)
        least.append(min(each.p_adjusted for each in sliced(rewards, {"category": category}).values()))
    assert np.mean(np.array(least) < 0.05) < 0.15


def test_small_sides_have_no_p() -> None:
    rewards = {str(i): [float(i % 2)] for i in range(20)}
    found = sliced(rewards, {"level": {str(i): 1 if i < 4 else 2 for i in range(20)}})
    assert found["level", "1"].n_tasks == 4
    assert found["level", "1"].p_adjusted is None
    assert found["level", "2"].p_adjusted is None, "its rest has four tasks"


REWARDS = {str(i): [float(i % 2), float(i % 3 == 0)] for i in range(12)}


@pytest.mark.parametrize(
    ("name", "of_task", "labels"),
    [
        ("category", lambda i: "ab"[i % 2], ["a", "b"]),
        ("metadata.category", lambda i: "ba"[i % 2], ["a", "b"]),
        ("verifier_metadata.Difficulty", lambda i: 10 if i < 5 else 9, ["9", "10"]),
        ("language", lambda i: i < 4, ["false", "true"]),
        ("category", lambda i: "a", []),
        ("category", lambda i: f"id {i}", []),
        ("category", lambda i: [i % 2], []),
        ("category", lambda i: 0.5 if i % 2 else 0.25, []),
        ("category", lambda i: "long " * 40 if i else "short", []),
        ("error.type", lambda i: "ab"[i % 2], []),
        ("shoe_size", lambda i: "ab"[i % 2], []),
    ],
)
def test_which_fields_are_slices(name: str, of_task: Any, labels: list[str]) -> None:
    found = sliced(REWARDS, {name: {str(i): of_task(i) for i in range(12)}})
    assert [value for _, value in found] == labels


def test_input_fields_may_have_any_name() -> None:
    fields = {"shoe_size": {str(i): 40 + i % 2 for i in range(12)}}
    assert list(sliced(REWARDS, fields, input_fields=["shoe_size"])) == [("shoe_size", "40"), ("shoe_size", "41")]


def test_a_field_that_changes_within_tasks_is_no_slice() -> None:
    values = ["ab"[i % 2] for i in range(24)]
    assert sliced(REWARDS, {"category": values}) == {}


def test_rows_that_lack_the_field_do_not_hide_it() -> None:
    values: list[Any] = [("ab"[i // 2 % 2]) for i in range(24)]
    values[3] = ...
    values[10] = values[11] = None
    found = sliced(REWARDS, {"category": values})
    assert [each.n_tasks for each in found.values()] == [6, 5]


def test_a_field_that_decides_the_score_is_shown() -> None:
    rewards = {str(i): [float(i % 2)] for i in range(12)}
    level = {str(i): "easy" if i % 2 else "hard" for i in range(12)}
    found = sliced(rewards, {"level": level})
    assert len(found) == 2


def test_an_alias_stands_once() -> None:
    fields = {
        "metadata.topic": {str(i): "ab"[i % 2] for i in range(12)},
        "subject": {str(i): "BA"[i % 2] for i in range(12)},
    }
    assert [field for field, _ in sliced(REWARDS, fields)] == ["subject", "subject"]


def test_declared_slices_are_the_only_ones_and_gaps_name_the_rest() -> None:
    fields = {
        "category": {str(i): "ab"[i % 2] for i in range(12)},
        "shoe_size": {str(i): i % 2 for i in range(12)},
        "split": ["ab"[i % 2] for i in range(24)],
    }
    found = sliced(REWARDS, fields, declared=("shoe_size", "split", "nowhere"))
    assert {field for field, _ in found} == {"shoe_size"}
    rollouts = make_rollouts(REWARDS, fields=fields)
    benchmark = Benchmark(slices=("shoe_size", "split", "nowhere"))
    left = [gap.what for gap in gaps(rollouts, scoring(rollouts, None), benchmark)]
    assert left == ["slices by split", "slices by nowhere"]


def test_tasks_without_a_scored_row_are_in_no_slice() -> None:
    rollouts = {str(i): [1.0] for i in range(12)}
    fields = {"category": {str(i): "ab"[i % 2] for i in range(12)}}
    found = sliced(rollouts, fields, masked=[i == 0 for i in range(12)])
    assert [each.n_tasks for each in found.values()] == [5, 6]


def test_unbounded_rewards() -> None:
    rewards = {str(i): [float(i), -3.0] for i in range(12)}
    found = sliced(rewards, {"category": {str(i): "ab"[i // 6] for i in range(12)}})
    assert found["category", "a"].pass_rate == pytest.approx(-0.25)
    assert found["category", "a"].low < -0.25
    assert found["category", "b"].high > 1


def test_an_empty_run() -> None:
    assert sliced({}, {"category": []}) == {}

"""Fields that describe tasks: those that are found, their codes by row, and fields that are none."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from blade.measure.scoring import scoring
from blade.measure.slices import by_row, fields, gaps
from blade.model import Benchmark
from tests.measure.builders import make_rollouts


def sliced(
    rewards: Any, told: Any, declared: tuple[str, ...] = (), **others: Any
) -> dict[tuple[str, str], int]:
    """The rows of each value of each field, in the order of the fields and their labels."""
    rollouts = make_rollouts(rewards, fields=told, **others)
    scored, benchmark = scoring(rollouts, None), Benchmark(slices=declared)
    found = by_row(rollouts, scored, benchmark)
    assert fields(rollouts, scored, benchmark) == list(found)
    assert all(codes.size == scored.rows.size for codes, _ in found.values())
    counts = {name: Counter(codes.tolist()) for name, (codes, _) in found.items()}
    return {
        (name, label): counts[name][at]
        for name, (_, labels) in found.items()
        for at, label in enumerate(labels)
    }


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


def test_every_row_has_the_code_of_its_task() -> None:
    rollouts = make_rollouts(REWARDS, fields={"category": {str(i): "ba"[i % 2] for i in range(12)}})
    codes, labels = by_row(rollouts, scoring(rollouts, None), Benchmark())["category"]
    assert [labels[code] for code in codes] == [
        "ba"[int(rollouts.task_keys[task]) % 2] for task in rollouts.task
    ]


def test_input_fields_may_have_any_name() -> None:
    told = {"shoe_size": {str(i): 40 + i % 2 for i in range(12)}}
    assert list(sliced(REWARDS, told, input_fields=["shoe_size"])) == [("shoe_size", "40"), ("shoe_size", "41")]


def test_a_field_that_changes_within_tasks_is_no_slice() -> None:
    values = ["ab"[i % 2] for i in range(24)]
    assert sliced(REWARDS, {"category": values}) == {}


def test_rows_that_lack_the_field_do_not_hide_it() -> None:
    values: list[Any] = [("ab"[i // 2 % 2]) for i in range(24)]
    values[3] = ...
    values[10] = values[11] = None
    found = sliced(REWARDS, {"category": values})
    assert list(found.values()) == [12, 10]


def test_an_alias_stands_once() -> None:
    told = {
        "metadata.topic": {str(i): "ab"[i % 2] for i in range(12)},
        "subject": {str(i): "BA"[i % 2] for i in range(12)},
    }
    assert [field for field, _ in sliced(REWARDS, told)] == ["subject", "subject"]


def test_declared_slices_are_the_only_ones_and_gaps_name_the_rest() -> None:
    told = {
        "category": {str(i): "ab"[i % 2] for i in range(12)},
        "shoe_size": {str(i): i % 2 for i in range(12)},
        "split": ["ab"[i % 2] for i in range(24)],
    }
    found = sliced(REWARDS, told, declared=("shoe_size", "split", "nowhere"))
    assert {field for field, _ in found} == {"shoe_size"}
    rollouts = make_rollouts(REWARDS, fields=told)
    benchmark = Benchmark(slices=("shoe_size", "split", "nowhere"))
    left = [gap.what for gap in gaps(rollouts, scoring(rollouts, None), benchmark)]
    assert left == ["slices by split", "slices by nowhere"]

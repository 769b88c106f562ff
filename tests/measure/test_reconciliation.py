"""Reported numbers beside ours, and why they differ."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from blade.measure.reconciliation import UNEXPLAINED, compared
from blade.measure.scoring import scoring
from blade.model import Compared, ReportedNumber
from tests.measure.builders import F1_A, make_coverage, make_rollouts


def held(rewards: Any, name: str, value: float, missing: Any = None, **columns: Any) -> Compared:
    rollouts = make_rollouts(rewards, **columns)
    reported = [ReportedNumber("run", "agg.json", "agent", name, value)]
    (found,) = compared("run", reported, rollouts, make_coverage(rollouts, **(missing or {})), scoring(rollouts, None))
    assert (found.run, found.file, found.name, found.reported) == ("run", "agg.json", name, value)
    return found


F1_ROWS = [value for row in F1_A.values() for value in row]


@pytest.mark.parametrize(
    ("name", "value", "ours", "explanation"),
    [
        ("mean/reward", 0.5, 0.5, "agrees"),
        ("max/reward", 1.0, 1.0, "agrees"),
        ("median/reward", 0.5, 0.5, "agrees"),
        ("std/reward", statistics.stdev(F1_ROWS), statistics.stdev(F1_ROWS), "agrees"),
        ("pass@1/accuracy", 50.0, 0.5, "agrees: reported in percent"),
        ("pass@2/accuracy", 64.58333333333333, 0.6458333333, "agrees: reported in percent"),
        ("pass@4/accuracy", 0.75, 0.75, "agrees"),
        ("pass@1[avg-of-4]/accuracy", 50.0, 0.5, "agrees: reported in percent"),
        ("pass@1[avg-of-1]/accuracy", 75.0, 0.5, "agrees: mean of the first 1 rows of each task, in percent"),
        ("pass@1[avg-of-999999]/accuracy", 50.0, 0.5, "agrees: reported in percent"),  # a huge k costs nothing
        ("pass@1[avg-of-999999]/accuracy", 51.0, 0.5, UNEXPLAINED),
        ("num_rollouts", 32.0, 32, "agrees"),
        ("mean/reward", 0.51, 0.5, UNEXPLAINED),
        ("pass@9/accuracy", 50.0, None, UNEXPLAINED),
        ("num_tasks", 9.0, 8, UNEXPLAINED),
    ],
)
def test_f1(name: str, value: float, ours: float | None, explanation: str) -> None:
    found = held(F1_A, name, value)
    assert found.explanation == explanation
    assert found.ours == (None if ours is None else pytest.approx(ours))


def test_spread_across_runs() -> None:
    means = [statistics.mean(row[i] for row in F1_A.values()) for i in range(4)]
    deviation = 100 * statistics.stdev(means)
    name = "pass@1[avg-of-4]/accuracy/std_dev_across_runs"
    assert held(F1_A, name, deviation).explanation == "agrees: spread of repeat means, in percent"
    name = "pass@1[avg-of-4]/accuracy/std_err_across_runs"
    assert held(F1_A, name, deviation / 2).explanation == "agrees: spread of repeat means, in percent"


def test_the_first_k_of_graded_rewards() -> None:
    graded = {"a": [0.1, 0.4, 0.7], "b": [0.2, 0.3, 0.9]}
    found = held(graded, "pass@2/accuracy", 35.0)
    assert found.explanation == "agrees: best of the first 2 rows of each task, in percent"
    assert found.ours == pytest.approx((0.6 + 0.7) / 2)
    mixed = {"a": [0.0, 1.0, 1.0], "b": [0.9, 0.2, 0.3]}
    assert held(mixed, "pass@2/accuracy", 95.0).explanation.startswith("agrees: best of the first 2 rows")


def test_masked_rows() -> None:
    found = held({"a": [1.0, 0.0], "b": [1.0, 0.0]}, "mean/reward", 0.5, masked=[False, True, False, False])
    assert found.explanation == "agrees: with the masked rows"
    assert found.ours == pytest.approx(2 / 3)
    found = held({"a": [1.0, 0.0], "b": [1.0, 0.0]}, "pass@2/accuracy", 100.0, masked=[False, True, False, False])
    assert found.explanation == "agrees: reported in percent"
    found = held({"a": [1.0, 0.0], "b": [0.0, 0.0]}, "pass@2/accuracy", 50.0, masked=[False, True, False, False])
    assert found.explanation == "agrees: in percent, with the masked rows"


@pytest.mark.parametrize(("value", "which"), [(0.25, "first"), (0.75, "last")])
def test_duplicate_keys(value: float, which: str) -> None:
    rows = [("a", 0, 0.0), ("a", 0, 1.0), ("a", 1, 0.5)]
    assert held(rows, "mean/reward", value).explanation == f"agrees: with the {which} row of each duplicate key"


def test_null_rewards() -> None:
    found = held({"a": [1.0, None]}, "mean/reward", 1.0)
    assert found.explanation == "agrees: rows without a usable reward are left out there and count as 0 here"
    assert found.ours == 0.5


def test_counts_with_what_was_left_out() -> None:
    missing = {"identical_duplicates": 3, "duplicates": 3, "superseded": 2}
    assert held(F1_A, "num_rollouts", 35.0, missing).explanation == "agrees: with the identical duplicates"
    assert held(F1_A, "num_rollouts", 37.0, missing).explanation.endswith("duplicates and superseded attempts")
    stale = held(F1_A, "num_rollouts", 99.0, missing)
    assert stale.explanation == f"{UNEXPLAINED}; 5 duplicate or superseded rows are left out here"
    masked = {"masked": [True] * 4 + [False] * 28}
    assert held(F1_A, "coverage/fully_masked_tasks", 1.0, **masked).explanation == "agrees"
    assert held(F1_A, "coverage/measured_rollouts", 28.0, **masked).explanation == "agrees"


def test_fields_and_usage() -> None:
    tokens = [float(i) for i in range(32)]
    assert held(F1_A, "mean/output_tokens", 15.5, output_tokens=tokens).explanation == "agrees"
    found = held(F1_A, "mean/judged", 0.25, fields={"judged": [i % 4 == 0 for i in range(32)]})
    assert (found.explanation, found.ours) == ("agrees", 0.25)
    assert held(F1_A, "pass@1/judged", 25.0, fields={"judged": [i % 4 == 0 for i in range(32)]}).ours == 25.0


@pytest.mark.parametrize(
    "name",
    ["arena_elo/x", "mean/nowhere", "pass@0/accuracy", "pass@2[avg-of-2]/accuracy", "pass@9999999/accuracy", "mean/total_tokens"],
)
def test_names_without_a_definition(name: str) -> None:
    found = held(F1_A, name, 1.0)
    assert found.ours is None
    assert found.explanation == "not recomputed: BLADE has no definition of this name"


def test_an_empty_run() -> None:
    assert held({}, "mean/reward", 0.5).explanation == "not recomputed: no scored row"
    assert held({}, "num_rollouts", 0.0).explanation == "agrees"

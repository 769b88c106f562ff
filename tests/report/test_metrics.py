"""The metrics sidecar: the keys other tools read, as fractions and counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from blade.model import Report
from blade.report import metrics

KEYS = (
    "model model_name benchmark pass_at_1 pass_at_k consistency coverage total_tasks num_tasks total_rollouts num_rollouts "
    "passed_rollouts failed_rollouts always_pass_tasks sometimes_pass_tasks always_fail_tasks missing_tasks repeats score_name "
    "score dominant_failure_type dominant_failure_count dominant_failure_fraction"
).split()


def test_one_run_is_one_object(one_run: Report) -> None:
    found = json.loads(metrics.render(one_run))
    assert set(KEYS) <= set(found)
    assert found["pass_at_1"] == found["score"] == 0.5
    assert found["pass_at_k"] == 0.75
    assert found["k"] == 4
    assert found["passed_rollouts"] + found["failed_rollouts"] == found["num_rollouts"] == 32
    assert [found[f"{b}_tasks"] for b in ("always_pass", "sometimes_pass", "always_fail", "missing")] == [
        2,
        4,
        2,
        0,
    ]
    assert found["dominant_failure_type"] is None


def test_several_runs_are_named(cases: dict[str, Callable[[], Report]]) -> None:
    found = json.loads(metrics.render(cases["two runs"]()))
    assert list(found) == ["runs"]
    assert list(found["runs"]) == ["airline", "airline-b"]


def test_without_a_pass_rate_there_are_no_passes(cases: dict[str, Callable[[], Report]]) -> None:
    found: dict[str, Any] = json.loads(metrics.render(cases["unbounded"]()))
    assert found["score_name"] == "mean_reward"
    for key in ("pass_at_1", "pass_at_k", "passed_rollouts", "failed_rollouts", "always_pass_tasks"):
        assert found[key] is None


def test_every_report_has_metrics(report: Report) -> None:
    assert metrics.render(report).endswith("}\n")
    assert metrics.render(report) == metrics.render(report)

"""JSON reports and sidecars: the key says what a value is about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from blade.check.reader import read_json
from blade.check.world import World

SIDECAR: dict[str, Any] = {
    "model_name": "alpha-7b", "pass_at_1": 0.4375, "pass_at_k": 0.667, "k": 4, "consistency": 0.25, "total_tasks": 12,
    "total_rollouts": 48, "passed_rollouts": 21, "failed_rollouts": 27, "always_pass_tasks": 3,
    "sometimes_pass_tasks": 5, "always_fail_tasks": 4, "repeats": 4,
    "per_category": {"refund": {"pass_rate": 0.8125, "num_tasks": 4}},
    "buckets": {"never": ["2", "5", "8", "11"]},
}  # fmt: skip
FALSE: dict[str, Any] = {
    "pass_at_1": 0.44375, "pass_at_k": 0.58, "consistency": 0.35, "total_tasks": 13, "total_rollouts": 52,
    "passed_rollouts": 27, "failed_rollouts": 21, "always_pass_tasks": 4, "sometimes_pass_tasks": 4,
    "always_fail_tasks": 5, "repeats": 5, "per_category": {"refund": {"pass_rate": 0.5}}, "buckets": {"never": ["2", "4"]},
}  # fmt: skip


def contradicted(value: object, known: World) -> list[str]:
    return [one.text for one in read_json(value, known) if one.verdict == "contradicted"]


def test_a_true_sidecar_is_supported_throughout(alpha: World) -> None:
    found = read_json(SIDECAR, alpha)
    assert {one.verdict for one in found} == {"supported"}
    assert len(found) >= 17


@pytest.mark.parametrize("key", FALSE)
def test_one_false_value_is_the_one_that_is_told(alpha: World, key: str) -> None:
    (path,) = contradicted({**SIDECAR, key: FALSE[key]}, alpha)
    assert path.split(".")[0] == key


def test_models_side_by_side(both: World) -> None:
    told = {"models": {"alpha": {"pass_at_1": 0.4375}, "beta": {"pass_at_1": 0.4375}}}
    assert contradicted(told, both) == ["models.beta.pass_at_1"]
    assert contradicted(
        [{"model": "alpha", "pass_at_1": 79.2}, {"model": "beta", "pass_at_1": 79.2}], both
    ) == ["[0].pass_at_1"]


def test_a_model_that_no_run_is_of_is_not_judged(alpha: World) -> None:
    (one,) = read_json({"model_name": "gamma", "pass_at_1": 0.9}, alpha)
    assert (one.verdict, one.why) == ("unverifiable", "no run named gamma")


def test_what_stands_under_an_unknown_key_is_not_judged(alpha: World) -> None:
    assert contradicted({"ablation": {"pass_at_1": 0.9}, "pass_at_1": 0.4375}, alpha) == []


def test_lines_are_those_of_the_text(alpha: World) -> None:
    text = json.dumps({**SIDECAR, "total_tasks": 13}, indent=1)
    (one,) = [one for one in read_json(json.loads(text), alpha, text) if one.verdict == "contradicted"]
    assert "total_tasks" in text.splitlines()[one.line - 1]


def test_deep_and_strange_values_are_survived(alpha: World) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = {"x": [deep]}
    assert (
        read_json([deep, None, "text", {"pass_at_1": None, "total_tasks": float("nan"), "": []}], alpha) == []
    )

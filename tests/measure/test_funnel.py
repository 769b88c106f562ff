"""How many rollouts reached each stage."""

from __future__ import annotations

from typing import Any

import pytest

from blade.measure.funnel import funnel
from blade.measure.scoring import scoring
from blade.model import Benchmark, Funnel, Stage
from tests.measure.builders import make_coverage, make_rollouts


def flow(rewards: Any, *stages: Stage, missing: Any = None, **columns: Any) -> tuple[dict[str, int], Funnel]:
    rollouts = make_rollouts(rewards, **columns)
    found = funnel(rollouts, make_coverage(rollouts, **(missing or {})), scoring(rollouts, None), Benchmark(stages=stages))
    return {each.name: each.reached for each in found.stages}, found


def test_inferred_stages_over_expected_rollouts() -> None:
    reached, found = flow(
        {"a": [1.0, 0.0, 0.0, None, 1.0]},
        n_items=[3, 2, 0, 1, 2],
        n_calls=[1, 1, 0, 0, 1],
        last_kind=["message", "call", "none", "message", "message"],
        truncated=[False, False, False, True, False],
        masked=[False, False, False, False, True],
        has_reward=[True, True, True, False, True],
        missing={"lost": [("a", 5)], "failed": [("a", 6)]},
    )
    assert reached == {
        "started": 5,
        "produced output": 4,
        "called a tool": 3,
        "finished": 2,
        "reached the verifier": 4,
        "scored": 3,
        "passed": 1,
    }
    assert found.source == "inferred"
    assert {each.of for each in found.stages} == {7}


def test_a_null_reward_reached_the_verifier() -> None:
    reached, _ = flow({"a": [1.0, None, None]}, has_reward=[True, True, False])
    assert (reached["reached the verifier"], reached["scored"]) == (2, 1)


@pytest.mark.parametrize(("rewards", "finished"), [([1.0, 0.0], 2), ([0.0, 0.0], 0), ([-1.0, 1.0], 2)])
def test_a_tool_result_ends_a_rollout_where_the_best_rows_end_with_one(rewards: list[float], finished: int) -> None:
    reached, _ = flow({"a": rewards}, last_kind=["result", "result"])
    assert reached["finished"] == finished


def test_surplus_rows_of_a_key_count_once() -> None:
    reached, found = flow([("a", 0, 1.0), ("a", 0, 0.0), ("a", 1, 0.0)])
    assert (reached["started"], reached["passed"]) == (2, 1)
    assert found.stages[0].of == 2


def test_declared_stages() -> None:
    reached, found = flow(
        {"a": [1.0, 0.0, 0.0, 0.0]},
        Stage("compiled", "compiled", equals=True),
        Stage("ran", "status", equals="ok"),
        Stage("half the tests", "tests", at_least=0.5),
        Stage("answered", "answer", present=True),
        Stage("silent", "answer", present=False),
        Stage("acted", "n_calls", at_least=1),
        Stage("spoke last", "last_kind", equals="message"),
        Stage("said", "answer"),
        fields={
            "compiled": [True, True, False, ...],
            "status": ["ok", "failed", "failed", None],
            "tests": [1.0, 0.5, 0.25, ...],
            "answer": ["x", "y", None, ...],
        },
        n_calls=[2, 1, 0, 0],
        last_kind=["message", "call", "message", "message"],
    )
    assert reached == {
        "compiled": 2, "ran": 1, "half the tests": 2, "answered": 2, "silent": 2, "acted": 2, "spoke last": 3, "said": 2,
    }  # fmt: skip
    assert found.source == "blade.toml"


def test_a_stage_over_a_field_that_no_row_has_is_named() -> None:
    reached, found = flow({"a": [1.0]}, Stage("x", "nowhere"), Stage("y", "n_items", at_least=1))
    assert reached == {"y": 1}
    assert found.source == "blade.toml (no row has: nowhere)"

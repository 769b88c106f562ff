"""How many rollouts reached each stage."""

from __future__ import annotations

from typing import Any

import pytest

from blade.measure.funnel import funnel
from blade.measure.scoring import scoring
from blade.model import Benchmark, Stage
from tests.case_tables import cases
from tests.measure.builders import make_coverage, make_rollouts


@pytest.mark.parametrize("case", cases(__file__, "funnel"), ids=lambda case: case["name"])
def test_stages_that_rollouts_reach(case: dict[str, Any]) -> None:
    fields = {name: [... if value == "ABSENT" else value for value in values] for name, values in case.get("fields", {}).items()}
    rollouts = make_rollouts(case["rewards"], fields=fields, **case.get("columns", {}))
    missing = {name: [tuple(key) for key in keys] for name, keys in case.get("missing", {}).items()}
    benchmark = Benchmark(stages=tuple(Stage(**stage) for stage in case.get("stages", ())))
    result = funnel(rollouts, make_coverage(rollouts, **missing), scoring(rollouts, None), benchmark)
    reached = {stage.name: stage.reached for stage in result.stages}
    assert {name: n for name, n in reached.items() if name in case["reached"] or "whole" in case} == case["reached"]
    assert result.source == case.get("source", result.source)
    assert {stage.of for stage in result.stages} == {case.get("of", result.stages[0].of)}

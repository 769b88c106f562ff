"""Fields that describe tasks, stages that rollouts reach, and reported numbers beside ours."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

import pytest

from blade.measure.funnel import funnel
from blade.measure.reconciliation import UNEXPLAINED, compared
from blade.measure.scoring import scoring
from blade.measure.slices import by_row, fields, gaps
from blade.model import Benchmark, ReportedNumber, Stage
from tests.case_tables import cases, tables
from tests.measure.builders import F1_A, make_coverage, make_rollouts

REWARDS = {str(i): [float(i % 2), float(i % 3 == 0)] for i in range(12)}
STAND_INS = {"LONG": "long " * 40, "ABSENT": ...}


def repeated(values: list[Any], n: int) -> list[Any]:
    return [STAND_INS.get(value, value) if isinstance(value, str) else value for value in islice(cycle(values), n)]


@pytest.mark.parametrize("case", cases(__file__, "slices"), ids=lambda case: case["name"])
def test_which_fields_are_slices(case: dict[str, Any]) -> None:
    told: dict[str, Any] = {name: dict(zip(REWARDS, repeated(values, 12), strict=True)) for name, values in case.get("fields", {}).items()}
    told |= {name: repeated(values, 24) for name, values in case.get("by_row", {}).items()}
    rollouts = make_rollouts(REWARDS, fields=told, input_fields=case.get("input_fields", ()))
    rule, benchmark = scoring(rollouts, None), Benchmark(slices=tuple(case.get("declared", ())))
    columns = by_row(rollouts, rule, benchmark)
    assert fields(rollouts, rule, benchmark) == list(columns)
    assert all(codes.size == rule.rows.size for codes, _ in columns.values())
    rows = {name: codes.tolist() for name, (codes, _) in columns.items()}
    counts = [[name, label, rows[name].count(code)] for name, (_, labels) in columns.items() for code, label in enumerate(labels)]
    assert counts == case["slices"]
    assert [gap.what for gap in gaps(rollouts, rule, benchmark)] == case.get("gaps", [])


def test_every_row_has_the_code_of_its_task() -> None:
    rollouts = make_rollouts(REWARDS, fields={"category": {str(i): "ba"[i % 2] for i in range(12)}})
    codes, labels = by_row(rollouts, scoring(rollouts, None), Benchmark())["category"]
    assert [labels[code] for code in codes] == ["ba"[int(rollouts.task_keys[task]) % 2] for task in rollouts.task]


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


@pytest.mark.parametrize("case", tables(__file__, "reconciliation_cases.yaml"), ids=lambda case: f"{case['name']} {case['value']}")
def test_a_reported_number_beside_ours(case: dict[str, Any]) -> None:
    rewards = F1_A if case["rewards"] == "F1_A" else case["rewards"]
    columns: dict[str, Any] = {}
    if "masked" in case:
        n_rows = sum(map(len, rewards.values()))
        columns["masked"] = [row in case["masked"] for row in range(n_rows)]
    if "output_tokens" in case:
        columns["output_tokens"] = [float(row) for row in range(32)]
    if "judged" in case:
        columns["fields"] = {"judged": [row % 4 == 0 for row in range(32)]}
    rollouts = make_rollouts(rewards, **columns)
    reported = [ReportedNumber("run", "agg.json", "agent", case["name"], case["value"])]
    coverage = make_coverage(rollouts, **case.get("missing", {}))
    (found,) = compared("run", reported, rollouts, coverage, scoring(rollouts, None))
    assert (found.run, found.file, found.name, found.reported) == ("run", "agg.json", case["name"], case["value"])
    says = case.get("says", "…").replace("UNEXPLAINED", UNEXPLAINED).replace("UNDEFINED", "not recomputed: BLADE has no definition of this name")
    assert found.explanation.startswith(says[:-1]) if says.endswith("…") else found.explanation == says
    if "ours" in case:
        assert found.ours == (None if case["ours"] is None else pytest.approx(case["ours"]))

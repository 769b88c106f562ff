"""Reported numbers beside ours, and why they differ."""

from __future__ import annotations

from typing import Any

import pytest

from blade.measure.reconciliation import UNEXPLAINED, compared
from blade.measure.scoring import scoring
from blade.model import ReportedNumber
from tests.case_tables import tables
from tests.measure.builders import F1_A, make_coverage, make_rollouts

UNDEFINED = "not recomputed: BLADE has no definition of this name"


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
    says = case.get("says", "…").replace("UNEXPLAINED", UNEXPLAINED).replace("UNDEFINED", UNDEFINED)
    assert found.explanation.startswith(says[:-1]) if says.endswith("…") else found.explanation == says
    if "ours" in case:
        assert found.ours == (None if case["ours"] is None else pytest.approx(case["ours"]))

"""Fields that describe tasks: those that are found, their codes by row, and fields that are none."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Any

import pytest

from blade.measure.scoring import scoring
from blade.measure.slices import by_row, fields, gaps
from blade.model import Benchmark
from tests.case_tables import cases
from tests.measure.builders import make_rollouts

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

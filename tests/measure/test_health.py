"""Flags about the evaluation itself: each fires on its fault and is silent on a sound run."""

from __future__ import annotations

from typing import Any

import pytest

from blade.measure.health import health, share
from blade.measure.scoring import scoring
from blade.model import Evidence, Health, Level
from tests.case_tables import cases, tables
from tests.measure.builders import F1_A, make_coverage, make_rollouts

SOUND = {str(i): [1.0, 0.0] for i in range(20)}
ROWS = 40


def flags(rewards: Any, missing: Any = None, threshold: float | None = None, **columns: Any) -> dict[str, Health]:
    rollouts = make_rollouts(rewards, **columns)
    coverage = make_coverage(rollouts, **(missing or {}))

    def quote(position: int, field: str) -> Evidence | None:
        task = rollouts.task_keys[rollouts.task[position]]
        return Evidence("run", task, int(rollouts.repeat[position]), field=field, quote="…")

    return {each.flag: each for each in health(rollouts, coverage, scoring(rollouts, threshold), quote)}


def some(n: int, of: int = ROWS) -> list[bool]:
    return [i < n for i in range(of)]


def columns_of(case: dict[str, Any]) -> dict[str, Any]:
    """The columns as written, or so many of the first rows: masked, empty, truncated, ended on a call, on reasoning up to there."""
    first = case.get("first", {})
    columns = case.get("columns", {}) | {name: some(first[name]) for name in ("masked", "truncated") if name in first}
    if "empty" in first:
        columns["n_items"] = [0 if is_empty else 1 for is_empty in some(first["empty"])]
    if "call" in first:
        calls, upto = first["call"], first["reasoning"]
        columns["last_kind"] = ["call"] * calls + ["reasoning"] * (upto - calls) + ["message"] * (ROWS - upto)
    return columns


def shown(flag: Health, part: str) -> Any:
    return {
        "level": flag.level.value, "keys": [[each.task, each.repeat] for each in flag.evidence],
        "tasks": [each.task for each in flag.evidence], "fields": [each.field for each in flag.evidence],
    }.get(part, getattr(flag, part, None))  # fmt: skip


@pytest.mark.parametrize("case", tables(__file__, "health_cases.yaml"), ids=lambda case: case["name"])
def test_flags(case: dict[str, Any]) -> None:
    rewards = {"F1_A": F1_A, "SOUND": SOUND}[case["rewards"]] if isinstance(case["rewards"], str) else case["rewards"]
    missing = {
        name: [tuple(key) for key in value] if isinstance(value, list) else value
        for name, value in case.get("missing", {}).items()
    }
    found = flags(rewards, missing, case.get("threshold"), **columns_of(case))
    assert not found or not case.get("only")
    assert not set(case.get("absent", ())) & set(found)
    for name, parts in case["expect"].items():
        for part, value in parts.items():
            result = shown(found[name], part)
            if part == "text" and value.endswith("…"):
                assert result.startswith(value[:-1])
            else:
                assert result == (pytest.approx(value) if isinstance(value, float) else value)


@pytest.mark.parametrize("case", cases(__file__, "gaps"))
def test_a_gap_in_the_numbers_of_tasks_is_told(case: dict[str, Any]) -> None:
    first, absent = case.get("first", 0), case.get("absent", [])
    numbers = (task for task in range(first, first + case.get("n", 60)) if task not in absent)
    rewards = {f"{case.get('prefix', '')}{task}": [1.0, 0.0] for task in numbers}
    flag = flags(rewards, {"expected_from": case.get("expected_from", "inferred: tasks x modal repeats")}).get("absent_tasks")
    assert (flag is not None) == case["expect"]
    if flag is not None and len(absent) == 2:
        assert flag.level is Level.WARNING
        assert flag.text == "No row has the task index 17, 41: 2 of 60 tasks may be missing altogether and not counted."
        assert (flag.value, flag.n) == (pytest.approx(2 / 60), 60)


def test_missing_rows_that_matter() -> None:
    rewards = {str(i): [1.0] for i in range(18)} | {"18": [0.0], "19": [0.0]}
    lost = [(str(i), repeat) for i in range(20) for repeat in (1,)]
    found = flags(rewards, {"lost": lost})["missing_rows_matter"]
    assert found.level is Level.PROBLEM
    assert found.text.startswith("Missing rows matter: pass_at_1 is 90.0% over 20 tasks without them and 45.0%")
    assert "missing_rows_matter" not in flags(SOUND | {"20": [1.0, 1.0]}, {"lost": [("0", 2)]})


def test_rows_that_cannot_be_quoted_are_passed_over() -> None:
    rollouts = make_rollouts(SOUND, masked=some(20))
    asked: list[int] = []

    def quote(position: int, field: str) -> Evidence | None:
        asked.append(position)
        return Evidence("run", "0", 0, field=field, quote="true") if position > 1 else None

    found = {each.flag: each for each in health(rollouts, make_coverage(rollouts), scoring(rollouts, None), quote)}
    assert len(found["masked_rows"].evidence) == 3
    assert asked == [0, 1, 2, 3, 4], "no row is opened that is not needed"


@pytest.mark.parametrize(("part", "whole", "text"), cases(__file__, "shares"))
def test_shares_are_exact_at_the_ends(part: int, whole: int, text: str) -> None:
    assert share(part, whole) == text

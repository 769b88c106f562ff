"""Five tasks, four repeats, the gold in the materialised inputs alone: two faults that are behaviour, not knowledge.

One errand never passes, because a name is never resolved to an owner before the parcel is moved. Another passes three
times in four; once the dates are compared in the head instead of in the query, and a parcel of the wrong side of the
boundary is taken.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.diagnose.diagnosed import Diagnose, told_of
from tests.diagnose.rows import Act, Key, Row, grid, key_of, make_row

OWNERS = ("Ada Brook", "Ben Marsh", "Cleo Ford", "Dora Hill", "Edan Vale")
TOOLS = ("find_resident", "search_parcels", "redirect_parcel")
NAME_FAULT: set[Key] = {(3, repeat) for repeat in range(4)}
DATE_FAULT: set[Key] = {(1, 2)}
GUESSES = ("Dora Hill", "dora.hill", "D. Hill", "Hill, Dora")


def resolve(task: int) -> Act:
    return ("find_resident", {"name": OWNERS[task]}, json.dumps({"owner": f"R-{40 + task}", "name": OWNERS[task]}))


def search(task: int, **dates: str) -> Act:
    arguments = {"shelf": f"S{task}", **dates}
    items = [{"number": f"P-{task}1", "arrived": "2031-04-30"}]
    if not dates:
        items.append({"number": f"P-{task}2", "arrived": "2031-05-01"})
    return ("search_parcels", arguments, json.dumps(items))


def redirect(task: int, owner: str | None = None, item: int = 1) -> Act:
    arguments = {"number": f"P-{task}{item}", "owner": owner or f"R-{40 + task}"}
    return ("redirect_parcel", arguments, json.dumps({"moved": arguments["number"]}))


def acts(task: int, repeat: int) -> list[Act]:
    end = f"I moved the parcel for {OWNERS[task]}." + " Anything else?" * (repeat % 2)
    if (task, repeat) in NAME_FAULT:
        return [search(task, before="2031-05-01"), redirect(task, GUESSES[repeat]), end]
    if (task, repeat) in DATE_FAULT:
        return [resolve(task), search(task), redirect(task, item=2), end]
    return [resolve(task), search(task, before="2031-05-01"), redirect(task), end]


def gold(task: int, with_reads: bool) -> list[dict[str, Any]]:
    """The calls that are due, as an inputs file states them: arguments as a JSON text."""
    calls = [resolve(task), search(task, before="2031-05-01"), redirect(task)] if with_reads else [redirect(task)]
    return [{"name": call[0], "arguments": json.dumps(call[1])} for call in calls if isinstance(call, tuple)]


def files(holder: str, with_reads: bool) -> tuple[list[Row], list[Row]]:
    """The rollouts, which do not repeat the gold, and the inputs beside them, which hold it."""
    rows, inputs = [], []
    for task, repeat in grid(5, 4):
        prompt = f"Please move the parcel on shelf S{task} that came before May 2031 to {OWNERS[task]}'s new address."
        reward = float((task, repeat) not in NAME_FAULT | DATE_FAULT)
        row = make_row(task, repeat, reward, acts(task, repeat), prompt=prompt, tools=TOOLS)
        rows.append(row)
        asked = {name: value for name, value in row.items() if name not in ("response", "reward")}
        inputs.append({**asked, holder: gold(task, with_reads)})
    return rows, inputs


@pytest.mark.parametrize("with_reads", [False, True])
@pytest.mark.parametrize("holder", ["ground_truth", "expected_actions"])
def test_both_faults_are_behaviour(diagnose: Diagnose, holder: str, with_reads: bool) -> None:
    """Four rows never call the tool that all passes resolve the name with; one lacks the date that all passes give."""
    run = diagnose(*files(holder, with_reads))
    assert run.failing == NAME_FAULT | DATE_FAULT
    assert run.labels(run.failing) == {"BI"}
    assert run.alarms == []
    assert {entry.task: entry.cause.value for entry in run.report.attributions} == {"1": "BI", "3": "BI"}
    steps = {entry.task: entry.step for entry in run.report.attributions}
    assert with_reads or steps == {"1": 4, "3": 2}  # of the wrong write
    assert any("find_resident" in told_of(group) for group in run.holders(NAME_FAULT)), run.said
    holders = run.holders(DATE_FAULT)
    assert any("search_parcels" in told_of(group) or "before" in told_of(group) for group in holders), run.said


def test_without_the_inputs_nothing_is_called_a_gap_of_knowledge(diagnose: Diagnose) -> None:
    """No gold, too few rows to tell: unexplained, or behaviour; never a lack of knowledge."""
    rows, _ = files("ground_truth", False)
    run = diagnose(rows)
    assert run.labels(run.failing) <= {"BI"}


def test_gold_that_the_failures_meet_is_no_behaviour(diagnose: Diagnose) -> None:
    """The same rewards, but all rollouts do what is expected: no call is to blame."""
    rows, inputs = files("ground_truth", False)
    for row in rows:
        task, repeat = key_of(row)
        whole = [resolve(task), search(task, before="2031-05-01"), redirect(task), f"Moved it, number {repeat}."]
        row["response"] = make_row(task, repeat, 0.0, whole)["response"]
    run = diagnose(rows, inputs)
    assert "BI" not in run.labels(run.failing)

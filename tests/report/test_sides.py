"""Where a failing rollout leaves a passing one, as a reader meets it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from blade.model import Cause, Report, TaskResult
from blade.report import text
from blade.report.cases import chosen
from blade.report.facts import facts

from .conftest import make_report, twenty
from .explained import divergence, explain
from .test_explained import first
from .test_wire import VALIDATOR, parsed

LEAD = "**Beside a passing rollout:** "


def told(report: Report, task: str, title: str = "Sometimes-Pass Deep Dives") -> str:
    """What is told of one task."""
    return first(report, title).split(f"### Task `{task}` ")[1].split("\n### ")[0]


def alone(report: Report, **changes: Any) -> Report:
    """The report with task 6 as its only attribution, no tested contrast, and its divergence changed."""
    parted = divergence("desk", task_of(report, "6"), **changes)
    return replace(report, attributions=report.attributions[:1], contrasts=(), divergences=tuple(parted))


def task_of(report: Report, key: str) -> TaskResult:
    return next(task for task in report.tasks if task.task == key)


def test_both_sides_stand_where_nothing_could_be_tested(explained: Report) -> None:
    said = told(alone(explained), "6")
    parts = [
        f"{LEAD}At `6/1#6` the failing rollout calls `transfer_to_human`; the passing one (`6/0#4`), alike until then, "
        "calls `get_product_details`. The one passing repeat calls "
        "`get_product_details`; this one does not. Shown to be read, not tested.",
        "Failing, task `6/1#6`:\n\n```text\ntransfer_to_human {}\n```",
        'Passing, task `6/0#4`:\n\n```text\nget_product_details {"product_id": "6817"}\n```',
        "blade show runs/airline.jsonl 6/0 --steps 2:7",
    ]
    places = [said.index(part) for part in parts]
    assert places == sorted(places)
    assert "Passing side:" not in said


def test_a_tested_contrast_comes_before_what_is_only_shown(explained: Report) -> None:
    said = told(explained, "6")
    assert said.index("**Beside the passing side:**") < said.index("Passing, task `6/0#5`:")
    assert said.index("Passing, task `6/0#5`:") < said.index(LEAD) < said.index("`6/0#4`:")


def test_rollouts_that_part_twice_are_not_called_alike(explained: Report) -> None:
    said = told(alone(explained, first_step=2, first_passer_step=2), "6")
    assert "the passing one (`6/0#4`), which it first leaves at `6/1#2` (25.0% of acts differ), calls" in said
    assert "alike until then" not in said
    nothing = told(alone(explained, distance=1.0), "6")
    assert "the passing one (`6/0#4`), which does nothing that it does, calls" in nothing


def test_tools_that_several_passes_use_are_not_called_those_of_one(explained: Report) -> None:
    two = replace(explained.divergences[1], missing=("a", "b", "c", "d", "e"))
    at = next(one for one in explained.attributions if one.task == two.task)
    said = told(replace(explained, attributions=(at,), divergences=(two,), contrasts=()), two.task)
    assert (
        "Nearly all passing rollouts of the task call `a`, `b`, `c`, `d` and 1 more; this one calls none of them."
        in said
    )


def test_other_arguments_of_one_tool_are_called_so(explained: Report) -> None:
    same = {"does": 'calls exchange with {"id": 1}', "passer_does": 'calls exchange with {"id": 2}'}
    said = told(alone(explained, **same), "6")
    assert (
        "the failing rollout calls `exchange`; the passing one (`6/0#4`), alike until then, calls `exchange` with other "
        "arguments"
        in said
    )
    last = told(alone(explained, does="finishes", passer_does='calls exchange with {"id": 2}'), "6")
    assert "the failing rollout finishes; the passing one (`6/0#4`), alike until then, calls `exchange`." in last
    ends = told(alone(explained, does="finishes", passer_does="finishes"), "6")
    assert (
        "The last words of the failing rollout (`6/1#6`) differ from those of the passing one (`6/0#4`);"
        in ends
    )


def test_a_place_is_quoted_once(explained: Report) -> None:
    parted = explained.divergences[0]
    seen = replace(explained.attributions[0], evidence=parted.evidence[:1], step=6)
    said = told(replace(explained, attributions=(seen,), contrasts=()), "6")
    assert said.count("transfer_to_human {}") == 1


def test_a_pass_of_another_run_is_called_so(explained: Report) -> None:
    theirs = replace(explained.divergences[0].evidence[1], run="other-run", task="15")
    ours = replace(explained.divergences[0].evidence[0], task="15", repeat=0)
    borrowed = replace(
        explained.divergences[0],
        task="15",
        repeat=0,
        passer_run="other-run",
        evidence=(ours, theirs),
        missing=(),
    )
    at = next(one for one in explained.attributions if one.task == "15")
    model = replace(at, cause=Cause.BEHAVIOUR)
    report = replace(explained, attributions=(model,), divergences=(borrowed,), contrasts=())
    said = told(report, "15", "Never-Pass Deep Dives")
    assert "the passing one (`15/0#4` of run `other-run`), alike until then, calls" in said
    assert "Passing in run `other-run`, task `15/0#4`:" in said
    assert parsed(report)["divergences"][0]["run"] == "desk"


def test_a_fault_outside_the_model_is_not_set_beside_a_pass(explained: Report) -> None:
    outage = replace(explained.attributions[0], cause=Cause.INFRASTRUCTURE)
    said = told(replace(explained, attributions=(outage,), contrasts=()), "6")
    assert LEAD not in said
    assert "**Passing side:** not compared, since the fault lies outside what the model did." in said


def test_tasks_with_both_sides_are_told_first(explained: Report) -> None:
    bare = replace(explained, contrasts=(), divergences=explained.divergences[3:4])
    (run,) = facts(bare)
    same = [replace(one, cause=Cause.BEHAVIOUR, mode="x", lost=0.01) for one in run.attributions]
    assert chosen(run, same)[0].task == explained.divergences[3].task == "9"
    other = [replace(one, mode=one.task) for one in same]
    assert chosen(run, other)[0].task == "9"


def test_the_wire_carries_divergences_in_the_order_of_tasks(explained: Report) -> None:
    document = parsed(replace(explained, divergences=explained.divergences[::-1]))
    VALIDATOR.validate(document)
    assert [one["task"] for one in document["divergences"]] == [str(at) for at in range(6, 15)]
    assert document["divergences"][0] == {
        "run": "desk",
        "task": "6",
        "repeat": 1,
        "passer": {"run": "desk", "repeat": 0},
        "step": 6,
        "passer_step": 4,
        "does": "calls transfer_to_human",
        "passer_does": 'calls get_product_details with {"product_id": "6817"}',
        "first_step": 6,
        "first_passer_step": 4,
        "distance": 0.25,
        "fitness": 0.8,
        "missing": ["get_product_details"],
        "unusual": ["get_order > transfer_to_human"],
        "evidence": [
            {"run": "desk", "task": "6", "repeat": 1, "step": 6, "field": None, "quote": "transfer_to_human {}"},
            {"run": "desk", "task": "6", "repeat": 0, "step": 4, "field": None,
             "quote": 'get_product_details {"product_id": "6817"}'},
        ],
    }  # fmt: skip


def test_every_run_keeps_its_own_divergences() -> None:
    report = explain(make_report({"desk": twenty(), "desk-b": twenty()}))
    runs = [one["run"] for one in parsed(report)["divergences"]]
    assert runs == ["desk"] * 9 + ["desk-b"] * 9
    assert text.render(report)

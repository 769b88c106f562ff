"""The scripted models: what is drawn is what happens, in the same bytes each time."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from blade.errors import UsageError
from blade_eval.environment import Row, Unmeasured
from blade_eval.models import model
from blade_eval.models.scripted_model import FAULTS, NONE, SCRIPTS, applicable, truth
from blade_eval.runner import agent
from blade_eval.verifiers import environment
from blade_eval.verifiers.workplace_assistant.quests import quests, row

DOCS = Path(__file__).resolve().parents[2] / "docs" / "demo.md"
OFFICE = environment("workplace_assistant", {})


def rollouts(settings: dict[str, Any], idents: list[str]) -> list[Row]:
    """Two of each task."""

    async def run() -> list[Row]:
        async with model("scripted_model", settings) as respond:
            asked = [{**row(ident), "_ng_rollout_index": repeat} for ident in idents for repeat in range(2)]
            return [{**await agent.run(task, respond, OFFICE, {}), "_ng_rollout_index": task["_ng_rollout_index"]} for task in asked]

    return asyncio.run(run())


def test_a_rollout_fails_exactly_where_a_fault_was_drawn_and_better_scripts_score_better() -> None:
    scores = []
    for script in SCRIPTS:
        settings = {"script": script, "seed": 3}
        rows = rollouts(settings, list(quests()))
        for found in rows:
            fault = truth(found, settings)
            assert found["reward"] == float(fault == NONE), (found["task_id"], fault, found["verifier_message"])
        scores.append(sum(found["reward"] for found in rows))
    assert scores == sorted(set(scores), reverse=True)
    assert len(scores) == len(SCRIPTS)


def drawn_by(script: str) -> Counter[str]:
    """How often each fault is drawn in four repeats of every task."""
    keys = [{"task_id": ident, "_ng_rollout_index": repeat} for ident in quests() for repeat in range(4)]
    return Counter(truth(key, {"script": script}) for key in keys)


@pytest.mark.parametrize("script", list(SCRIPTS))
def test_the_docs_count_the_faults_of_a_script(script: str) -> None:
    drawn = drawn_by(script)
    assert drawn.total() == 296
    assert set(FAULTS) < {*drawn_by("hasty"), *drawn_by("novice")}
    del drawn["none"]
    (line,) = re.findall(rf"^\| `{script}` \|.*$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    *_, wrong, ways, _ = line.split("|")
    assert int(wrong) == drawn.total()
    assert {fault: int(number) for number, fault in re.findall(r"(\d+) `(\w+)`", ways)} == drawn


def test_the_same_settings_give_the_same_bytes_another_seed_others_and_an_unknown_script_none() -> None:
    idents = list(quests())[:20]
    one, again, other = (msgspec.json.encode(rollouts({"script": "hasty", "seed": seed}, idents)) for seed in (1, 1, 2))
    assert one == again != other
    with pytest.raises(UsageError, match="no script 'sleepy'"):
        rollouts({"script": "sleepy"}, ["crm-01"])


def test_a_fault_of_a_task_is_one_that_it_can_have() -> None:
    for fault, has, lacks in (
        ("dropped_boundary", "email-12", "email-01"), ("unresolved_name", "crm-06", "crm-01"), ("first_page", "crm-15", "crm-01"),
        ("ignored_condition", "analytics-04", "crm-01"), ("stopped_early", "crm-01", "analytics-08"),  # where nothing is to be done
    ):  # fmt: skip
        assert (fault in applicable(has), fault in applicable(lacks)) == (True, False), fault


def test_calls_and_answers_belong_together_and_tokens_add_up() -> None:
    for found in rollouts({"script": "hasty"}, ["crm-06", "email-12", "multi-02"]):
        output = found["response"]["output"]
        calls = [item["call_id"] for item in output if item["type"] == "function_call"]
        answers = [item["call_id"] for item in output if item["type"] == "function_call_output"]
        assert sorted(calls) == sorted(answers)
        assert len(set(calls)) == len(calls)
        usage = found["response"]["usage"]
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 1000
        assert output[-1]["type"] == "message"


def test_a_task_that_no_script_knows_is_answered_by_its_own_truth() -> None:
    known = row("crm-01")
    strange = {**known, "task_id": "another"}

    async def asked(given: Row) -> Row:
        async with model("scripted_model", {}) as respond:
            return await agent.run(given, respond, OFFICE, {})

    assert asyncio.run(asked(strange))["reward"] == 1.0
    empty = asyncio.run(asked({**strange, "ground_truth": []}))
    assert [item["type"] for item in empty["response"]["output"]] == ["message"]
    for given in (None, "Paris", ["Paris"], [{"answer": "B"}]):
        with pytest.raises(Unmeasured, match="unknown_task") as told:
            asyncio.run(asked({**strange, "ground_truth": given}))
        assert told.value.terminal

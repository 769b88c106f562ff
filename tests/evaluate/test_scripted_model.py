"""The scripted models: what is drawn is what happens, in the same bytes each time."""

from __future__ import annotations

import asyncio
from collections import Counter
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

OFFICE = environment("workplace_assistant", {})


async def _rollouts(settings: dict[str, Any], idents: list[str], repeats: int) -> list[Row]:
    found = []
    async with model("scripted_model", settings) as respond:
        for ident in idents:
            for repeat in range(repeats):
                asked = {**row(ident), "_ng_rollout_index": repeat}
                found.append({**await agent.run(asked, respond, OFFICE, {}), "_ng_rollout_index": repeat})
    return found


def rollouts(settings: dict[str, Any], idents: list[str] | None = None, repeats: int = 2) -> list[Row]:
    return asyncio.run(_rollouts(settings, list(quests()) if idents is None else idents, repeats))


@pytest.mark.parametrize("script", list(SCRIPTS))
def test_a_rollout_fails_exactly_where_a_fault_was_drawn(script: str) -> None:
    settings = {"script": script, "seed": 3}
    for found in rollouts(settings):
        fault = truth(found, settings)
        assert found["reward"] == float(fault == NONE), (found["task_id"], fault, found["verifier_message"])


def test_better_scripts_score_better_and_each_fault_is_drawn_somewhere() -> None:
    scores = [sum(found["reward"] for found in rollouts({"script": script}, repeats=1)) for script in SCRIPTS]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    drawn = Counter(
        truth({"task_id": ident, "_ng_rollout_index": repeat}, {"script": script})
        for ident in quests() for repeat in range(4) for script in ("hasty", "novice")
    )  # fmt: skip
    assert set(FAULTS) < set(drawn)


def test_the_same_settings_give_the_same_bytes_and_another_seed_does_not() -> None:
    idents = list(quests())[:20]
    one, again, other = (
        msgspec.json.encode(rollouts({"script": "hasty", "seed": seed}, idents)) for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other


def test_a_fault_of_a_task_is_one_that_it_can_have() -> None:
    assert "dropped_boundary" in applicable("email-12")
    assert "dropped_boundary" not in applicable("email-01")
    assert "unresolved_name" in applicable("crm-06")
    assert "unresolved_name" not in applicable("crm-01")
    assert "first_page" in applicable("crm-15")
    assert "ignored_condition" in applicable("analytics-04")
    assert "stopped_early" not in applicable("analytics-08")  # nothing is to be done, so nothing is missing


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


def test_a_script_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="no script 'sleepy'"):
        rollouts({"script": "sleepy"}, ["crm-01"], 1)

"""Mathematical equality: other writings, near misses, computations without end, and the judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings

from blade.errors import UsageError
from blade_eval import limited
from blade_eval.environment import Attempt, Unmeasured
from blade_eval.verifiers import environment
from tests.evaluate.verifiers.attempts import (
    Judge,
    example,
    judged,
    responded,
    responses,
    reward,
    shipped,
    survives,
)

MATH = environment("math_with_judge", {"verify_timeout_seconds": 1})
SERVER = {"judge_model_server": {"type": "responses_api_models", "name": "policy_model"}}
JUDGED = environment("math_with_judge", {"should_use_judge": True, "verify_timeout_seconds": 1, **SERVER})


def row(expected: Any) -> dict[str, Any]:
    return {"expected_answer": expected, "responses_create_params": {"input": "How many?"}}


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("1/2", "\\boxed{\\frac{1}{2}}"), ("\\frac{1}{2}", "so \\boxed{.5}"), ("$5$", "The answer is $5$."),
        ("\\boxed{5}", "**Answer:** 5"), ("3, 4", "$\\boxed{4}$ or $\\boxed{3}$"), ("x^2+2x+1", "\\boxed{(x+1)^2}"),
        ("1000", "\\boxed{1{,}000}"), ("70", "\\boxed{\\binom{8}{4}}"), ("\\text{Tuesday}", "\\boxed{tuesday}"),
        ("5", "\\boxed{5\\text{ cm}}"), ("4", "\\boxed{3}. No, I erred: \\boxed{4}"),
        ("5", "<think>\\boxed{6}</think>\\boxed{5}"), (5, "It costs\n5"), ("-5", "\\boxed{−5}"),
    ],
)
def test_the_same_value_written_otherwise(expected: Any, text: str) -> None:
    assert reward(MATH, row(expected), text) == 1.0


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        ("4", "\\boxed{3} or \\boxed{4}"), ("4", "\\boxed{3 \\text{ or } 4}"), ("7", "It may be 5 or 7"),
        ("3", "\\boxed{3}. No, I erred: \\boxed{4}"), ("5", "\\boxed{-5}"), ("12", "\\boxed{1,2}"), ("(3,4)", "\\boxed{(4,3)}"),
        ("[1,2)", "\\boxed{[1,2]}"), ("x<5", "\\boxed{x>5}"), ("1/3", "\\boxed{0.33}"), ("\\pi", "\\boxed{3.14}"),
        ("5", "\\boxed{5 \\neq 6}"), ("Tuesday", "\\boxed{Tuesdya}"), ("5", "<think>so it is \\boxed{5}"), ("5", ""),
        ("5", "\\boxed{}"),
    ],
)
def test_another_value_that_looks_alike(expected: Any, text: str) -> None:
    assert reward(MATH, row(expected), text) == 0.0


def test_the_fields_are_gyms() -> None:
    assert judged(MATH, row("5"), "\\boxed{4+1}") == {
        "reward": 1.0, "expected_answer": "5", "extracted_answer": "4+1", "library_reward": 1.0, "judge_evaluations": None,
    }


def test_a_computation_without_end_is_killed_and_the_next_answer_is_judged() -> None:
    for text in ("\\boxed{9^{9^{9^{9^9}}}}", "\\boxed{" + "\\sqrt{" * 2000 + "5" + "}" * 2001):
        fields = judged(MATH, row("5"), text)
        assert fields["reward"] == 0.0
        assert "cannot be compared" in fields["failure_reason"]
        assert fields["extracted_answer"]
        assert reward(MATH, row("5"), "\\boxed{5}") == 1.0


def test_many_such_answers_at_once_cost_no_other_its_reward() -> None:
    texts = ["\\boxed{5}", "\\boxed{9^{9^{9^{9^9}}}}", "\\boxed{10/2}", "\\boxed{6}"] * 2

    async def all_of_them() -> list[dict[str, Any]]:
        return list(
            await asyncio.gather(*(MATH.verify(Attempt(row("5"), responded(text))) for text in texts))
        )

    assert [fields["reward"] for fields in asyncio.run(all_of_them())] == [1.0, 0.0, 1.0, 0.0] * 2


def test_an_expected_answer_without_end_is_the_tasks_fault() -> None:
    with pytest.raises(Unmeasured, match="task_invalid: the expected answer cannot be computed"):
        judged(MATH, row("9^{9^{9^{9^9}}}"), "\\boxed{5}")
    with pytest.raises(Unmeasured, match="task_invalid"):
        judged(MATH, row("  "), "\\boxed{5}")


def test_memory_is_limited_too() -> None:
    with pytest.raises(limited.TooCostly, match="memory"):
        asyncio.run(limited.call("operator:mul", "x", 3 << 30))
    assert asyncio.run(limited.call("operator:mul", "x", 3)) == "xxx"


def test_a_judge_is_asked_in_both_orders_and_only_on_a_mismatch() -> None:
    judge = Judge("They agree.\n[[A=B]]")
    assert reward(JUDGED, row("5"), "\\boxed{5}", ask=judge) == 1.0
    assert judge.asked == []
    fields = judged(JUDGED, row("5"), "\\boxed{5 apples each}", ask=judge)
    assert (fields["reward"], len(fields["judge_evaluations"]), len(judge.asked)) == (1.0, 2, 2)
    assert [entry["verdict_label"] for entry in fields["judge_evaluations"]] == ["[[A=B]]"] * 2
    assert judge.asked[0] != judge.asked[1]


def test_scores_tell_the_library_from_the_judge() -> None:
    won = judged(JUDGED, row("7"), "\\boxed{x+7+y}", ask=Judge("[[A=B]]"))
    assert JUDGED.scores is not None
    assert JUDGED.scores(won) == {"symbolic_accuracy": 0.0, "judge_accuracy": 1.0}
    biased = judged(JUDGED, row("7"), "\\boxed{x+7+y}", ask=Judge("[[A=B]]", "[[A!=B]]"))
    assert JUDGED.scores(biased) == {"symbolic_accuracy": 0.0, "judge_accuracy": 0.0}
    plain = judged(JUDGED, row("7"), "\\boxed{7}", ask=Judge("[[A!=B]]"))
    assert JUDGED.scores(plain) == {"symbolic_accuracy": 1.0}


def test_a_judge_that_fails_measures_nothing() -> None:
    with pytest.raises(Unmeasured) as raised:
        judged(JUDGED, row("7"), "\\boxed{8}", ask=Judge(ConnectionError("refused")))
    assert raised.value.kind == "judge_failed"
    assert "refused" in raised.value.fields["_ng_failure_judge_error"]
    with pytest.raises(UsageError, match="judge_model_server"):
        environment("math_with_judge", {"should_use_judge": True})


@given(responses)
@settings(max_examples=40, deadline=None)
def test_nothing_a_model_puts_out_breaks_it(response: Any) -> None:
    survives(MATH, row("5"), response)


def test_the_shipped_example_is_judged() -> None:
    env = shipped("math_with_judge")
    for task in example("math_with_judge"):
        assert reward(env, task, f"\\boxed{{{task['expected_answer']}}}") == 1.0
        assert reward(env, task, "\\boxed{10^{6}+1}") == 0.0

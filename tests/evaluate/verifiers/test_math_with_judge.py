"""Mathematical equality: other writings, near misses, computations without end, and the judge."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from blade_eval.environment import Attempt, Unmeasured
from blade_eval.verifiers import environment
from tests.evaluate.verifiers.attempts import SERVER, Judge, judged, responded, reward

MATH = environment("math_with_judge", {"verify_timeout_seconds": 1})
JUDGED = environment("math_with_judge", {"should_use_judge": True, "verify_timeout_seconds": 1, **SERVER})


def row(expected: Any) -> dict[str, Any]:
    return {"expected_answer": expected, "responses_create_params": {"input": "How many?"}}


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
        return list(await asyncio.gather(*(MATH.verify(Attempt(row("5"), responded(text))) for text in texts)))

    assert [fields["reward"] for fields in asyncio.run(all_of_them())] == [1.0, 0.0, 1.0, 0.0] * 2


def test_an_expected_answer_without_end_is_the_tasks_fault() -> None:
    with pytest.raises(Unmeasured, match="task_invalid: the expected answer cannot be computed"):
        judged(MATH, row("9^{9^{9^{9^9}}}"), "\\boxed{5}")
    with pytest.raises(Unmeasured, match="task_invalid"):
        judged(MATH, row("  "), "\\boxed{5}")


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

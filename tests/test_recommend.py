"""Interventions ranked by what they could win: ablation, shares, yields, concrete actions."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from blade import stats
from blade.model import Cause, Loss, Mechanism, Rule
from blade.recommend import Books, actions, gains, recommend
from blade.recommend.ablation import Ablation
from tests.test_attribute import QUOTE, RULES, found, judged_of, quote_row


def digits(*rows: str) -> np.ndarray:
    return np.array([int(digit) for row in rows for digit in row], float)


@pytest.fixture
def ablation() -> Ablation:
    """Four tasks of three rollouts with two modes."""
    return Ablation(
        np.repeat(np.arange(4), 3),
        digits("001", "110", "000", "100"),
        {"x": digits("110", "100", "001", "011"), "y": digits("000", "100", "010", "000")},
    )


def test_the_least_affected_rollouts_reference(ablation: Ablation) -> None:
    value = {name: ablation.value(frozenset(name)) for name in ("", "x", "y", "xy")}
    assert value == pytest.approx({"": 1 / 3, "x": 0.625, "y": 0.2916666667, "xy": 0.625})
    assert ablation.oracle == 0.75


def test_shares_of_modes_that_occur_together_reference(ablation: Ablation) -> None:
    assert ablation.shares(["x", "y"]) == pytest.approx({"x": 0.3125, "y": -0.0208333333})


def test_ties_are_averaged_so_that_the_best_of_them_does_not_leak() -> None:
    same = Ablation(np.zeros(4, int), digits("1000"), {"x": digits("1111")})
    assert same.value(frozenset("x")) == 0.25
    assert same.uplift("x").p is None
    assert same.uplift("x").uninformed == 1


def test_a_mode_that_goes_with_failing_beats_its_shuffled_self_and_a_random_one_does_not() -> None:
    rng = stats.seeded_rng("test")
    score = rng.integers(0, 2, 200).astype(float)
    task = np.repeat(np.arange(50), 4)
    rows = Ablation(task, score, {"real": 1 - score, "random": rng.integers(0, 2, 200).astype(float)})
    assert rows.uplift("real").p == pytest.approx(1 / 201)
    assert (rows.uplift("random").p or 0) > 0.05


def test_a_gain_rests_on_the_repeats_of_the_same_task() -> None:
    judged = judged_of([[0, 1, 1, 1], [0, 0, 0, 0]])
    primary = np.array([True, False, False, False, True, True, True, True])
    told = gains.estimate(judged, primary, primary)
    assert told.n_tasks == 2
    assert told.n_within == 1
    assert told.gain.low == pytest.approx(0.25 / 2)  # task 0 would pass always: 3 of 3 without the mode
    assert told.gain.high == pytest.approx((0.25 + 1) / 2)
    assert told.gain.low < told.gain.point < told.gain.high
    assert "extrapolated" in told.basis


def recommended(judged, losses, modes, hits=(), mechanisms=(), attributions=()):
    return recommend(
        Books(judged, losses, modes, attributions, hits, mechanisms, RULES, {}, {}, {}, quote_row)
    )


def test_actions_name_the_tool_and_are_ranked_by_gain_for_effort() -> None:
    judged = judged_of([[0, 1, 1], [0, 1, 1], [0, 0, 0]])
    hits = [found(judged, at, "loop") for at in (0, 3)]
    modes = {0: (Cause.BEHAVIOUR, "loop"), 3: (Cause.BEHAVIOUR, "loop")}
    modes |= dict.fromkeys((6, 7, 8), (Cause.KNOWLEDGE_GAP, "same wrong result"))
    losses = [
        Loss("run", Cause.KNOWLEDGE_GAP, "same wrong result", 1 / 3),
        Loss("run", Cause.BEHAVIOUR, "loop", 2 / 9),
    ]
    told = recommended(judged, losses, modes, hits).recommendations
    assert [(one.rank, one.kind) for one in told] == [(1, "prompt"), (2, "training")]
    assert told[0].action == "Fix `the_tool`"
    assert told[0].evidence
    assert "`2`" in told[1].action
    assert all(one.gain.low <= one.gain.point <= one.gain.high for one in told)


def test_repairs_of_the_measurement_are_marked() -> None:
    judged = judged_of([[0, 1, 1]])
    told = recommended(
        judged, [Loss("run", Cause.INFRASTRUCTURE, "infra_error", 1 / 3)], {0: (Cause.INFRASTRUCTURE, "infra_error")},
        [found(judged, 0, "infra_error")],
    )  # fmt: skip
    assert told.recommendations[0].is_measurement
    assert told.recommendations[0].kind == "infrastructure"


def test_what_no_mode_explains_is_the_unexplained_gap() -> None:
    judged = judged_of([[0, 1], [0, 1]])
    losses = [Loss("run", Cause.UNDETERMINED, "nothing found", 0.5)]
    told = recommended(judged, losses, {0: (Cause.UNDETERMINED, "nothing found")})
    assert told.recommendations == ()
    assert told.unexplained == pytest.approx(0.5)


def test_a_missing_look_up_asks_for_a_step_of_the_workflow() -> None:
    mechanism = Mechanism(
        "m1", "run", "9 of 20 never call it", "never_calls(look)", 9, 0.1, 11, 0.6, 0.2, 0.8, 0.01, 0.02, True, "",
        "mechanism", 0.5, "look", (("0", 0),), QUOTE,
    )  # fmt: skip
    action = actions.of_mechanism(mechanism)
    assert action.text.startswith("Make `look` part of the workflow")


def test_the_kind_follows_the_cause_where_the_rule_has_two() -> None:
    rule = Rule("format", "B33", "", Cause.BEHAVIOUR, "", True, (), "prompt", "State the format")
    assert actions.of_rule(rule, [], Cause.TASK_OR_VERIFIER).kind == "verifier"
    assert actions.of_rule(rule, [], Cause.BEHAVIOUR).kind == "prompt"


def test_a_vote_wins_what_the_commonest_result_is_worth() -> None:
    judged = judged_of([[1, 1, 0], [1, 0, 0]])
    contents = {0: "answer 4", 1: "answer 4", 2: "answer 5", 3: "answer 8", 4: "answer 9", 5: "answer 9"}
    told = gains.voted(judged, np.ones(6, bool), contents)
    assert told.gain.point == pytest.approx(((1 - 2 / 3) + (0 - 1 / 3)) / 2)  # one vote wins, one loses
    assert told.gain.high == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert told.gain.low <= told.gain.point <= told.gain.high


def test_advice_leaves_out_tools_that_passing_rollouts_show_as_often() -> None:
    judged = judged_of([[0, 1], [0, 1], [0, 1]])
    hits = [found(judged, at, "loop") for at in (0, 1, 2, 3)]
    named = [replace(hit, detail=name) for hit, name in zip(hits, ("a", "b", "b", "b"), strict=True)]
    modes = {0: (Cause.BEHAVIOUR, "loop"), 2: (Cause.BEHAVIOUR, "loop")}
    told = recommended(judged, [Loss("run", Cause.BEHAVIOUR, "loop", 1 / 3)], modes, named)
    assert told.recommendations[0].action == "Fix `a`"

"""Verdicts on two questions; several runs at once: the matrix, who alone solves what, the fronts, checkpoints in order."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade import model
from blade.compare import compare
from blade.compare.several_runs import adjusted, front, matrix, series, shared
from blade.model import Comparison, Side
from tests.compare.builders import drawn, side, versus


def all_pairs(sides: list[Side]) -> dict[tuple[str, str], Comparison]:
    return {(a.run, b.run): versus(a, b) for a, b in combinations(sides, 2)}


def with_p(p_these: float, p_new: float, candidate: str, verdict: str = "improved", half: float = 0.1) -> Comparison:
    a, b = side("base", {"1": "10", "2": "01"}), side(candidate, {"1": "11", "2": "01"})
    return versus(
        a, b,
        tests=(
            model.Tested("these tasks", "t", p_these, 0.0, -half, half, -half, half),
            model.Tested("new tasks", "t", p_new, 0.0, -half, half, -half, half),
        ),
        verdict=verdict, verdict_new_tasks=verdict,
    )  # fmt: skip


# ---- Two runs -------------------------------------------------------------------------------------


def test_an_unchanged_model_is_equivalent_once_the_data_can_say_so() -> None:
    """500 tasks of the same rates, with repeats: equivalent; near-miss: one repeat cannot tell, and says so."""
    rates = np.random.default_rng(5).beta(0.6, 0.4, 500)
    said = [versus(drawn("a", rates, 16, str(s)), drawn("b", rates, 16, str(s))) for s in range(10)]
    assert sum(one.verdict == "equivalent" for one in said) >= 9
    assert sum(one.verdict_new_tasks == "equivalent" for one in said) >= 9
    once = [versus(drawn("a", rates, 1, str(s)), drawn("b", rates, 1, str(s)), 0.05) for s in range(20)]
    words = {one.verdict_new_tasks for one in once}
    assert "equivalent" in words
    assert sum(one.verdict_new_tasks in ("improved", "regressed") for one in once) <= 3
    unsure = [one for one in once if one.verdict_new_tasks == "inconclusive"]
    assert all(one.power.mde is not None and one.power.tasks_needed for one in unsure)


def test_a_change_on_these_tasks_need_not_hold_on_new_ones() -> None:
    """Five tasks of many change fully: real here, and too few to tell of others."""
    a = {**{f"t{i}": "11110000" for i in range(30)}, **{f"u{i}": "00000000" for i in range(8)}}
    b = {**{f"t{i}": "11110000" for i in range(30)}, **{f"u{i}": "11111111" for i in range(5)}}
    b |= {f"u{i}": "00000000" for i in range(5, 8)}
    found = versus(side("a", a), side("b", b))
    assert (found.verdict, found.verdict_new_tasks) == ("improved", "inconclusive")


def test_more_data_is_advised_in_repeats_and_in_tasks() -> None:
    a = side("a", {f"t{i}": "1100" if i % 2 else "1000" for i in range(60)})
    b = side("b", {f"t{i}": "1000" if i % 2 else "1100" for i in range(60)})
    found = versus(a, b).power
    assert (found.mde > 0.03, found.omega2) == (True, 0)
    assert 60 < found.repeats_needed < 100
    assert found.tasks_needed > 100
    rates = np.full(60, 0.5)
    once = versus(drawn("a", rates, 1), drawn("b", rates, 1)).power
    assert once.repeats_needed is None  # one row a task does not tell chance from churn
    assert once.tasks_needed > 0


def test_rollouts_without_a_score_bound_the_change() -> None:
    """One of four is lost in the candidate: it may have failed or passed; near-miss: none is lost."""
    a, b = side("a", {"x": "1100", "y": "1111"}), side("b", {"x": "110", "y": "1111"}, expected={"x": 4})
    note = next(note for note in compare(a, b).notes if "have no score" in note)
    assert "1 expected rollouts of the common tasks" in note
    assert "between +0.0 and +12.5 points" in note
    assert not any("have no score" in note for note in compare(a, side("b", {"x": "1100", "y": "1111"})).notes)


# ---- Many candidates ------------------------------------------------------------------------------


def test_a_change_that_does_not_survive_the_adjustment_is_claimed_no_longer() -> None:
    found = adjusted([with_p(0.001, 0.04, "c1"), with_p(0.02, 0.03, "c2"), with_p(0.9, 0.9, "c3", "inconclusive")])
    assert [each.p_adjusted for each in found] == pytest.approx([0.003, 0.04, 0.9])
    assert [each.p_adjusted_new for each in found] == pytest.approx([0.09, 0.09, 0.9])
    assert [each.verdict for each in found] == ["improved", "improved", "inconclusive"]
    assert [each.verdict_new_tasks for each in found] == ["inconclusive"] * 3
    assert len(found[0].notes) == 1
    assert "On new tasks: improved if this were the only candidate (p = 0.04)" in found[0].notes[0]
    assert "one of 3" in found[0].notes[0]
    assert not found[2].notes


def test_refused_comparisons_are_not_counted_and_baselines_not_mixed() -> None:
    refused = versus(side("base", {"1": "1"}), side("c2", {"9": "1"}))
    found = adjusted([with_p(0.04, 0.04, "c1"), refused])
    assert (found[0].verdict, found[0].p_adjusted) == ("improved", 0.04)
    assert found[1].refused
    assert found[1].p_adjusted is None


# ---- The matrix -----------------------------------------------------------------------------------


def test_the_matrix_reads_row_against_column() -> None:
    rates = [0.05 + 0.9 * i / 119 for i in range(120)]
    sides = [drawn("low", [rate * 0.5 for rate in rates]), drawn("middle", rates), drawn("twin", rates)]
    found = matrix(sides, all_pairs(sides))
    assert found.runs == ("low", "middle", "twin")
    assert (found.verdicts[1][0], found.verdicts[0][1]) == ("improved", "regressed")
    assert found.verdicts[1][2] == found.verdicts[2][1]
    assert found.verdicts[1][2] not in ("improved", "regressed")
    assert [found.verdicts[i][i] for i in range(3)] == ["", "", ""]
    scores = {placed.run: placed.score for placed in found.placed}
    gain = scores["middle"] - scores["low"]
    assert (found.deltas[1][0], found.deltas[0][1]) == (pytest.approx(gain), pytest.approx(-gain))


def test_pairs_are_adjusted_over_all_pairs() -> None:
    sides = [side(name, {"1": "1", "2": "0"}) for name in "abcd"]
    pairs = {(a.run, b.run): with_p(0.5, p, b.run) for (a, b), p in zip(combinations(sides, 2), [0.001, 0.02, 0.5, 0.5, 0.5, 0.5], strict=True)}
    found = matrix(sides, pairs)
    assert found.p_adjusted[1][0] == pytest.approx(0.006)
    assert found.p_adjusted[2][0] == pytest.approx(0.1)
    assert (found.verdicts[1][0], found.verdicts[2][0]) == ("improved", "inconclusive")


def test_a_refused_pair_says_so_and_shares_no_task() -> None:
    a, b = side("a", {"1": "11"}), side("b", {"9": "11"})
    found = matrix([a, b], {("a", "b"): versus(a, b)})
    assert found.verdicts == (("", "refused"), ("refused", ""))
    assert found.n_tasks == 0
    assert [placed.score for placed in found.placed] == [None, None]
    assert found.notes == ("No task has a counted row in every run.",)


# ---- Who solves what ------------------------------------------------------------------------------


def test_tasks_that_one_run_alone_solves_come_with_their_counts_and_their_chance() -> None:
    sides = [
        side("a", {"1": "1111", "2": "1000", "3": "0000", "4": "1101", "5": "1111", "6": "11"}, expected={"7": 4}),
        side("b", {"1": "0000", "2": "0000", "3": "0000", "4": "0100", "5": "0001", "7": "11"}),
        side("c", {"1": "0000", "2": "0000", "3": "0000", "4": "0001", "5": "0000", "6": "11", "7": "11"}),
    ]
    found = matrix(sides, all_pairs(sides))
    assert found.n_tasks == 5  # only tasks that every run has rows for are told
    assert found.only_one == {"a": ("1", "2"), "b": (), "c": ()}
    assert found.none_solves == ("3",)
    assert found.all_solve == ("4",)
    sure, lucky = found.alone
    assert (sure.task, sure.passes, sure.repeats, sure.others) == ("1", 4, 4, 8)
    assert sure.p_chance == pytest.approx(3 / comb(12, 4))
    assert (lucky.task, lucky.passes, lucky.repeats, lucky.others) == ("2", 1, 4, 8)
    assert lucky.p_chance == pytest.approx(1)
    # Passes of the five tasks: 4, 1, 0, 5 and 5 of 12 rows; no run has five rows.
    each = 1 / comb(12, 4) + 1 / 3
    assert found.expected_alone == pytest.approx({"a": each, "b": each, "c": each})
    assert "2 tasks are solved by one run alone; 1.0 would be so" in found.notes[0]
    assert "1 task is solved by no run" in found.notes[1]
    assert "12 repeats" in found.notes[1]
    assert "22%" in found.notes[1]  # 1 - .05^(1/12)


def test_tasks_that_match_by_content_are_shared_under_the_keys_of_the_first_run() -> None:
    a, b = side("a", {"1": "10", "2": "11"}), side("b", {"1": "00", "7": "01", "2": "11"})
    by_name = model.Alignment("name", ("1", "2"), common_candidate=("7", "1"))
    found = shared([a, b], {("a", "b"): versus(a, b, alignment=by_name)})
    assert found.keys == ("1", "2")
    assert found.passes.tolist() == [[1, 2], [1, 0]]


def test_rewards_without_a_threshold_solve_nothing() -> None:
    sides = [side(name, {"1": [0.5, 0.7], "2": [1.5, -1]}) for name in "ab"]
    found: Any = matrix(sides, all_pairs(sides))
    assert (found.none_solves, found.all_solve, found.only_one, found.alone) == ((), (), {"a": (), "b": ()}, ())
    assert "no threshold" in found.notes[0]
    found = series([side(f"r{i}", {"1": [1.5 * i], "2": [i - 2.0]}) for i in range(3)])  # a trend, but no tasks learned
    assert (found.slope, found.learned) == (pytest.approx(1.25), ())
    assert "nothing shows how repeats of a task vary" in found.notes[0]


# ---- Fronts ---------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_every_run_is_on_the_front_or_beaten_by_one_that_is(points: list[tuple[int, int]]) -> None:
    on = front([float(score) for score, _ in points], [float(cost) for _, cost in points])
    assert any(on)
    for (score, cost), stays in zip(points, on, strict=True):
        beaten = [kept for kept, (s, c) in zip(on, points, strict=True) if s >= score and c <= cost and (s, c) != (score, cost)]
        assert any(beaten) is not stays


def test_cost_and_tokens_are_means_of_a_rollout_over_the_tasks_that_report_them() -> None:
    a = side("a", {"1": "11", "2": "10"}, effort={"output_tokens": {("1", 0): 10, ("1", 1): 30, ("2", 0): 100}, "cost_usd": {("1", 0): 1}})
    b = side("b", {"1": "00", "2": "10"}, effort={"output_tokens": {("1", 0): 10, ("2", 1): 50}})
    c = side("c", {"1": "01", "2": "10"})
    found = matrix([a, b, c], all_pairs([a, b, c]))
    assert [placed.tokens for placed in found.placed] == [60, 30, None]
    assert [placed.cost for placed in found.placed] == [1, None, None]
    assert [placed.on_front_tokens for placed in found.placed] == [True, True, None]
    assert [placed.on_front_cost for placed in found.placed] == [True, None, None]
    assert any("cost_usd: over the 1 of 2 tasks" in note for note in found.notes)


def test_the_slope_is_in_points_of_score_a_checkpoint() -> None:
    sides = [side(f"c{i}", {"1": [0.1 * i], "2": [0.3 + 0.2 * i], "3": [0.5]}) for i in range(4)]
    found = series(sides)
    assert found.slope == pytest.approx(0.1)  # of 0.1, 0.2 and 0
    assert [point.score for point in found.checkpoints] == pytest.approx([0.8 / 3 + 0.1 * i for i in range(4)])
    assert [point.change for point in found.checkpoints[1:]] == pytest.approx([0.1, 0.2, 0.3])
    assert found.checkpoints[0].change is None


def test_a_planted_climb_is_found_with_the_checkpoint_where_it_shows() -> None:
    steps = enumerate((0, 0, 0.2, 0.25, 0.3))
    found = series([drawn(f"step {i}", [min(1.0, 0.2 + 0.6 * task / 100 + step) for task in range(100)]) for i, step in steps])
    assert found.low > 0
    assert found.slope == pytest.approx(0.085, abs=0.03)
    assert found.first_different == "step 2"
    assert found.checkpoints[1].p_adjusted > 0.05


def test_tasks_learned_and_forgotten_are_those_the_repeats_make_sure() -> None:
    rates = [i / 60 for i in range(60)]
    first, middle, last = (drawn(name, rates, 8) for name in ("first", "middle", "last"))

    def planted(base: Side, learned: str, forgotten: str) -> Side:
        tasks = {key: "".join(str(int(x)) for x in base.judged.passed[base.judged.task == code]) for code, key in enumerate(base.judged.task_keys)}
        return side(base.run, tasks | {"learned": learned, "forgotten": forgotten, "one more": learned[:1] + "0" * 7})

    found = series([planted(first, "00000000", "11111111"), planted(middle, "00110000", "11011011"), planted(last, "11111111", "00000000")])
    assert found.learned[0][0] == "learned"
    assert found.forgotten[0][0] == "forgotten"
    assert found.learned[0][1] > 0.99
    assert "one more" not in dict(found.learned)
    assert (found.n_learned, found.n_forgotten) == (len(found.learned), len(found.forgotten))
    assert "chance" in found.notes[0]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.text("01", min_size=3, max_size=3), min_size=4, max_size=4), min_size=2, max_size=4))
def test_the_reverse_order_turns_every_sign(runs: list[list[str]]) -> None:
    sides = [side(f"r{i}", {str(task): row for task, row in enumerate(rows)}) for i, rows in enumerate(runs)]
    forward, backward = series(sides), series(sides[::-1])
    assert backward.slope == pytest.approx(-forward.slope)
    assert forward.p == pytest.approx(backward.p)
    assert [task for task, _ in forward.learned] == [task for task, _ in backward.forgotten]


def test_planted_learning_stands_out_from_chance() -> None:
    rates = [i / 400 for i in range(400)]
    better = [min(1, rate + 0.5) if i % 4 == 0 else rate for i, rate in enumerate(rates)]
    found = series([drawn("before", rates, 8), drawn("between", rates, 8), drawn("after", better, 8)])
    assert found.n_learned > 3 * found.null_learned
    assert "tasks learned where chance shows" in found.notes[0]
    assert all(int(task) % 4 == 0 for task, _ in found.learned[:15])  # the surest first

"""Verdicts on two questions: claimed where test and interval agree, equivalent only within the margin."""

from __future__ import annotations

import numpy as np

from blade.compare import compare
from tests.compare.builders import drawn, side
from tests.compare.builders import versus as judged

MARGIN = 0.03


def test_an_unchanged_model_is_equivalent_once_the_data_can_say_so():
    """500 tasks of the same rates, with repeats: equivalent; near-miss: one repeat cannot tell, and says so."""
    rates = np.random.default_rng(5).beta(0.6, 0.4, 500)
    said = [judged(drawn("a", rates, 16, str(s)), drawn("b", rates, 16, str(s))) for s in range(10)]
    assert sum(one.verdict == "equivalent" for one in said) >= 9
    assert sum(one.verdict_new_tasks == "equivalent" for one in said) >= 9
    once = [judged(drawn("a", rates, 1, str(s)), drawn("b", rates, 1, str(s)), 0.05) for s in range(20)]
    words = {one.verdict_new_tasks for one in once}
    assert "equivalent" in words
    assert sum(one.verdict_new_tasks in ("improved", "regressed") for one in once) <= 3
    unsure = [one for one in once if one.verdict_new_tasks == "inconclusive"]
    assert all(one.power.mde is not None and one.power.tasks_needed for one in unsure)


def test_a_change_on_these_tasks_need_not_hold_on_new_ones():
    """Five tasks of many change fully: real here, and too few to tell of others."""
    a = {**{f"t{i}": "11110000" for i in range(30)}, **{f"u{i}": "00000000" for i in range(8)}}
    b = {**{f"t{i}": "11110000" for i in range(30)}, **{f"u{i}": "11111111" for i in range(5)}}
    b |= {f"u{i}": "00000000" for i in range(5, 8)}
    found = judged(side("a", a), side("b", b))
    assert found.verdict == "improved"
    assert found.verdict_new_tasks == "inconclusive"


def test_more_data_is_advised_in_repeats_and_in_tasks():
    a = side("a", {f"t{i}": "1100" if i % 2 else "1000" for i in range(60)})
    b = side("b", {f"t{i}": "1000" if i % 2 else "1100" for i in range(60)})
    found = judged(a, b).power
    assert found.mde > MARGIN
    assert found.omega2 == 0
    assert 60 < found.repeats_needed < 100
    assert found.tasks_needed > 100
    rates = np.full(60, 0.5)
    once = judged(drawn("a", rates, 1), drawn("b", rates, 1)).power
    assert once.repeats_needed is None  # one row a task does not tell chance from churn
    assert once.tasks_needed > 0


def test_rollouts_without_a_score_bound_the_change():
    """One of four is lost in the candidate: it may have failed or passed; near-miss: none is lost."""
    a, b = side("a", {"x": "1100", "y": "1111"}), side("b", {"x": "110", "y": "1111"}, expected={"x": 4})
    note = next(note for note in compare(a, b).notes if "have no score" in note)
    assert "1 expected rollouts of the common tasks" in note
    assert "between +0.0 and +12.5 points" in note
    assert not any("have no score" in note for note in compare(a, side("b", {"x": "1100", "y": "1111"})).notes)

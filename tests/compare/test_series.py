"""Checkpoints in order: the trend, the first that differs, tasks learned and forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade import stats
from blade.compare.several_runs import series
from blade.model import Side
from tests.compare.builders import side


def drawn(run: str, rates: list[float], repeats: int) -> Side:
    rng = stats.seeded_rng("series", run)
    return side(run, {str(i): "".join(str(int(x)) for x in rng.random(repeats) < rate) for i, rate in enumerate(rates)})


def climbing(steps: list[float], repeats: int = 4, tasks: int = 100, name: str = "step") -> list[Side]:
    return [
        drawn(f"{name} {i}", [min(1.0, max(0.0, 0.2 + 0.6 * task / tasks + step)) for task in range(tasks)], repeats)
        for i, step in enumerate(steps)
    ]


def test_the_slope_is_in_points_of_score_a_checkpoint() -> None:
    sides = [side(f"c{i}", {"1": [0.1 * i], "2": [0.3 + 0.2 * i], "3": [0.5]}) for i in range(4)]
    found = series(sides)
    assert found.slope == pytest.approx(0.1)  # of 0.1, 0.2 and 0
    assert [point.score for point in found.checkpoints] == pytest.approx([0.8 / 3 + 0.1 * i for i in range(4)])
    assert [point.change for point in found.checkpoints[1:]] == pytest.approx([0.1, 0.2, 0.3])
    assert found.checkpoints[0].change is None


def test_a_planted_climb_is_found_with_the_checkpoint_where_it_shows() -> None:
    found = series(climbing([0, 0, 0.2, 0.25, 0.3]))
    assert found.low > 0
    assert found.slope == pytest.approx(0.085, abs=0.03)
    assert found.first_different == "step 2"
    assert found.checkpoints[1].p_adjusted > 0.05


def test_checkpoints_are_adjusted_over_them_all() -> None:
    sides = climbing([0, 0.05, 0.06, 0.05], name="slight")
    found = series(sides)
    means = [np.array([side.judged.score[side.judged.task == i].mean() for i in range(100)]) for side in sides]
    raw = [stats.mean_change(mean - means[0], 0.25) for mean in means[1:]]
    assert [point.p_adjusted for point in found.checkpoints[1:]] == pytest.approx(stats.holm([change.p if change else None for change in raw]))


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


def test_only_tasks_that_every_checkpoint_has() -> None:
    sides = [side("a", {"1": "10", "2": "11", "3": "00"}), side("b", {"1": "10", "3": "01"}), side("c", {"1": "11", "2": "00", "3": "11"})]
    assert series(sides).n_tasks == 2
    nothing = series([side("a", {"1": "1"}), side("b", {"2": "1"}), side("c", {"3": "1"})])
    assert (nothing.n_tasks, nothing.slope, nothing.checkpoints) == (0, None, ())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.text("01", min_size=3, max_size=3), min_size=4, max_size=4), min_size=2, max_size=4))
def test_the_reverse_order_turns_every_sign(runs: list[list[str]]) -> None:
    sides = [side(f"r{i}", {str(task): row for task, row in enumerate(rows)}) for i, rows in enumerate(runs)]
    forward, backward = series(sides), series(sides[::-1])
    assert backward.slope == pytest.approx(-forward.slope)
    assert forward.p == pytest.approx(backward.p)
    assert [task for task, _ in forward.learned] == [task for task, _ in backward.forgotten]


def test_rewards_without_a_threshold_have_a_trend_but_no_tasks_learned() -> None:
    found = series([side(f"r{i}", {"1": [1.5 * i], "2": [i - 2.0]}) for i in range(3)])
    assert found.slope == pytest.approx(1.25)
    assert found.learned == ()
    assert "nothing shows how repeats of a task vary" in found.notes[0]


def test_the_same_model_again_learns_no_more_than_chance_shows() -> None:
    rates = [i / 400 for i in range(400)]
    found = series([drawn(name, rates, 8) for name in ("again 0", "again 1", "again 2")])
    assert found.n_learned + found.n_forgotten > 5  # a bare list would look like news
    assert abs(found.n_learned - found.null_learned) < 3 * found.null_learned**0.5
    assert found.notes[0].count("no more than chance shows") == 2


def test_planted_learning_stands_out_from_chance() -> None:
    rates = [i / 400 for i in range(400)]
    better = [min(1, rate + 0.5) if i % 4 == 0 else rate for i, rate in enumerate(rates)]
    found = series([drawn("before", rates, 8), drawn("between", rates, 8), drawn("after", better, 8)])
    assert found.n_learned > 3 * found.null_learned
    assert "tasks learned where chance shows" in found.notes[0]
    assert all(int(task) % 4 == 0 for task, _ in found.learned[:15])  # the surest first

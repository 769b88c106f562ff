"""Several runs of the same tasks: items that go against the rest, reversals, answers they agree on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from blade.measure import soundness
from blade.measure.soundness.items import above
from blade.measure.soundness.patterns import item_rest, loevinger, rasch
from blade.model import Judged, Level
from tests.builders import Row
from tests.measure.builders import make_rollouts
from tests.measure.sounded import columns, make_judged, make_soundings
from tests.traces import did, rollout

MODELS_BY_TASKS = np.array([[int(mark) for mark in row] for row in ("111110", "111100", "111001", "110001", "100001")])


def test_item_rest_correlations_are_those_of_the_textbook() -> None:
    r = item_rest(MODELS_BY_TASKS)
    assert np.isnan(r[0])
    assert r[1:] == pytest.approx([0.5345, 0.6455, 0.3273, 0.375, -0.866], abs=5e-5)


def test_scalability_is_that_of_the_textbook() -> None:
    h = loevinger(MODELS_BY_TASKS)
    assert np.isnan(h[0])
    assert h[1:] == pytest.approx([0.4444, 0.3333, 0.2308, 0.375, -1.0], abs=5e-5)


def test_one_ability_and_one_difficulty_reproduce_the_margins() -> None:
    n = np.full((3, 40), 50)
    truth = 1 / (1 + np.exp(-(np.array([[-1], [0], [1]]) + np.linspace(-2, 2, 40))))
    c = np.rint(n * truth)
    assert np.abs(rasch(n, c) - truth).max() < 0.03


def test_the_chance_that_one_rate_is_above_another_is_exact() -> None:
    assert above(2, 0, 2, 2) == pytest.approx(0.95)
    assert above(1, 0, 1, 1) == pytest.approx(5 / 6)
    assert above(7, 3, 7, 3) == pytest.approx(0.5)


def run(rates: Sequence[int], k: int) -> Judged:
    """A run from the passes of each task."""
    rewards = {str(t): [1.0] * c + [0.0] * (k - c) for t, c in enumerate(rates)}
    return make_judged(make_rollouts(rewards))


K = 8
STRONG = [8, 7, 8, 7] * 10
WEAK = [1, 0, 2, 1] * 10


def turned(passes: list[int], tasks: range, value: int) -> list[int]:
    return [value if t in tasks else c for t, c in enumerate(passes)]


def test_tasks_that_only_the_worse_run_passes_are_reversals() -> None:
    runs = {"good": run(turned(STRONG, range(4), 0), K), "bad": run(turned(WEAK, range(4), 8), K)}
    sound = soundness.items(runs)
    (found,) = sound.health
    assert (found.flag, found.run, found.level, found.value, found.n) == ("reversals", "good", Level.WARNING, 4.0, 40)
    assert set(sound.suspects) == {"0", "1", "2", "3"}
    assert soundness.points(sound.suspects["0"]) == 1


def test_a_run_that_is_better_throughout_has_none() -> None:
    assert soundness.items({"good": run(STRONG, K), "bad": run(WEAK, K)}).health == ()


def test_runs_of_one_repeat_cannot_show_a_reversal() -> None:
    good = [1] * 30 + [0] * 4
    bad = [0] * 30 + [1] * 4
    found = soundness.items({"good": run(good, 1), "bad": run(bad, 1)}).health
    assert not [one for one in found if one.flag == "reversals"]


def test_runs_of_equal_strength_have_no_order_to_reverse() -> None:
    one, other = [8, 0] * 20, [0, 8] * 20
    assert soundness.items({"one": run(one, K), "other": run(other, K)}).health == ()


def test_noise_raises_no_reversal_and_no_item() -> None:
    rng = np.random.default_rng(5)
    raised = 0
    for _ in range(20):
        hard = rng.normal(0, 1.5, 60)
        runs = {
            name: run(rng.binomial(4, 1 / (1 + np.exp(-(ability + hard)))).tolist(), 4)
            for name, ability in (("a", -1.0), ("b", 0.0), ("c", 1.0))
        }
        raised += bool(soundness.items(runs).suspects)
    assert raised <= 2


def test_items_that_go_against_five_runs_are_told() -> None:
    rng = np.random.default_rng(7)
    runs = {}
    for name, ability in zip("abcde", (-2.0, -1.0, 0.0, 1.0, 2.0), strict=True):
        chance = 1 / (1 + np.exp(-(ability + np.linspace(-1, 1, 40))))
        chance[:8] = 1 - 1 / (1 + np.exp(-2 * ability))  # keys turned round
        runs[name] = run(rng.binomial(K, chance).tolist(), K)
    sound = soundness.items(runs)
    found = next(one for one in sound.health if one.flag == "item_rest")
    assert found.level is Level.WARNING
    assert {str(t) for t in range(8)} <= set(sound.suspects)
    assert {one.flag for one in sound.suspects["0"]} >= {"item_rest", "scalability"}
    assert not {key for key in sound.suspects if int(key) >= 8}


# ---- Answers -------------------------------------------------------------------------------------


def answers(said: Sequence[str], golds: Sequence[str]) -> list[Row]:
    return [
        rollout(did(f"run says {answer}"), float(answer == gold), r, t, extracted_answer=answer, expected_answer=gold)
        for t, (answer, gold) in enumerate(zip(said, golds, strict=True))
        for r in range(2)
    ]


def across(*runs: Sequence[Row]) -> soundness.Sound:
    named = {f"run{at}": rows for at, rows in enumerate(runs)}
    judged = {name: make_judged(columns(rows)) for name, rows in named.items()}
    return soundness.items(judged, {name: make_soundings(rows) for name, rows in named.items()})


GOLDS = [str(n) for n in range(10)]


def test_runs_that_agree_on_a_wrong_answer_cast_doubt_on_the_key() -> None:
    wrong = ["77", *GOLDS[1:]]
    sound = across(answers(wrong, GOLDS), answers(wrong, GOLDS))
    found = next(one for one in sound.health if one.flag == "unanimous_wrong_answer")
    assert (found.value, found.n) == (0.1, 10)
    assert set(sound.suspects) == {"0"}


def test_runs_that_are_wrong_in_different_ways_do_not() -> None:
    sound = across(answers(["77", *GOLDS[1:]], GOLDS), answers(["78", *GOLDS[1:]], GOLDS))
    assert not [one for one in sound.health if one.flag == "unanimous_wrong_answer"]


def test_runs_of_other_tasks_under_the_same_keys_are_not_held_together() -> None:
    others = [str(n) for n in range(50, 60)]
    wrong = ["77"] * 10
    assert across(answers(wrong, GOLDS), answers(wrong, others)).health == ()


def test_one_run_alone_says_nothing() -> None:
    assert soundness.items({"a": run(STRONG, K)}).health == ()
    assert soundness.items({}).health == ()

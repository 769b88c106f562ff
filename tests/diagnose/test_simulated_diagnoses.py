"""Where there is nothing to find, nothing is found; where there is, the gain is told with an interval that holds it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tools.calibration import simulated_diagnoses as simulated

FULL = pytest.mark.slow  # the same claims on all runs


@pytest.mark.parametrize("n", [20, pytest.param(200, marks=FULL)])
def test_shuffled_rewards_have_no_behaviour(n: int) -> None:
    """The same runs with their own rewards show one: the simulation is able to."""
    assert simulated.share_with(simulated.shuffled, range(n)) <= 0.05
    assert simulated.share_with(lambda seed: simulated.shuffled(seed, is_shuffled=False), range(10)) >= 0.5


@pytest.mark.parametrize("n", [4, pytest.param(100, marks=FULL)])  # each size of a run once
def test_hardness_is_no_behaviour(n: int) -> None:
    """Nearly deterministic tasks."""
    assert simulated.share_with(simulated.deterministic, range(n)) <= 0.05


@pytest.mark.parametrize("n", [6, pytest.param(100, marks=FULL)])
@pytest.mark.parametrize("n_errors", [1, 4])
def test_help_after_an_error_is_never_to_be_avoided(n_errors: int, n: int) -> None:
    """Every failing rollout that asks has met the error before: the earlier of the two names the group."""
    runs = [simulated.reversed_(seed, n_errors) for seed in range(n)]
    assert [sentence for run in runs for sentence in simulated.avoids(run, "ask_clerk")] == []
    names = [group.name for run in runs for group in run.groups]
    assert names
    assert n_errors > 1 or not [name for name in names if name.startswith("calls `ask_clerk`")]
    runs[0].groups[0].fix = "Show the model examples. Have it avoid `ask_clerk` after an error."  # what the first line relies on
    assert simulated.avoids(runs[0], "ask_clerk") == ["Have it avoid `ask_clerk` after an error."]


@cache
def estimates(effect: float, n: int = 8) -> tuple[simulated.Estimate, ...]:
    return tuple(simulated.fault(seed, effect) for seed in range(n))


def test_gain_is_an_estimate_of_what_a_fix_wins() -> None:
    """Mean over runs within two points of the truth, and the interval is no mere 0 to 1; nothing of a fault that costs nothing."""
    told = [(estimate.gain, estimate.truth) for estimate in estimates(1.0) if estimate.gain is not None]
    assert min(len(told), sum(estimate.gain is not None for estimate in estimates(0.5))) >= 0.7 * 8
    assert abs(float(np.mean([gain.point - truth for gain, truth in told]))) <= 0.02
    assert max(gain.high - gain.low for gain, _ in told) <= 0.2
    printed = [estimate for effect in (1.0, 0.5, 0.25) for estimate in estimates(effect) if estimate.gain is not None]
    assert np.mean([estimate.is_held for estimate in printed]) >= 0.9
    assert [estimate.gain for estimate in estimates(0.0)] == [None] * 8


@pytest.mark.slow
@pytest.mark.parametrize("effect", [1.0, 0.5, 0.25, 0.0])
def test_interval_holds_the_gain_in_full(effect: float) -> None:
    printed = [estimate for estimate in estimates(effect, 200) if estimate.gain is not None]
    least, most = (140, 200) if effect >= 0.5 else (0, 10) if effect == 0.0 else (0, 200)
    assert least <= len(printed) <= most
    missed = sum(not estimate.is_held for estimate in printed)
    assert missed <= max(0.1 * len(printed), 1)  # a single miss of a few is no proof

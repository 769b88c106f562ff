"""Where there is nothing to find, nothing is found; where there is, the gain is told with an interval that holds it.

Small versions here; the full ones are slow, and `python -m tests.diagnose.nulls` prints them as a table.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.diagnose import nulls

# ---- (a) Rewards shuffled within tasks -----------------------------------------------------------


def test_shuffled_rewards_have_no_behaviour() -> None:
    assert nulls.share_with(nulls.shuffled, range(20)) <= 0.05


@pytest.mark.slow
def test_shuffled_rewards_have_no_behaviour_in_full() -> None:
    assert nulls.share_with(nulls.shuffled, range(200)) <= 0.05


def test_same_runs_before_the_shuffle_have_one() -> None:
    """The same runs with their own rewards: the simulation is able to show a behaviour."""
    assert nulls.share_with(lambda seed: nulls.shuffled(seed, is_shuffled=False), range(10)) >= 0.5


# ---- (b) Nearly deterministic tasks --------------------------------------------------------------


def test_hardness_is_no_behaviour() -> None:
    assert nulls.share_with(nulls.deterministic, range(8)) == 0


@pytest.mark.slow
def test_hardness_is_no_behaviour_in_full() -> None:
    assert nulls.share_with(nulls.deterministic, range(100)) <= 0.05


# ---- (c) Reverse causation -----------------------------------------------------------------------


@pytest.mark.parametrize("n_errors", [1, 4])
def test_help_after_an_error_is_never_to_be_avoided(n_errors: int) -> None:
    runs = [nulls.reversed_(seed, n_errors) for seed in range(6)]
    assert [sentence for run in runs for sentence in nulls.avoids(run, "ask_clerk")] == []


@pytest.mark.slow
@pytest.mark.parametrize("n_errors", [1, 4])
def test_help_after_an_error_is_never_to_be_avoided_in_full(n_errors: int) -> None:
    runs = [nulls.reversed_(seed, n_errors) for seed in range(100)]
    assert [sentence for run in runs for sentence in nulls.avoids(run, "ask_clerk")] == []


def test_error_names_the_group_and_not_the_help_that_follows() -> None:
    """Every failing rollout that asks has met the error before: the earlier of the two names the group."""
    for seed in range(6):
        names = [group.name for group in nulls.reversed_(seed, 1).groups]
        assert names
        assert not any(name.startswith("calls `ask_clerk`") for name in names), names


def test_avoids_sees_a_fix_that_tells_to_avoid_a_call() -> None:
    """What the tests above rely on."""
    run = nulls.reversed_(0)
    assert run.groups
    run.groups[0].fix = "Show the model examples. Have it avoid `ask_clerk` after an error."
    assert nulls.avoids(run, "ask_clerk") == ["Have it avoid `ask_clerk` after an error."]


# ---- (d) Gains -----------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [1.0, 0.5])
def test_gain_is_told_where_a_fault_costs_half_or_all(effect: float) -> None:
    estimates = [nulls.fault(seed, effect) for seed in range(8)]
    assert np.mean([estimate.gain is not None for estimate in estimates]) >= 0.7


def test_interval_holds_the_gain() -> None:
    estimates = [nulls.fault(seed, effect) for effect in (1.0, 0.5, 0.25) for seed in range(8)]
    printed = [estimate for estimate in estimates if estimate.gain is not None]
    assert len(printed) >= 8
    assert np.mean([estimate.is_held for estimate in printed]) >= 0.9


def test_no_gain_is_told_of_a_fault_that_costs_nothing() -> None:
    assert [nulls.fault(seed, 0.0).gain for seed in range(8)] == [None] * 8


def test_gain_is_an_estimate_of_what_a_fix_wins() -> None:
    """Mean over runs within two points of the truth, and the interval is no mere 0 to 1."""
    estimates = [nulls.fault(seed, 1.0) for seed in range(8)]
    errors = [estimate.gain.point - estimate.truth for estimate in estimates if estimate.gain is not None]
    widths = [estimate.gain.high - estimate.gain.low for estimate in estimates if estimate.gain is not None]
    assert errors
    assert abs(float(np.mean(errors))) <= 0.02
    assert max(widths) <= 0.2


@pytest.mark.slow
@pytest.mark.parametrize("effect", [1.0, 0.5, 0.25, 0.0])
def test_interval_holds_the_gain_in_full(effect: float) -> None:
    estimates = [nulls.fault(seed, effect) for seed in range(200)]
    printed = [estimate for estimate in estimates if estimate.gain is not None]
    if effect >= 0.5:
        assert len(printed) >= 0.7 * len(estimates)
    elif effect == 0.0:
        assert len(printed) <= 0.05 * len(estimates)
    missed = sum(not estimate.is_held for estimate in printed)
    assert missed <= max(0.1 * len(printed), 1)  # a single miss of a few is no proof


@pytest.mark.slow
def test_table_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    nulls.main(seeds=2)
    table = capsys.readouterr().out
    assert "shuffled" in table
    assert table.count("effect") >= 4

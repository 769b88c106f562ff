"""Measures beside the score: reference values, their intervals, and either run as the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blade.compare.shifts import derived
from blade.compare.task_pairs import Paired, paired
from blade.model import Derived
from tests.compare.builders import Outcomes, side
from tests.compare.versus import aligned

F1_A = ["1111", "1110", "1111", "1010", "1000", "0000", "1100", "0000"]
F1_B = ["1111", "1111", "1000", "1111", "1111", "1111", "1100", "0000"]


def named(rows: Sequence[str | Sequence[float]]) -> Outcomes:
    return {str(i): row for i, row in enumerate(rows)}


def pair_of(
    a: Sequence[str | Sequence[float]], b: Sequence[str | Sequence[float]], effort_a: Mapping[str, Any] | None = None,
    effort_b: Mapping[str, Any] | None = None,
) -> Paired:
    first, second = side("old", named(a), effort=effort_a), side("new", named(b), effort=effort_b)
    return paired(first, second, aligned(first, second))


def told(pair: Paired) -> dict[tuple[str, int | None], Derived]:
    return {(one.name, one.k): one for one in derived(pair)}


def test_reference_values() -> None:
    found = told(pair_of(F1_A, F1_B))
    values = {name: (one.baseline, one.candidate) for name, one in found.items()}
    assert values == {
        ("pass_at_k", 2): (pytest.approx(0.6458333333), pytest.approx(0.7916666667)),
        ("pass_at_k", 4): (pytest.approx(0.75), pytest.approx(0.875)),
        ("pass_hat_k", 2): (pytest.approx(0.3541666667), pytest.approx(0.6458333333)),
        ("pass_hat_k", 4): (pytest.approx(0.25), pytest.approx(0.625)), ("solved", None): (0.75, 0.875),
        ("consistency", None): (0.25, 0.625),
    }
    for one in found.values():
        assert one.change == one.candidate - one.baseline
        assert one.low <= one.change <= one.high
        assert (one.n, one.method, one.unit) == (8, "task bootstrap", "rate")


def test_the_bootstrap_draws_tasks() -> None:
    first, second = (replace(side(name, named(rows)), score_name="mean_reward") for name, rows in (("old", F1_A), ("new", F1_B)))
    found = told(paired(first, second, aligned(first, second)))["pass_at_1", None]
    assert (found.baseline, found.candidate, found.change) == (0.5, 0.71875, 0.21875)
    assert found.low == pytest.approx(-0.15625, abs=1 / 32)  # means of eight tasks go in such steps
    assert found.high == pytest.approx(0.5625, abs=1 / 32)


def test_k_goes_as_far_as_half_of_the_tasks_have_rows_in_both_runs() -> None:
    found = told(pair_of(["1010", "1100", "11", "1"], ["1011", "0000", "1010", "1111"]))
    assert {k for name, k in found if name == "pass_at_k"} == {2, 4}
    assert found["pass_at_k", 4].n == 2
    assert found["pass_at_k", 2].n == 3
    lone = told(pair_of(["1", "0", "1111"], ["0", "0", "1111"]))
    assert {name for name, _ in lone} == {"solved", "consistency"}


def test_more_repeats_alone_solve_no_more_tasks() -> None:
    """Twice the rows of the same rate: counted raw, more tasks would be solved, and fewer always."""
    found = told(pair_of(["10", "10", "00", "11"], ["1010", "1100", "0000", "1111"]))
    assert found["solved", None].baseline == 0.75
    assert found["solved", None].candidate == pytest.approx((5 / 6 + 5 / 6 + 0 + 1) / 4)
    assert found["consistency", None].candidate == pytest.approx((1 / 6 + 1 / 6 + 0 + 1) / 4)
    assert "fewer" in found["solved", None].method


def test_tasks_that_change_alike_give_no_interval() -> None:
    found = told(pair_of(["11", "00", "10"], ["11", "00", "10"]))
    for one in found.values():
        assert (one.change, one.low, one.high) == (0.0, None, None)
        assert one.method.startswith("no interval")


def test_without_a_pass_rate_there_is_no_pass_at_k() -> None:
    assert derived(pair_of([[0.2, 0.4], [0.3, 0.5]], [[0.1, 0.2], [0.7, 0.5]])) == ()
    assert derived(pair_of([], [])) == ()


def effort(values: Sequence[float], k: int = 2) -> dict[tuple[str, int], float]:
    return {(str(task), repeat): value for task, value in enumerate(values) for repeat in range(k)}


def test_effort_is_a_mean_of_tasks_and_output_tokens_have_a_ratio() -> None:
    rng = np.random.default_rng(1)
    before = rng.uniform(500, 1500, 40).tolist()
    after = [value * factor for value, factor in zip(before, rng.uniform(1.3, 1.7, 40).tolist(), strict=True)]
    found = told(
        pair_of(
            ["10"] * 40,
            ["10"] * 40,
            {"output_tokens": effort(before), "turns": effort(before)},
            {"output_tokens": effort(after)},
        )
    )
    tokens, ratio = found["output_tokens", None], found["log_output_tokens", None]
    assert (tokens.unit, ratio.unit) == ("tokens", "log ratio")
    assert tokens.baseline == pytest.approx(np.mean(before))
    assert math.exp(ratio.change) == pytest.approx(np.mean(after) / np.mean(before))
    assert math.log(1.4) < ratio.low < ratio.change < ratio.high < math.log(1.6)
    assert ("turns", None) not in found  # the candidate does not report them


@pytest.mark.parametrize("odd", [[-50.0, 20.0, 10.0], [0.0, 0.0, 0.0], [-5.0, 5.0, 0.0]])
def test_tokens_that_are_no_amount_have_no_ratio(odd: list[float]) -> None:
    """Rows may report fewer tokens than none; near-miss: a task without any is an amount."""
    a, b = (["10"] * 3,) * 2
    found = told(pair_of(a, b, {"output_tokens": effort([3.0, 4.0, 5.0])}, {"output_tokens": effort(odd)}))
    assert ("log_output_tokens", None) not in found
    assert found["output_tokens", None].candidate == pytest.approx(np.mean(odd))
    some = told(pair_of(a, b, {"output_tokens": effort([3.0, 4.0, 5.0])}, {"output_tokens": effort([0.0, 8.0, 4.0])}))
    assert some["log_output_tokens", None].change == pytest.approx(0.0)


def test_many_tasks_take_an_interval_without_draws_that_is_the_same() -> None:
    rng = np.random.default_rng(2)
    n = 400
    before, after = rng.gamma(2, 500, n), rng.gamma(2, 600, n)
    whole = pair_of(["10"] * n, ["10"] * n, {"output_tokens": effort(before.tolist())}, {"output_tokens": effort(after.tolist())})
    # Each second of two hundred values for two tasks: few enough to draw, and spread alike.
    coarse_a, coarse_b = np.repeat(np.sort(before)[::4], 4), np.repeat(after[::4], 4)
    few = pair_of(
        ["10"] * n,
        ["10"] * n,
        {"output_tokens": effort(coarse_a.tolist())},
        {"output_tokens": effort(coarse_b.tolist())},
    )
    for name in ("output_tokens", "log_output_tokens"):
        exact, drawn = told(whole)[name, None], told(few)[name, None]
        assert (exact.method, drawn.method) == ("paired t", "task bootstrap")
        widths = []
        for one in (exact, drawn):
            widths.append(one.high - one.low)
        assert widths[0] == pytest.approx(widths[1], rel=0.25)


passing = st.lists(st.tuples(*[st.text("01", min_size=1, max_size=5)] * 2), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(
    passing, st.lists(st.sampled_from([1.0, 2.5, 9.1]), min_size=16, max_size=16),
    st.sampled_from([("a", "b"), ("b", "a"), ("a", "a")]),
)
def test_exchanging_the_runs_turns_every_sign_and_moves_no_digit(
    tasks: list[tuple[str, str]], values: list[float], names: tuple[str, str]
) -> None:
    n = len(tasks)
    sides = [
        side(name, named(rows), effort={"output_tokens": {(str(i), 0): value for i, value in enumerate(told_of[:n])}})
        for name, rows, told_of in zip(names, zip(*tasks, strict=True), (values[:8], values[8:]), strict=True)
    ]
    there = derived(paired(*sides, aligned(*sides)))
    back = derived(paired(*sides[::-1], aligned(*sides[::-1])))
    if names[0] == names[1]:
        # Runs of one name and the same scores are told apart by nothing; their effort may still differ.
        there, back = (tuple(one for one in found if one.unit == "rate") for found in (there, back))
    for x, y in zip(there, back, strict=True):
        assert (x.name, x.k, x.n, x.method) == (y.name, y.k, y.n, y.method)
        assert (x.baseline, x.candidate, x.change) == (y.candidate, y.baseline, -y.change)
        assert (x.low, x.high) == (None if y.high is None else -y.high, None if y.low is None else -y.low)

"""Numbers in words, and foreign text without its teeth."""

from __future__ import annotations

import math

import pytest

from blade import number_format


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (1e-9, "<0.1%"),
        (0.000499, "<0.1%"),
        (0.0005, "0.1%"),
        (0.999, "99.9%"),
        (0.9994, "99.9%"),
        (0.9995, ">99.9%"),
        (1 - 1e-9, ">99.9%"),
        (0.1 + 0.2 + 0.7, "100%"),
        (0.42, "42.0%"),
        (-0.1, "−10.0%"),
        (-0.0, "0%"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_percent_says_0_and_100_only_when_exact(value: float | None, said: str) -> None:
    assert number_format.percent(value) == said


def test_no_inexact_rate_prints_as_0_or_100() -> None:
    said = {number_format.percent(at / 20_000) for at in range(1, 20_000)}
    assert not said & {"0%", "0.0%", "100%", "100.0%"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.25, "+25.0 points"),
        (-0.031, "−3.1 points"),
        (0.0001, "+<0.1 points"),
        (0.0, "0 points"),
        (None, "–"),
    ],
)
def test_points_are_signed(value: float | None, said: str) -> None:
    assert number_format.points(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (12.0, "12"), (1319.0, "1,319"), (1319.7, "1,320"), (0.46, "0.460"), (-3.25, "−3.25"), (2.00001, "2"), (9.8691, "9.869"), (2e-5, "2e-05"),
     (1e300, "1e+300"), (math.nan, "–")],
)  # fmt: skip
def test_numbers_keep_about_four_figures(value: float, said: str) -> None:
    assert number_format.number(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (1.0, "1"), (0.0004, "<0.001"), (0.9999, ">0.999"), (0.62, "0.62"), (0.004, "0.004")],
)
def test_probabilities_are_0_and_1_only_when_exact(value: float, said: str) -> None:
    assert number_format.probability(value) == said


def test_p_values_read_as_such() -> None:
    assert [number_format.p_value(value) for value in (0.25, 0.0001, 0.0, None)] == [
        "p = 0.25",
        "p <0.001",
        "p <0.001",
        "p not testable",
    ]


def test_listing_and_counts() -> None:
    assert number_format.listing([]) == ""
    assert number_format.listing(["a"]) == "a"
    assert number_format.listing(["a", "b", "c"]) == "a, b and c"
    assert number_format.count(1, "task") == "1 task"
    assert number_format.count(1319, "task") == "1,319 tasks"

"""Numbers as people read them: one way for every page, screen and sentence."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from blade import number_format as form

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("write", "cases"),
    [
        (form.percent, {
            0.0: "0%", 1.0: "100%", 1e-9: "<0.1%", 0.000499: "<0.1%", 0.0005: "0.1%", 0.999: "99.9%", 0.9994: "99.9%", 0.9995: ">99.9%",
            1 - 1e-9: ">99.9%", 0.1 + 0.2 + 0.7: "100%", 0.42: "42.0%", -0.1: "−10.0%", -1e-13: "0%", None: "–", NAN: "–", INF: "–",
        }),
        (form.points, {0.25: "+25.0 points", -0.031: "−3.1 points", 0.0001: "+<0.1 points", 0.0: "0 points", None: "–"}),
        (form.size, {0.25: "25.0 points", -0.031: "−3.1 points", None: "–"}),
        (form.number, {
            0.0: "0", 12.0: "12", 1319.0: "1,319", 1319.7: "1,320", 0.46: "0.460", -3.25: "−3.25", 2.00001: "2", 9.8691: "9.869", 2e-5: "2e-05",
            1e300: "1e+300", NAN: "–",
        }),
        (lambda value: form.change(value, False), {0.0841: "+0.084", -3.25: "−3.25", 0.0: "0", None: "–"}),
        (form.lost, {0.0: "0.0", 0.0001: "<0.1", 0.115: "11.5"}),
        (form.exact, {0.21875: "+0.218750", -0.5: "−0.500000", 1e-9: "0.000000"}),
        (form.relative, {0.12: "+12.0%", -0.311: "−31.1%", 0.0: "0%"}),
        (form.probability, {0.0: "0", 1.0: "1", 0.0004: "<0.001", 0.9999: ">0.999", 0.62: "0.62", 0.004: "0.004"}),
        (form.p_value, {0.25: "p = 0.25", 0.0001: "p <0.001", 0.0: "p <0.001", None: "p not testable"}),
    ],
)  # fmt: skip
def test_a_number_is_written_so(write: Callable[[float | None], str], cases: dict[float | None, str]) -> None:
    assert {value: write(value) for value in cases} == cases


def test_no_inexact_rate_prints_as_0_or_100() -> None:
    texts = {form.percent(at / 20_000) for at in range(1, 20_000)}
    assert not texts & {"0%", "0.0%", "100%", "100.0%"}


def test_listing_and_counts() -> None:
    assert [form.listing(names) for names in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert [form.count(n, "task") for n in (1, 1319)] == ["1 task", "1,319 tasks"]

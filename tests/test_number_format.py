"""Numbers as people read them: one way for every page, screen and sentence."""

from __future__ import annotations

import pytest

from blade import number_format as form
from tests.case_tables import tables

CASES = tables(__file__, "number_format.yaml")


@pytest.mark.parametrize("name", CASES)
def test_a_number_is_written_so(name: str) -> None:
    write = getattr(form, name)
    assert [write(value) for value in CASES[name]] == list(CASES[name].values())


def test_a_change_of_no_rate_has_a_sign() -> None:
    assert [form.change(value, False) for value in (0.0841, -3.25, 0.0, None)] == ["+0.084", "−3.25", "0", "–"]


def test_no_inexact_rate_prints_as_0_or_100() -> None:
    texts = {form.percent(at / 20_000) for at in range(1, 20_000)}
    assert not texts & {"0%", "0.0%", "100%", "100.0%"}


def test_listing_and_counts() -> None:
    assert [form.listing(names) for names in ([], ["a"], ["a", "b", "c"])] == ["", "a", "a, b and c"]
    assert [form.count(n, "task") for n in (1, 1319)] == ["1 task", "1,319 tasks"]

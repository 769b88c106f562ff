"""What in a statement could be otherwise: numbers in their units, ratios, code, quotations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.prose.slots import agrees, skeleton, slots


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("67.0%", 0.67, "%"),
        ("67 percent", 0.67, "%"),
        ("+7.6 points", 0.076, "points"),
        ("−0.7 points", -0.007, "points"),
        ("1,429", 1429.0, ""),
        ("3.5e-4", 0.00035, ""),
        ("12 pp", 0.12, "points"),
    ],
)
def test_numbers_have_their_unit(text: str, value: float, unit: str) -> None:
    (slot,) = slots(f"it is {text} here")
    assert slot.value == pytest.approx(value)
    assert (slot.unit, slot.text) == (unit, text)


@pytest.mark.parametrize(
    "text", ["gpt-4.1", "pass@4", "desk-0014", "O-20023", "v1.2.3", "M1", "a_3", "pass^2"]
)
def test_parts_of_names_are_no_numbers(text: str) -> None:
    assert slots(f"with {text} here") == ()


def test_ratios_code_and_quotations() -> None:
    found = slots("`a 1` had 11/28 (39.3%) and said “no 5”")
    assert [(slot.kind, slot.text) for slot in found] == [
        ("code", "a 1"), ("ratio", "11/28"), ("number", "39.3%"), ("quoted", "no 5"),
    ]  # fmt: skip
    assert (found[1].value, found[1].of) == (11, 28)


def test_the_skeleton_is_what_is_left() -> None:
    one, other = "In `a`, 3 of 4 pass.", "In `b c`, 7 of 12 pass."
    assert skeleton(one) == skeleton(other)
    assert skeleton(one) != skeleton("In `a`, 3 of 4 fail.")


@given(st.floats(0, 1), st.integers(0, 4))
def test_a_number_agrees_with_what_it_was_rounded_from(value: float, digits: int) -> None:
    (slot,) = slots(f"{value * 100:.{digits}f}%")
    assert agrees(slot, value)
    assert not agrees(slot, value + 1.5 * 10.0**-digits / 100 + 1e-9)


def test_bounds_agree_with_what_lies_beyond_them() -> None:
    assert agrees(slots("<0.1%")[0], 0.0004)
    assert not agrees(slots("<0.1%")[0], 0.004)
    assert agrees(slots(">99.9%")[0], 0.9995)

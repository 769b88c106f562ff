"""What two printed numbers have to do with each other: the same at their precision, or another one."""

from __future__ import annotations

import pytest

from blade.check.likeness import same_slot
from blade.prose.slots import slots


def same(one: str, other: str) -> bool:
    (first,), (second,) = slots(one), slots(other)
    return same_slot(first, second)


@pytest.mark.parametrize(("one", "other"), [("0.96", "0.962"), ("67%", "67.2%"), ("1.0", "1"), ("12", "12.4"), ("0%", "0.4%")])
def test_a_coarser_number_is_the_same(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(("one", "other"), [("1", "0.96"), ("0.96", "1"), ("0", "0.04"), ("67.2", "67.8"), ("99.6%", "100%")])
def test_a_bare_one_or_nought_is_no_rounded_share(one: str, other: str) -> None:
    assert not same(one, other)

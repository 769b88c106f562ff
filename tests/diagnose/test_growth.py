"""One task with many repeats: no stage of a diagnosis may be quadratic in them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.diagnose.builders import STREETS, desk_acts, desk_row
from tests.diagnose.diagnosed import Diagnose
from tests.diagnose.rows import Row, make_row

WORDS = "harbour lantern meadow orchard pebble quarry ribbon saddle timber velvet willow anchor bramble copper drizzle".split()


def prose(repeat: int) -> Row:
    """A free answer in words of its own, which never passes."""
    chance = random.Random(repeat)
    text = " ".join(chance.choice(WORDS) + str(chance.randrange(9)) for _ in range(30))
    return make_row(0, repeat, 0.0, [f"The tale of {text} ends here."], prompt="Tell the tale of the harbour.")


def errand(repeat: int) -> Row:
    """A rollout with calls, which it was to make, and a log with lines of its own."""
    passes = repeat % 3 > 0
    acts = desk_acts(0, repeat, repeat)
    due = [("redirect_parcel", {"number": "P-100", "street": STREETS[0]}, None)]
    log = "\n".join(f"{word}: {WORDS[(repeat * 7 + place) % 15] * (repeat % 40 + 1)} failed" for place, word in enumerate(WORDS[:6]))
    return desk_row(0, repeat, float(passes), acts if passes else [*acts[:1], *acts[-1:]], due=due, log=log)


def n_calls(work: Callable[[], Any]) -> int:
    """How many calls of Python functions some work takes: what a clock would say, without its moods."""
    n = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal n
        n += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return n


@pytest.mark.parametrize("row_of", [prose, errand])
def test_four_times_as_many_repeats_take_about_four_times_the_work(diagnose: Diagnose, row_of: Callable[[int], Row]) -> None:
    diagnose([row_of(repeat) for repeat in range(20)])  # what is done once, such as imports
    few, many = (n_calls(lambda: diagnose([row_of(repeat) for repeat in range(n)])) for n in (60, 240))  # noqa: B023
    assert many < 6 * few

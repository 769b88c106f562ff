"""Whether an answer is the gold, whatever the words around it."""

from __future__ import annotations

import pytest

from blade.diagnose.answers import is_same


@pytest.mark.parametrize(
    ("answer", "gold", "same"),
    [
        ("Evelyn has the greatest speed", "Evelyn", True),
        ("evelyn has the greatest speed.", r"\text{Evelyn}", True),
        (r"\text{New York} is the busiest of them", "New York", True),
        ("New York City", "New York", False),  # more of the name
        ("New York City Hall", "New York", False),
        ("Evelyn or one of the others", "Evelyn", False),
        ("Evelyn is not the fastest here", "Evelyn", False),
        ("Evelyn has it, Briana comes next", "Evelyn", False),
        ("Evelyns are the fastest of all", "Evelyn", False),
        ("Briana shows Evelyn the way", "Evelyn", False),  # a name that stands elsewhere may be only mentioned
        ("125 is the greatest of these", "125", False),
        ("A25 is the right one here", "A25", False),
        ("No one is faster here", "No", False),
    ],
)
def test_sentence_that_begins_with_a_name_gives_it(answer: str, gold: str, same: bool) -> None:
    assert is_same(answer, gold) is same

"""What answer a text gives, which answers are equal once decoration is gone, and which are the gold whatever the words around it."""

from __future__ import annotations

from blade.answers import answer_in, boxed, is_same, normalised


def test_answers_are_equal_once_decoration_is_gone() -> None:
    equal = [("$4.00", "4"), ("1,000", "1000"), ("**Paris**.", "paris"), ("The Hague", "hague"), ("12 cm", "12"), ("\\text{B}", "b")]
    assert [pair for pair in equal if normalised(pair[0]) != normalised(pair[1])] == []
    assert [pair for pair in [("4.5", "45"), ("Paris", "London"), ("3 or 4", "3")] if normalised(pair[0]) == normalised(pair[1])] == []


def test_the_answer_a_text_gives() -> None:
    assert answer_in(r"so \boxed{\frac{1}{2}} it is, no: \boxed{3}") == "3"
    assert boxed(r"\boxed{\frac{1}{2}}") == r"\frac{1}{2}"
    assert boxed(r"\boxed{open") is None
    texts = ["After thought, the answer is: 42", "short", "long " * 40, "  "]
    assert list(map(answer_in, texts)) == ["42", "short", None, None]


EVELYN = ["Evelyn has the greatest speed", "evelyn has the greatest speed."]
OTHERS = [  # more of the name, another person, a name that stands elsewhere and may be only mentioned
    "Evelyn or one of the others", "Evelyn is not the fastest here", "Evelyn has it, Briana comes next", "Evelyns are the fastest of all",
    "Briana shows Evelyn the way",
]  # fmt: skip


def test_sentence_that_begins_with_a_name_gives_it() -> None:
    assert [text for text in EVELYN if not is_same(text, r"\text{Evelyn}")] == []
    assert is_same(r"\text{New York} is the busiest of them", "New York")
    assert [text for text in OTHERS if is_same(text, "Evelyn")] == []
    odd = [("New York City", "New York"), ("New York City Hall", "New York"), ("125 is the greatest of these", "125"),
           ("A25 is the right one here", "A25"), ("No one is faster here", "No")]  # fmt: skip
    assert [pair for pair in odd if is_same(*pair)] == []

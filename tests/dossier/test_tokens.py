"""Tokens are estimated from above, line by line, and the estimate is never fooled by what holds no words."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.agent.dossier.budget import NEWLINE, UNIT, cost, reach, tokens

# What cl100k, o200k and a tokenizer of Anthropic count at the most; counted once, with those tokenizers.
COUNTED = {
    "The quick brown fox jumps over the lazy dog.": 10,
    '{"order_id":"#W6247578","item_ids":["8349118980"],"amount":54.25}': 26,
    "def f(nums):\n    return sorted(set(nums))\n": 14,
    "https://example.org/a/b?c=1&d=2": 17,
    "[(4, 1), (4, 1), (2, 3)]": 18,
    "Grüße aus Köln, schöne Straße": 12,
    "2024-05-20T19:00:00Z": 13,
    "3a2e45dcead29bb7dbd132e72": 16,
    "ZXhhbXBsZSBvZiBiYXNlNjQgdGV4dA==": 24,
    "東京都渋谷区": 9,
    "🙂🙃🚀": 8,
}


@pytest.mark.parametrize("text", COUNTED)
def test_no_estimate_is_below_what_tokenizers_count(text: str) -> None:
    assert tokens(text) >= COUNTED[text]


def test_plain_prose_is_not_estimated_far_too_high() -> None:
    prose = "The agent booked the cheaper flight and told the user that nothing else was left to do. " * 20
    assert 18 * 20 <= tokens(prose) <= 1.4 * 18 * 20


def test_what_holds_no_words_costs_more_a_character_than_words() -> None:
    draw = random.Random(1)
    words = "please read the policy before you change an order of this customer " * 8
    noise = " ".join("".join(draw.choices(string.ascii_lowercase, k=6)) for _ in range(80))
    assert tokens(noise) / len(noise) > 2 * tokens(words) / len(words)
    long = "".join(draw.choices(string.ascii_lowercase, k=500))
    assert tokens(long) >= 300


@given(st.text(max_size=200))
def test_characters_beyond_ascii_cost_a_token_a_byte(text: str) -> None:
    wide = "".join(mark for mark in text if not mark.isascii())
    assert cost(wide) >= UNIT * len(wide.encode("utf-8", "surrogatepass"))


@given(st.lists(st.text(st.characters(exclude_characters="\n"), max_size=40), max_size=8))
def test_the_cost_of_a_text_is_the_sum_over_its_lines(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert cost(text) == sum(map(cost, lines)) + NEWLINE * text.count("\n")


@given(st.text(max_size=400), st.integers(0, 6000))
def test_the_reach_of_a_room_costs_no_more_than_the_room(text: str, room: int) -> None:
    assert cost(text[: reach(text, room)]) <= room or reach(text, room) == 0

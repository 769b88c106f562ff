"""Tokens are estimated from above, line by line, and the estimate is never fooled by what holds no words."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.agent.dossier.budget import NEWLINE, UNIT, cost, reach, tokens

# What cl100k, o200k and a tokenizer of Anthropic count at the most; counted once, with those tokenizers.
COUNTED = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))["counted"]


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

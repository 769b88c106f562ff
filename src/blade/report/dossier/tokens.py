"""Estimate from above how many tokens a language model counts in a text, without its tokenizer."""

from __future__ import annotations

import re
from functools import lru_cache

UNIT = 100  # costs are whole hundredths of a token, so that those of lines add up exactly
NEWLINE = 60
# Pieces as byte-pair tokenizers cut them: a word with the space before it, digits, white space, marks.
_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|[ \t]+|[^A-Za-z0-9 \t]+")
_HARD = re.compile(r"[bcdfghjklmnpqrstvwxz]{4,}|[jqxz](?![aeiou])|(?<=[a-z])[A-Z]", re.ASCII)


def tokens(text: str) -> int:
    """At least as many tokens as common tokenizers count, on all but very odd text."""
    return -(-cost(text) // UNIT)


def cost(text: str) -> int:
    """The estimate in hundredths; of a text the sum over its lines and their ends."""
    return sum(_kept(piece) if len(piece) < 30 else _piece(piece) for piece in _PIECE.findall(text))


def _piece(piece: str) -> int:
    first = piece[0]
    if first in " \t":
        return 0 if piece == " " else 60 + 10 * len(piece)
    if first.isdigit():
        return 100 * -(-len(piece) // 2)
    if first.isalpha():
        return _word(piece)
    return sum(map(_mark, piece))


_kept = lru_cache(maxsize=20_000)(_piece)


def _word(word: str) -> int:
    hard = len(_HARD.findall(word))
    if word.isupper() and len(word) > 2:
        return 100 * -(-len(word) // 2)
    if len(word) > 24:
        return 60 * len(word)
    return 105 + 100 * hard + 22 * max(0, len(word) - 6)


def _mark(mark: str) -> int:
    """A mark, or a character that is not ASCII: never more tokens than bytes."""
    if mark.isascii():
        return NEWLINE if mark == "\n" else 85
    return 100 * len(mark.encode("utf-8", "replace"))

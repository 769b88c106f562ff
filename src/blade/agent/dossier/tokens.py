"""Estimate from above how many tokens a language model counts in a text, without its tokenizer."""

from __future__ import annotations

import re
from itertools import pairwise

UNIT = 100  # costs are whole hundredths of a token, so that those of lines add up exactly
NEWLINE = 60
# Pieces much as byte-pair tokenizers cut them: a space joins the word or the mark behind it, never a digit.
_PIECE = re.compile(r" ?[A-Za-z]+| ?[0-9]+|[ \t]+(?![A-Za-z])|[ \t]| ?[^A-Za-z0-9 \t\n]+|\n")
# The letters that often follow a letter in words: a vocabulary rarely holds other pairs in one piece.
_FOLLOW = (
    "abcdfgiklmnprstuvwxy babdeilorsuy cacehiklorstuy dabdegilorstuy eabcdefghilmnopqrstvwxy faefilortuy "
    "gaeghilnorsu haeilorstuy iabcdefgklmnoprstvxz jaeou kaeins lacdefilmoprstuvy mabeilmopsuy "
    "nacdefgiklnoprstuvy oabcdefghiklmnoprstuvw paehiloprstuy qu rabcdefgiklmnoprstuvwy sacdefhiklmnopstuwy "
    "tacdefhilmoprstuwy uabcdefgilmnoprst vaeio waehinors xaceipt yaeilmopst ze".split()
)
_PAIRS = frozenset((row[0], letter) for row in _FOLLOW for letter in row[1:])
_TURN = re.compile(r"(?<=[a-z])[A-Z]|[A-Z]{2}(?=[a-z])")
_MOST_KNOWN = 50_000
_known: dict[str, int] = {}
_LONG = 24  # letters: longer words are no words


def tokens(text: str) -> int:
    """At least as many tokens as common tokenizers count, on all but very odd text."""
    return -(-cost(text) // UNIT)


def cost(text: str) -> int:
    """The estimate in hundredths; of a text the sum over its lines and their ends."""
    known, total = _known, 0
    for piece in _PIECE.findall(text):
        found = known.get(piece)
        total += _learned(piece) if found is None else found
    return total


def reach(text: str, room: int, newline: int = 0) -> int:
    """How many characters from the start cost at most `room` hundredths; line ends cost `newline` more."""
    known, spent = _known, 0
    for hit in _PIECE.finditer(text):
        piece = hit[0]
        found = known.get(piece)
        found = _learned(piece) if found is None else found
        spent += found + (newline if piece == "\n" else 0)
        if spent > room:
            left, size = room - spent + found, len(piece)
            # what no space parts is cut where its share ends
            inside = size * left // found - 1 if size > _LONG else 0
            return hit.start() + max(0, inside)
    return len(text)


def _learned(piece: str) -> int:
    """The cost of a piece; short ones are remembered, since texts say the same words again and again."""
    found = _piece(piece)
    if len(piece) < 30:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[piece] = found
    return found


def _piece(piece: str) -> int:
    if piece == "\n":
        return NEWLINE
    word = piece.lstrip(" \t")
    if not word:
        return 40 + 20 * len(piece)
    if word[0].isascii() and word[0].isalpha():
        return _word(word, word is not piece)
    if word.isascii() and word.isdigit():
        n = len(word)
        return (100 if word is not piece else 0) + max(100 * -(-n // 3), 45 * n) + 25 * (n > 1)
    return sum(map(_mark, word)) + 28


def _word(word: str, spaced: bool) -> int:
    n = len(word)
    if n > _LONG:
        return 65 * n + 30 * len(_TURN.findall(word))
    if n > 2 and word.isupper():
        return 100 + 76 * (n - 2)
    low = word.lower()
    rare = sum(pair not in _PAIRS for pair in pairwise(low))
    known = 102 + 5 * max(0, n - 5) if spaced else 106 + 13 * max(0, n - 4)
    return known + 92 * rare + 90 * len(_TURN.findall(word))


def _mark(mark: str) -> int:
    """A mark, or a character that is not ASCII: never more tokens than bytes."""
    return 72 if mark.isascii() else 100 * len(mark.encode("utf-8", "surrogatepass"))

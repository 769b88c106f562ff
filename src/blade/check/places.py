"""Find the numbers of a text that say which step, repeat or row is meant, and are no amounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

STEP, REPEAT, OTHER = "step", "repeat", "other"
_WORDS = {
    "step": STEP, "repeat": REPEAT, "attempt": REPEAT, "trial": REPEAT, "rollout": OTHER, "row": OTHER,
    "turn": OTHER, "line": OTHER, "index": OTHER, "task": OTHER, "message": OTHER, "episode": OTHER,
    "position": OTHER, "order": OTHER,
}  # fmt: skip
# What a number counts, or is a share of, stands behind it; a number that is not whole names nothing.
_COUNTED = (
    r"times|percent|points?|pp|tasks|rollouts|rows|attempts|trials|tokens|seconds|minutes|hours|messages|failures"
    r"|others?|more|fewer|less"
)
_DOES = r"calls|runs|turns|steps|passes|repeats|lines|errors"  # `repeat 1 calls` it, and `7 calls`
_DIGITS = r"#?\d{1,6}(?![\w@^]|[.,:]\d|\s?%|\s+(?:[a-z]+(?:ing|ed|er|nt)\s+)?"
_NUMBER = rf"{_DIGITS}(?:{_COUNTED})\b)"
_NEXT = rf"{_DIGITS}(?:{_COUNTED}|{_DOES})\b)"
_RANGE = r"(?:\s?[-–—]\s?|\s+(?:up\s+)?to\s+|\s+through\s+)"
_ONE = rf"{_NUMBER}(?:(?:{_RANGE}|\s+(?:and|or|&)\s+){_NEXT})*"
_SOME = rf"{_NUMBER}(?:(?:{_RANGE}|,\s*(?:and\s+|or\s+)?|\s+(?:and|or|&)\s+){_NEXT})+"
_PLACE = re.compile(
    r"(?<![\w`-])(?<!per )(?<!each )(?<!every )(?<!another )"
    rf"(?:(?P<one>{'|'.join(_WORDS)})\s+(?P<number>{_ONE})|(?P<some>{'|'.join(_WORDS)})s\s+(?P<numbers>{_SOME}))",
    re.IGNORECASE,
)


class Numbered(msgspec.Struct, frozen=True):
    """Numbers right behind the word for what they number: `steps 4 and 7`."""

    kind: str  # step, repeat, or other
    numbers: tuple[int, ...]  # the first and the last of a range
    start: int
    end: int
    first: int  # where the numbers begin


@lru_cache(maxsize=20_000)
def numbered(text: str) -> tuple[Numbered, ...]:
    """What a text names by its number, in order; `4 steps` and `steps: 4` are amounts."""
    return tuple(_numbered(text))


def _numbered(text: str) -> Iterator[Numbered]:
    for hit in _PLACE.finditer(text):
        word, told = (hit["one"] or hit["some"]).lower(), "number" if hit["one"] else "numbers"
        numbers = tuple(int(digits) for digits in re.findall(r"\d+", hit[told]))
        yield Numbered(_WORDS[word], numbers, *hit.span(), hit.start(told))


def is_place(text: str, at: int) -> bool:
    """Whether the number that begins at a place of a text says which one is meant."""
    return any(one.first <= at < one.end for one in numbered(text))

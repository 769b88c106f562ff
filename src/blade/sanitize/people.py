"""Find again, as whole words, the users and people that were named elsewhere in the same files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path

from blade.sanitize.places import GENERIC

Found = tuple[int, int, str, str]  # start, end, kind, what stands there
_TOKEN = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_FEW = 24  # heads that are looked for one by one; more cost less as a set of words
_LEAST = 4  # letters of a name that stands alone
_LONG = 6  # signs of one that has hardly any letters, but digits
_TELLING = 3  # letters from which on a part of a name may tell of someone


@cache
def _words() -> frozenset[str]:
    """Words that anyone writes: English ones, and names of tools."""
    told = Path(__file__).with_name("words.txt").read_text(encoding="ascii").split()
    return frozenset(told) | GENERIC


def is_plain(word: str) -> bool:
    """Is it a word that anyone writes, so that it tells of nobody where it stands alone."""
    lowered, words = word.lower(), _words()
    stems = (lowered, lowered.removesuffix("s"), lowered.removesuffix("es"), lowered.removesuffix("ed"))
    return not words.isdisjoint(stems) or lowered.removesuffix("ing") in words


def is_telling(kind: str, value: str) -> bool:
    """Is it a name that can be known again by itself, wherever it stands."""
    parts = _LETTERS.findall(value)
    telling = [part for part in parts if len(part) >= _TELLING]
    if kind == "PERSON":
        return len(parts) > 1 and not all(map(is_plain, telling))
    if value.lower() in GENERIC or not parts:
        return False
    if not telling:
        return len(value) >= _LONG
    return sum(map(len, parts)) >= _LEAST and not all(map(is_plain, telling))


class Names:
    """Users and people that were found; a look costs little however many there are."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()
        self._forms: dict[str, list[tuple[re.Pattern[str], str]]] = {}  # by their first word

    def add(self, kind: str, value: str) -> None:
        known = (kind, value.lower())
        if known in self._known:
            return
        self._known.add(known)
        if not is_telling(kind, value):
            return
        words = _TOKEN.findall(value)
        if kind == "PERSON":
            self._put(kind, words[0], r"[\s_.,'’\-]{1,3}".join(map(re.escape, words)))
            # as lists of people have it: the family name first
            self._put(kind, words[-1], r"[\s_,]{1,3}".join(map(re.escape, (words[-1], *words[:-1]))))
        else:
            self._put(kind, words[0], re.escape(value[value.find(words[0]) :]))

    def _put(self, kind: str, head: str, form: str) -> None:
        pattern = re.compile(rf"{form}(?![^\W_])", re.IGNORECASE)
        self._forms.setdefault(head.lower(), []).append((pattern, kind))

    def found(self, text: str, kept: Set[str]) -> list[Found]:
        """Where known names stand; those in `kept`, in small letters, are names of something else too."""
        if not self._forms:
            return []
        lowered = text.lower()
        if len(lowered) != len(text):  # few letters are longer in small: every place must stay
            lowered = "".join(sign.lower()[:1] for sign in text)
        hits = [
            (start, hit.end(), kind, hit[0])
            for head in self._heads(lowered)
            for start in _sites(lowered, head)
            for pattern, kind in self._forms[head]
            if (hit := pattern.match(text, start)) is not None and hit[0].lower() not in kept
        ]
        found: list[Found] = []
        for one in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
            if not found or one[0] >= found[-1][1]:
                found.append(one)
        return found

    def _heads(self, lowered: str) -> list[str]:
        """The first words of names that are in a text."""
        if len(self._forms) <= _FEW:
            return [head for head in self._forms if head in lowered]
        return sorted(self._forms.keys() & set(_TOKEN.findall(lowered)))


def _sites(text: str, head: str) -> Iterator[int]:
    """Where a word begins a name: no letter or digit stands before it."""
    at = text.find(head)
    while at >= 0:
        if not text[at - 1 : at].isalnum():
            yield at
        at = text.find(head, at + len(head))

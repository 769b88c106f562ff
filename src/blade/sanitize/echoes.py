"""Find again, whole or cut short, what was found elsewhere in the same files."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable

_ECHO = re.compile(r"[A-Za-z0-9][\w.+/=@\-]{5,200}")
_MARKED = re.compile(r"[\d.\-_@]")
_CUT = re.compile(r"(?P<word>[^\s…]{4,300})…")
_LAST = re.compile(r"(?P<word>\S{6,300})\Z")
_MOST = 5_000  # values that are remembered
_BESIDE = ("SECRET", "USER", "HOST")  # kinds that what stands beside a value gives away
_DROPPED = ("DROPPED", "CODE")
_CUT_LETTERS = 4  # of a value before an ellipsis that are enough to know it by
_LAST_LETTERS = 6  # the same where the text just ends


class Echoes:
    """Values and what stands for them."""

    def __init__(self) -> None:
        self.whole: dict[str, str] = {}  # may stand alone elsewhere
        self._told: dict[str, str] = {}
        self._sorted: list[str] = []
        self.seen: Callable[[str, str], None] | None = None  # told of what is found again

    def add(self, kind: str, value: str, told: str) -> None:
        if kind in _DROPPED or value in self._told or len(self._told) >= _MOST or len(value) < 5:
            return
        self._told[value] = told
        insort(self._sorted, value)
        # A bare number may be a reward or an id elsewhere: only a value with a letter in it is known again.
        is_word = any(sign.isalpha() for sign in value)
        if kind in _BESIDE and is_word and _ECHO.fullmatch(value) and _MARKED.search(value):
            self.whole[value] = told

    def taken_out(self, text: str) -> str:
        """`text` without the values that are known, whole or cut."""
        for value in self.whole:
            if value in text:
                text = _alone(value).sub(lambda _, value=value: self._said(value), text)  # type: ignore[misc]
        if not self._told:
            return text
        if "…" in text:
            text = _CUT.sub(lambda hit: self._completed(hit["word"], _CUT_LETTERS) + "…", text)
        return _LAST.sub(lambda hit: self._completed(hit["word"], _LAST_LETTERS), text)

    def _completed(self, word: str, least: int) -> str:
        """A word that ends with the beginning of a known value: what stands for the value instead."""
        for start in range(len(word) - least + 1):
            piece = word[start:]
            at = bisect_left(self._sorted, piece)
            if at < len(self._sorted) and self._sorted[at].startswith(piece):
                if start and word[start - 1].isalnum():
                    continue
                return word[:start] + self._said(self._sorted[at])
        return word

    def _said(self, value: str) -> str:
        told = self._told[value]
        if self.seen is not None:
            self.seen(told[1:].partition(":")[0], value)
        return told


def _alone(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])")

"""Turn what a person wrote of raw rollouts into what holds of clean ones: ids and patterns of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CODE = re.compile(r"(?<!`)`(?P<code>[^`\n]{4,})`(?!`)")
_ID = re.compile(r"(?<![\w-])[a-z]{2,12}-[0-9a-f]{8}(?![\w-])")
_KIND = re.compile(r"\[[A-Z]{2,12}(?::|…|$)")  # a placeholder, whole or cut


class Carried:
    """What the same line says of the raw rollouts, with its values cleaned, and of the clean ones.

    Clean rows have other patterns: an address that was `<email>` is a placeholder now, and the id of a
    pattern is made of its text. What a person took over from the page must follow; all else is theirs.
    """

    def __init__(self, before: str, after: str) -> None:
        self.lines: dict[str, str] = {}
        self.words: dict[str, str] = {}
        old, new = before.split("\n"), after.split("\n")
        if len(old) != len(new):
            return
        pairs = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1] and _is_same(*pair)]
        self.lines = _single(pairs)
        self.words = _single([word for pair in pairs for word in _words(*pair)])
        self._any = re.compile("|".join(map(re.escape, sorted(self.words, key=len, reverse=True))) or r"(?!)")

    def __bool__(self) -> bool:
        return bool(self.lines)

    def text(self, text: str) -> str:
        """A text in which lines of the page, and ids and patterns in other lines, are those of clean rows."""
        return "\n".join(self.lines.get(line) or self.line(line) for line in text.split("\n"))

    def line(self, line: str) -> str:
        return self._any.sub(lambda hit: self.words[hit[0]], line)


def _is_same(old: str, new: str) -> bool:
    """Do two lines differ only in what cleaning changes: codes, ids, cells with a placeholder."""
    if old.startswith("|") and new.startswith("|"):
        cells = list(zip(old.split(" | "), new.split(" | "), strict=False))
        is_whole = old.count(" | ") == new.count(" | ")
        return is_whole and all(a == b or _is_cleaned(a, b) for a, b in cells)
    return _frame(old) == _frame(new)


def _is_cleaned(old: str, new: str) -> bool:
    return bool(_ID.search(old) and _ID.search(new)) or _KIND.search(new) is not None


def _frame(line: str) -> str:
    return _ID.sub("#", _CODE.sub("`", line))


def _words(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Ids and codes of a line with what they became."""
    for pattern in (_ID, _CODE):
        was, now = pattern.findall(old), pattern.findall(new)
        if len(was) == len(now):
            # another example in the same sentence is no other name for the first
            yield from (pair for pair in zip(was, now, strict=True) if _is_cleaned(*pair))


def _single(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Pairs as a table; what would become two things becomes none."""
    told = dict(pairs)
    unclear = {old for old, new in pairs if told[old] != new}
    return {old: new for old, new in told.items() if old != new and old not in unclear}

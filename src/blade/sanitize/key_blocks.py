"""Read private keys line by line, whole or torn, also where their lines are spread over values and rows."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from blade.sanitize.rule_table import compiled

# Where a key begins or ends; `data` are the first letters of its encoded bytes, which need no line before them.
_MARK = compiled("key_mark")
_HINTS = ("PRIVATE KEY", "PuTTY-User", "Private-", "b3BlbnNzaC1rZXk", "MI", "MHcCAQ", "MC4CAQ")
# What ends a line in any notation: as it is, escaped, between the members of a list or the tags of a page.
_BREAK = re.compile(r"\\+[nr]|[\r\n]+|\\*[\"'][\s,+.&\\]*\\*[\"']|</?[a-z][^<>]{0,80}>")
_PAD = " \t\"'`,;>|*#\\[]()-…."
_DATA = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_HEADER = re.compile(r"[A-Z][\w\-]{2,30}: ?[^\n]{0,200}")
_LINE = re.compile(r"(?:^|[\s:|\"'>=])(?P<data>[A-Za-z0-9+/]{24,}={0,2})$")
_ALONE = re.compile(r"\s*[A-Za-z0-9+/]{16,100}={0,2}\s*(?:[\r\n\\]|$)")
_WORD = re.compile(r"[A-Z]?[a-z]+")
_WHOLE = 12_000  # letters between the marks of a key that are taken whatever stands among them
_PATIENCE = 40  # lines and values in a row that are none of a key, until it is over
_TRAIL = 2_000  # lines of a key whose beginning was cut off


class KeyBlocks:
    """Where private keys lie in the texts of a file, which come one after another."""

    def __init__(self) -> None:
        self.patience = 0  # above 0: a key has begun and not ended
        self.site: object = None  # where its last line stood
        self.is_whole = False  # is all since then of the key
        self.before: deque[str] = deque(maxlen=_TRAIL)  # lines that may be of a key, before any mark
        self.late: list[str] = []  # those that were

    def spans(self, text: str, site: object) -> list[tuple[int, int]]:
        """The parts of a text that are of a private key."""
        marks = list(_MARK.finditer(text)) if any(hint in text for hint in _HINTS) else []
        if not marks and not self.patience:
            if _ALONE.match(text) and len(text) < _WHOLE:
                self.before.extend(line for line in _BREAK.split(text) if _DATA.fullmatch(line.strip(_PAD)))
            return []
        hits: list[tuple[int, int]] = []
        self.is_whole = self.is_whole and site is self.site
        self.site, place, is_here = site, 0, False
        for mark in (*marks, None):
            stop = mark.start() if mark else len(text)
            is_end = mark is not None and mark.lastgroup == "end"
            if is_end and is_here and self.patience and stop - place <= _WHOLE:
                _take(hits, text, place, stop)
            elif self.patience:
                self._inside(hits, text, place, stop, is_here)
            elif is_end:
                self._ahead(hits, text, place, stop)
            if mark is None:
                break
            _take(hits, text, *mark.span())
            self.patience = 0 if is_end else _PATIENCE
            self.is_whole = is_here = not is_end
            place = mark.end()
        return hits

    def _inside(self, hits: list[tuple[int, int]], text: str, start: int, stop: int, is_here: bool) -> None:
        for begin, end in _lines(text, start, stop):
            words = text[begin:end].split()
            if not words:
                continue
            whole = self.is_whole and (
                (len(words) == 1 and _is_piece(words[0], is_here))
                or (is_here and _HEADER.fullmatch(text, begin, end))
                or sum(_is_piece(word) for word in words) * 2 > len(words) == sum(map(_is_base64, words))
            )
            line = None if whole else _LINE.search(text[begin:end])
            self.is_whole = bool(whole or (line and _is_drawn(line["data"])))
            if self.is_whole:
                _take(hits, text, begin + (line.start("data") if line else 0), end)
            self.patience = _PATIENCE if self.is_whole else self.patience - 1
            if not self.patience:
                return

    def _ahead(self, hits: list[tuple[int, int]], text: str, start: int, stop: int) -> None:
        """The lines before the end of a key that never began."""
        first, is_all = stop, True
        for n, (begin, end) in enumerate(reversed(list(_lines(text, start, stop)))):
            line = text[begin:end]
            if line and not (_DATA.fullmatch(line) or (n < 2 and _is_piece(line))):
                is_all = False
                break
            first = begin if line else first
        if first < stop:
            _take(hits, text, first, stop)
        if is_all and not start:
            self.late += self.before
        self.before.clear()


def _lines(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The lines between two places, without what stands around them in lists, quotations and tables."""
    place = start
    for cut in (*(hit.span() for hit in _BREAK.finditer(text, start, stop)), (stop, stop)):
        line = text[place : cut[0]]
        begin = place + len(line) - len(line.lstrip(_PAD))
        yield begin, max(begin, place + len(line.rstrip(_PAD)))
        place = cut[1]


def _is_base64(word: str) -> bool:
    return word.strip("=").replace("+", "").replace("/", "").isalnum() and word.isascii()


def _is_piece(word: str, is_any: bool = False) -> bool:
    """Can it be a line of a key, however short; a word can only right behind the beginning of one."""
    return _is_base64(word) and (is_any or _WORD.fullmatch(word) is None)


def _is_drawn(data: str) -> bool:
    return data.lower() != data != data.upper() and any(sign.isdigit() for sign in data)


def _take(hits: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add a part, joined to the one before it if nothing but signs stands between."""
    if hits and not text[hits[-1][1] : start].strip(_PAD + "+.&nrt\r\n"):
        hits[-1] = (hits[-1][0], end)
    elif end > start:
        hits.append((start, end))

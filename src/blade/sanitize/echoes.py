"""Find again what was found: values whole or cut, names as whole words, quotations with placeholders."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TypeVar

from blade.sanitize.escapes import View, has_escapes
from blade.sanitize.lexicon import is_telling
from blade.sanitize.policy import PLACEHOLDER, Key

Found = tuple[int, int, str, str]  # start, end, kind, what stands there
_PART = re.compile(r"[^\W_]+")
_FEW = 24  # heads that are looked for one by one; more cost less as a set of words


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
        words = _PART.findall(value)
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
        return sorted(self._forms.keys() & set(_PART.findall(lowered)))


def _sites(text: str, head: str) -> Iterator[int]:
    """Where a word begins a name: no letter or digit stands before it."""
    at = text.find(head)
    while at >= 0:
        if not text[at - 1 : at].isalnum():
            yield at
        at = text.find(head, at + len(head))


_HEAD = 6  # letters that a value is first known by
_ECHO = re.compile(r"[A-Za-z0-9][\w.+/=@\-]{5,200}")
_STARTS = re.compile(r"(?<![A-Za-z0-9])(?=([A-Za-z0-9][\w.+/=@\-]{5}))")
_MARKED = re.compile(r"[\d.\-_@]")
_CUT = re.compile(r"(?P<word>[^\s…]{4,300})…")
_LAST = re.compile(r"(?P<word>\S{6,300})\Z")
_BESIDE = ("SECRET", "HOST")  # kinds that what stands beside a value gives away
_NAMES = ("USER", "PERSON")  # the same, of those who have a name
_DROPPED = ("DROPPED", "CODE")
_CUT_LETTERS = 4  # of a value before an ellipsis that are enough to know it by
_LAST_LETTERS = 6  # the same where the text just ends


class Echoes:
    """Values that were found, and where they stand again; a look costs the same however many there are."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._sorted: list[str] | None = []  # None: to be sorted when it is asked for
        self._heads: dict[str, set[int]] = {}  # of those that may stand alone elsewhere, and their lengths
        self._names = Names()

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, kind: str, value: str) -> None:
        if kind in _NAMES:
            self._names.add(kind, value)
        if kind in _DROPPED or value in self._kinds or len(value) < 5:
            return
        self._kinds[value] = kind
        self._sorted = None
        # A bare number may be a reward or an id elsewhere: only a value with a letter in it is known again.
        is_word = any(sign.isalpha() for sign in value)
        if kind in _BESIDE and is_word and _ECHO.fullmatch(value) and _MARKED.search(value):
            self._heads.setdefault(value[:_HEAD], set()).add(len(value))

    def whole(self, text: str) -> list[Found]:
        """Where known values stand alone in a text."""
        if not self._heads or len(text) < _HEAD or self._heads.keys().isdisjoint(_STARTS.findall(text)):
            return []
        found: list[Found] = []
        for hit in _STARTS.finditer(text):
            at = hit.start()
            if hit[1] not in self._heads or (found and at < found[-1][1]):
                continue
            for length in sorted(self._heads[hit[1]], reverse=True):
                value = text[at : at + length]
                if value in self._kinds and not _goes_on(text, at + length):
                    found.append((at, at + length, self._kinds[value], value))
                    break
        return found

    def cut(self, text: str, at_end: bool = False) -> list[Found]:
        """Where a known value is cut short: before an ellipsis, or `at_end` where the text just ends."""
        hits = [(hit, _CUT_LETTERS) for hit in _CUT.finditer(text)] if "…" in text else []
        if at_end and (last := _LAST.search(text)):
            hits.append((last, _LAST_LETTERS))
        return [found for hit, least in hits for found in self._begun(hit["word"], hit.start(), least)]

    def _begun(self, word: str, at: int, least: int) -> list[Found]:
        """The known value that a word ends with the beginning of."""
        if self._sorted is None:
            self._sorted = sorted(self._kinds)
        for start in range(len(word) - least + 1):
            if start and word[start - 1].isalnum():
                continue
            piece = word[start:]
            place = bisect_left(self._sorted, piece)
            if place < len(self._sorted) and self._sorted[place].startswith(piece):
                value = self._sorted[place]
                return [(at + start, at + len(word), self._kinds[value], value)]
        return []

    def found(self, text: str, at_end: bool = False, kept: Set[str] = frozenset()) -> list[Found]:
        """Known values, whole or cut, without overlaps; no name that is in `kept`, in small letters."""
        found = self.whole(text)
        for more in (self._names.found(text, kept), self.cut(text, at_end)):
            found = sorted([*found, *apart(more, found)]) if more else found
        return found


Spanned = TypeVar("Spanned", bound=tuple[int, int, *tuple[str, ...]])


def apart(new: Iterable[Spanned], taken: Sequence[Spanned]) -> list[Spanned]:
    """Those of `new` that do not overlap what is `taken`; both are in order."""
    kept: list[Spanned] = []
    at = 0
    for one in new:
        while at < len(taken) and taken[at][1] <= one[0]:
            at += 1
        if at == len(taken) or taken[at][0] >= one[1]:
            kept.append(one)
    return kept


def _goes_on(text: str, at: int) -> bool:
    """Does a word go on here, so that what stands before is a part of it."""
    return text[at : at + 1].isascii() and text[at : at + 1].isalnum()


# ---- Quotations that were redacted ---------------------------------------------------------------

_MOST = 16_384  # letters that one placeholder may stand for
_TRIES = 200  # places at which a piece between placeholders is tried
_STEPS = 50_000  # pieces that are held against one placeholder, in all: a bound, not a hope


def is_redacted(text: str) -> bool:
    """Does a text hold a placeholder."""
    return "[" in text and PLACEHOLDER.search(text) is not None


def matches(redacted: str, raw: str, key: Key | None = None) -> bool:
    """Does `redacted` stand in `raw`, if each placeholder may stand for a piece of it.

    With the key a placeholder only stands for what it was made of.
    """
    if redacted in raw:
        return True
    marks = list(PLACEHOLDER.finditer(redacted))
    if not marks:
        return False
    edges = [0, *(edge for mark in marks for edge in mark.span()), len(redacted)]
    pieces = [redacted[edges[at] : edges[at + 1]] for at in range(0, len(edges), 2)]
    asked = [(mark[1], mark[2], int(mark[3]) if mark[3] else None) for mark in marks]
    return _from(pieces, asked, raw, key)


Asked = tuple[str, str, int | None]


class _Failed(set[tuple[int, int]]):
    """Places from which the rest was found not to follow, and how often one was tried."""

    steps = 0


def _from(pieces: list[str], asked: list[Asked], raw: str, key: Key | None) -> bool:
    """Is there a place for the first piece from which all others follow."""
    failed = _Failed()
    first, at = pieces[0], -1
    if not first:
        return _unanchored(pieces, asked, raw, key, failed)
    for _ in range(_TRIES * 10):
        at = raw.find(first, at + 1)
        if at < 0:
            return False
        if _rest(0, at + len(first), pieces, asked, raw, key, failed):
            return True
    return False


def _unanchored(pieces: list[str], asked: list[Asked], raw: str, key: Key | None, failed: _Failed) -> bool:
    """The text begins with a placeholder: it stands for something before its first piece."""
    solid = next((piece for piece in pieces if piece), "")
    if not solid and key is None:
        return bool(raw)
    starts = range(min(len(raw), _MOST))
    return any(_rest(0, start, pieces, asked, raw, key, failed) for start in starts)


def _rest(
    at: int,
    start: int,
    pieces: list[str],
    asked: list[Asked],
    raw: str,
    key: Key | None,
    failed: _Failed,
) -> bool:
    """Do placeholder `at` and all that comes after it fit from `start` on."""
    if at == len(asked):
        return True
    if (at, start) in failed:
        return False
    piece = pieces[at + 1]
    for end in _ends(piece, start, at + 1 == len(asked), asked[at][2], raw, key):
        failed.steps += 1
        if failed.steps > _STEPS:
            return False
        if _stands_for(asked[at], raw[start:end], key) and _rest(
            at + 1, end + len(piece), pieces, asked, raw, key, failed
        ):
            return True
    failed.add((at, start))
    return False


def _ends(piece: str, start: int, is_last: bool, length: int | None, raw: str, key: Key | None) -> list[int]:
    """Where the value of a placeholder may end."""
    if length is not None and raw.startswith(piece, start + length):
        return [start + length]
    if not piece:
        if key is None:
            return (
                [min(start + 1, len(raw))]
                if is_last and start < len(raw)
                else list(range(start + 1, start + 65))
            )
        return list(range(start + 1, min(len(raw), start + 4096) + 1))
    ends: list[int] = []
    end = raw.find(piece, start + 1, start + _MOST + len(piece))
    while end >= 0 and len(ends) < _TRIES:
        ends.append(end)
        end = raw.find(piece, end + 1, start + _MOST + len(piece))
    return ends


def _stands_for(asked: Asked, value: str, key: Key | None) -> bool:
    kind, code, _ = asked
    if key is None or key.code(kind, value) == code:
        return True
    return has_escapes(value) and key.code(kind, View(value).text) == code

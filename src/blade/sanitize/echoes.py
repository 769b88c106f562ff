"""Find again what was found elsewhere in the same files: values whole or cut, names as whole words."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TypeVar

from blade.sanitize.lexicon import is_telling

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

    def found(self, text: str, things: Set[str]) -> list[Found]:
        """Where known names stand; those in `things`, in small letters, are names of something else too."""
        if not self._forms:
            return []
        small = lowered(text)
        hits = [
            (start, hit.end(), kind, hit[0])
            for head in self._heads(small)
            for start in sites(small, head)
            if not small[start - 1 : start].isalnum()
            for pattern, kind in self._forms[head]
            if (hit := pattern.match(text, start)) is not None and hit[0].lower() not in things
        ]
        distinct: list[Found] = []
        for item in sorted(hits, key=lambda hit: (hit[0], -hit[1])):
            if not distinct or item[0] >= distinct[-1][1]:
                distinct.append(item)
        return distinct

    def _heads(self, small: str) -> list[str]:
        if len(self._forms) <= _FEW:
            return [head for head in self._forms if head in small]
        return sorted(self._forms.keys() & set(_PART.findall(small)))


def lowered(text: str) -> str:
    """`text` in lower case, letter by letter: every place stays where it is."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(sign.lower()[:1] for sign in text)


def sites(text: str, mark: str) -> Iterator[int]:
    """Where a mark stands in a text."""
    place = text.find(mark)
    while place >= 0:
        yield place
        place = text.find(mark, place + len(mark))


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
        hits: list[Found] = []
        for hit in _STARTS.finditer(text):
            place = hit.start()
            if hit[1] not in self._heads or (hits and place < hits[-1][1]):
                continue
            for length in sorted(self._heads[hit[1]], reverse=True):
                value = text[place : place + length]
                after = text[place + length : place + length + 1]
                if value in self._kinds and not (after.isascii() and after.isalnum()):  # a whole word
                    hits.append((place, place + length, self._kinds[value], value))
                    break
        return hits

    def cut(self, text: str, at_end: bool = False) -> list[Found]:
        """Where a known value is cut short: before an ellipsis, or `at_end` where the text just ends."""
        hits = [(hit, _CUT_LETTERS) for hit in _CUT.finditer(text)] if "…" in text else []
        if at_end and (last := _LAST.search(text)):
            hits.append((last, _LAST_LETTERS))
        return [item for hit, least in hits for item in self._begun(hit["word"], hit.start(), least)]

    def _begun(self, word: str, place: int, least: int) -> list[Found]:
        if self._sorted is None:
            self._sorted = sorted(self._kinds)
        for start in range(len(word) - least + 1):
            if start and word[start - 1].isalnum():
                continue
            piece = word[start:]
            index = bisect_left(self._sorted, piece)
            nearest = self._sorted[index : index + 1]
            if nearest and nearest[0].startswith(piece):
                return [(place + start, place + len(word), self._kinds[nearest[0]], nearest[0])]
        return []

    def found(self, text: str, at_end: bool = False, things: Set[str] = frozenset()) -> list[Found]:
        """Known values, whole or cut, without overlaps; no name that is in `things`, in small letters."""
        hits = self.whole(text)
        for more in (self._names.found(text, things), self.cut(text, at_end)):
            hits = sorted([*hits, *apart(more, hits)]) if more else hits
        return hits


Spanned = TypeVar("Spanned", bound=tuple[int, int, *tuple[str, ...]])


def apart(new: Iterable[Spanned], taken: Sequence[Spanned]) -> list[Spanned]:
    """Those of `new` that do not overlap what is `taken`; both are in order."""
    things: list[Spanned] = []
    place = 0
    for item in new:
        while place < len(taken) and taken[place][1] <= item[0]:
            place += 1
        if place == len(taken) or taken[place][0] >= item[1]:
            things.append(item)
    return things

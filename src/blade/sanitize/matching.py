"""Turn a redacted quotation and a raw text into whether the one stands in the other."""

from __future__ import annotations

from blade.sanitize.keys import PLACEHOLDER, Key
from blade.sanitize.views import View, has_escapes

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

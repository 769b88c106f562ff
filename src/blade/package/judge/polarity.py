"""Find sentences that name and number what a recomputed one does, and say the opposite of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from blade.check.aligned import Reference
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from blade.package.judge.units import SAME, Unit
from blade.prose.slots import Slot, slots

MIN_SLOTS = 3  # numbers, names and quotations from which on a sentence is known again
ALIKE = 0.85  # of the words of two sentences that are the same ones, beside what turns them
_SIGN = re.compile(
    r"\b(?:(?P<no>not|never|none|neither|nor|cannot|without)"
    r"|(?P<pass>pass(?:es|ed|ing)?|solv(?:es?|ed|ing)|succe(?:eds?|eded|eding|ss|sses|ssful|ssfully))"
    r"|(?P<fail>fail(?:s|ed|ing|ures?)?|miss(?:es|ed)|unsolved|unsuccessful(?:ly)?|flunk(?:s|ed)?)"
    r"|(?P<always>always|every time|invariably|consistently)"
    r"|(?P<up>more|higher|above|largest|most|gains?|wins?)"
    r"|(?P<down>fewer|lower|below|smallest|least|loses?|lost))\b|(?P<nt>n['’]t\b)",
    re.IGNORECASE,
)
MIN_PART = 3  # words that a part of a sentence has which can be left out
_WORD = re.compile(r"[^\W\d_]+")
Key = tuple[tuple[str, str], ...]


class _Said(msgspec.Struct, frozen=True):
    text: str
    words: tuple[str, ...]  # all but those that turn it
    signs: tuple[str, ...]  # those that turn it, in order


def with_polarity(read: Sequence[Unit], world: World) -> tuple[Unit, ...]:
    """Units with those turned round found out.

    A sentence that shares all its numbers and names with a recomputed one, but neither its negations nor who
    passes and who fails, is not borne out by them; if it shares its words too, it is contradicted.
    """
    known = _known(world.reference)
    return tuple(_turned(unit, known) for unit in read)


@lru_cache(maxsize=4)
def _known(reference: Reference) -> dict[Key, list[_Said]]:
    """The recomputed sentences by what they name and number."""
    known: dict[Key, list[_Said]] = {}
    for one in reference.statements:
        if key := _key(one.text):
            known.setdefault(key, []).append(_said(one.text))
    return known


def _turned(unit: Unit, known: dict[Key, list[_Said]]) -> Unit:
    again = any(one.why == SAME for one in unit.assertions)
    if unit.kind != "sentence" or unit.verdict == CONTRADICTED or again:
        return unit
    meant = known.get(_key(unit.text))
    if not meant:
        return unit
    told = _said(unit.text)
    if any(_agrees(told, one) for one in meant):
        return unit
    like = max(meant, key=lambda one: _likeness(told, one))
    if any(_leaves_out(told, one) for one in meant):
        return unit
    if _likeness(told, like) < ALIKE or not _changed(told, like):
        return replace(unit, verdict=UNVERIFIABLE) if unit.verdict == SUPPORTED else unit
    found, meant_by = (" ".join(one.signs) or "no such word" for one in (told, like))
    why = f"the rows give: {like.text}"
    part = Assertion(CONTRADICTED, "direction", unit.line, unit.last_line, unit.text, found, meant_by, why)
    return replace(unit, verdict=CONTRADICTED, assertions=(*unit.assertions, part))


def turned(text: str, reference: str) -> bool:
    """Whether a sentence in other words turns round what its reference says of passing, failing and more."""
    told, meant = _said(text), _said(reference)
    return not _agrees(told, meant) and not _leaves_out(told, meant)


def signs(text: str) -> tuple[str, ...]:
    """The kinds of words in a sentence that turn it: no, pass, fail, always, up, down."""
    return _said(text).signs


@lru_cache(maxsize=10_000)
def _said(text: str) -> _Said:
    bare = _SIGN.sub(" ", text)
    signs = tuple("no" if hit.lastgroup == "nt" else str(hit.lastgroup) for hit in _SIGN.finditer(text))
    return _Said(text, tuple(word.lower() for word in _WORD.findall(bare)), signs)


def _agrees(told: _Said, meant: _Said) -> bool:
    """Whether two sentences turn the same way; in the same order, where their words are in the same order."""
    if told.words == meant.words:
        return told.signs == meant.signs
    ours, theirs = Counter(told.signs), Counter(meant.signs)
    return ours["no"] % 2 == theirs["no"] % 2 and ours - Counter(no=9) == theirs - Counter(no=9)


def _leaves_out(told: _Said, meant: _Said) -> bool:
    """Whether a sentence is another without some of its parts; a negation alone is no part."""
    ours, theirs = _tokens(told.text), _tokens(meant.text)
    gaps = [
        theirs[low:high]
        for kind, *_, low, high in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
        if kind != "equal"
    ]
    is_part = len(ours) < len(theirs) and all(word in theirs for word in ours)
    return is_part and not _changed(told, meant) and all(len(gap) >= MIN_PART for gap in gaps)


def _changed(told: _Said, meant: _Said) -> bool:
    """Whether a word that turns a sentence stands where another has a different one, or a few others."""
    ours, theirs = _tokens(told.text), _tokens(meant.text)
    for kind, a, b, c, d in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        turning, turned = (
            Counter(word for word in part if word.isupper()) for part in (ours[a:b], theirs[c:d])
        )
        if kind != "equal" and turning != turned and (min(b - a, d - c) or max(b - a, d - c) < MIN_PART):
            return True
    return False


def _tokens(text: str) -> list[str]:
    """The words of a sentence in lower case, with those that turn it as their kind in capitals."""
    found, at = [], 0
    for hit in _SIGN.finditer(text):
        found += [*_WORD.findall(text[at : hit.start()].lower()), str(hit.lastgroup).upper()]
        at = hit.end()
    return ["NO" if word == "NT" else word for word in [*found, *_WORD.findall(text[at:].lower())]]


def _likeness(told: _Said, meant: _Said) -> float:
    ours, theirs = Counter(told.words), Counter(meant.words)
    whole = (ours | theirs).total()
    return (ours & theirs).total() / whole if whole else 0.0


def _key(text: str) -> Key:
    found = sorted((slot.kind, _worth(slot)) for slot in slots(text))
    return tuple(found) if len(found) >= MIN_SLOTS else ()


def _worth(slot: Slot) -> str:
    return slot.text if slot.value is None else f"{slot.value:g}/{slot.of}"

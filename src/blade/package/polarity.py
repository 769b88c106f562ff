"""Find sentences that name and number what a recomputed one does, and say the opposite of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from blade.check.world import World
from blade.model import SUPPORTED, UNVERIFIABLE
from blade.package.units import SAME, Unit
from blade.prose.slots import Slot, slots

MIN_SLOTS = 3  # numbers, names and quotations from which on a sentence is known again
_NEGATOR = re.compile(r"\b(?:not|never|no|none|neither|nor|cannot|without)\b|n['’]t\b", re.IGNORECASE)
_TURNS = re.compile(
    r"\b(?:(?P<pass>pass(?:es|ed|ing)?|succe\w+|solved)|(?P<fail>fail(?:s|ed|ing|ures?)?)|(?P<always>always)"
    r"|(?P<up>more|higher|above|largest|most|gains?|wins?)|(?P<down>fewer|lower|below|smallest|least|loses?|lost))\b",
    re.IGNORECASE,
)


def with_polarity(read: Sequence[Unit], world: World) -> tuple[Unit, ...]:
    """Units without the support of numbers that stand in a sentence turned round.

    A sentence that shares all its numbers and names with a recomputed one, but not its negations nor who
    passes and who fails, is not borne out by them.
    """
    known: dict[tuple[tuple[str, str], ...], list[tuple[int, Counter[str]]]] = {}
    for one in world.reference.statements:
        if key := _key(one.text):
            known.setdefault(key, []).append(_signs(one.text))
    return tuple(_turned(unit, known) for unit in read)


def _turned(unit: Unit, known: dict[tuple[tuple[str, str], ...], list[tuple[int, Counter[str]]]]) -> Unit:
    if (
        unit.kind != "sentence"
        or unit.verdict != SUPPORTED
        or any(one.why == SAME for one in unit.assertions)
    ):
        return unit
    meant = known.get(_key(unit.text))
    if not meant or _signs(unit.text) in meant:
        return unit
    return replace(unit, verdict=UNVERIFIABLE)


def _key(text: str) -> tuple[tuple[str, str], ...]:
    found = sorted((slot.kind, _worth(slot)) for slot in slots(text))
    return tuple(found) if len(found) >= MIN_SLOTS else ()


def _worth(slot: Slot) -> str:
    return slot.text if slot.value is None else f"{slot.value:g}/{slot.of}"


def _signs(text: str) -> tuple[int, Counter[str]]:
    turns = Counter(str(hit.lastgroup) for hit in _TURNS.finditer(text))
    return len(_NEGATOR.findall(text)) % 2, turns

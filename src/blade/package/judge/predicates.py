"""Turn an anchor into a predicate that a claim meets or does not: type, subject, value, ids to cite."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from blade.check.held import pieces
from blade.model import CONTRADICTED, SUPPORTED
from blade.package.judge.plainly import ABSENT_WORDS
from blade.package.judge.plainly import place as place_in
from blade.package.judge.units import BLAMES, MIN_QUOTE, Unit
from blade.prose.slots import RATIO, Slot, agrees

TYPES = ("concentration", "contrast", "ordering", "share", "existence", "cause", "metric", "quote")
_COUNTED = ("concentration", "contrast", "ordering", "share", "metric")
ABSENT = "absent"
STEP = "step"  # the subject of an existence that names the step that decided a rollout


class Predicate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a claim must say to meet an anchor."""

    type: str
    subject: str = ""  # a behaviour, tool, mode or measure
    object: str = ""  # the text of a quotation, or what the subject is held against
    comparator: str = "="  # =, <, >, absent
    value: float | str | None = None
    other: float | None = None  # the second number of a contrast
    tolerance: float = 0.005
    run: str | None = None
    scope: tuple[tuple[str, str], ...] = ()
    must_cite: tuple[str, ...] = ()  # TASK or TASK/REPEAT; one of them
    places: tuple[str, ...] = ()  # TASK:STEP, where else the same is shown


def predicate_of(given: Any) -> Predicate | None:
    """A predicate as a file holds it; None where it is none."""
    if not isinstance(given, Mapping):
        return None
    try:
        told = msgspec.convert(given, Predicate, strict=False)
    except (msgspec.ValidationError, TypeError, ValueError):
        return None
    if isinstance(told.value, float) and not math.isfinite(told.value):
        return None
    return told if told.type in TYPES and told.must_cite else None


def tasks_of(predicate: Predicate) -> frozenset[str]:
    """The tasks of a predicate's evidence, without their repeats."""
    return _tasks(predicate.must_cite)


@lru_cache(maxsize=1_000)
def _tasks(cites: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(_task, cites))


def _task(cite: str) -> str:
    head, slash, tail = cite.rpartition("/")
    return head if slash and tail.isdigit() else cite


def met(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    """What in a supported unit meets the predicate; each such part can meet one anchor."""
    if unit.verdict == SUPPORTED and not unit.denied and not unit.foreign:
        yield from said(unit, predicate)


def said(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    """What in a unit says what the predicate says, right or wrong."""
    if predicate.type in _COUNTED:
        # Numbers over many rollouts are of this run, or they would not agree: any of them may be the example.
        for part in _SAID[predicate.type](unit, predicate):
            yield (predicate.type, "", part)
        return
    for task in sorted(unit.tasks & tasks_of(predicate)):
        for part in _SAID[predicate.type](unit, predicate):
            yield (predicate.type, task, part)


def gainsaid(unit: Unit, predicate: Predicate) -> bool:
    """Whether a unit that the rows contradict speaks of the very thing, so that a report says both."""
    cites = unit.tasks | unit.near if predicate.type in _COUNTED else unit.tasks
    if unit.verdict != CONTRADICTED or unit.foreign or not cites & tasks_of(predicate):
        return False
    if any(True for _ in said(unit, predicate)):
        return True
    if predicate.type == "cause":
        return bool(unit.causes)
    if predicate.type == "quote":
        return unit.kind == "quote" and bool(unit.fabricated) and not unit.own - tasks_of(predicate)
    if predicate.subject == STEP:
        return bool(unit.steps)
    return names(unit, predicate.subject)


def narrowed(predicate: Predicate, unit: Unit) -> Predicate:
    """A predicate that asks for one of several tasks, of those that a unit names."""
    cites = tuple(cite for cite in predicate.must_cite if _task(cite) in unit.tasks)
    return msgspec.structs.replace(predicate, must_cite=cites) if cites else predicate


def _cause(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    if unit.causes == {str(predicate.value)}:
        yield str(predicate.value)


def _quote(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    for quote in unit.quotes:
        if overlap(quote, predicate.object):
            yield normal(predicate.object)
            return
    if unit.quotes:
        yield from sorted(_standing(unit) & set(predicate.places))[:1]


def place(task: str, step: int) -> str:
    return f"{task}:{step}"


_STANDS = re.compile(r"stands in (?P<task>\S+)/\d+, step (?P<step>\d+)")


def _standing(unit: Unit) -> set[str]:
    """The steps of tasks in which the quotations of a unit stand."""
    held = [one for one in unit.assertions if one.kind == "quote" and one.verdict == SUPPORTED]
    found = [hit for one in held if (hit := _STANDS.search(one.why or ""))]
    told = {place(hit["task"], int(hit["step"])) for hit in found}
    if held and not found:
        told |= {place(task, step) for task in unit.own for step in unit.steps}
    return told


def _existence(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    """A step that is blamed, a tool that is left out, or a behaviour that is named."""
    if unit.kind == "quote":
        return
    if predicate.subject == STEP:
        if BLAMES.search(unit.text):
            yield from _blamed(unit, predicate)
    elif names(unit, predicate.subject) and (
        predicate.comparator != ABSENT or ABSENT_WORDS.search(unit.text)
    ):
        yield predicate.subject


def _blamed(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    if predicate.places:
        told = {place(task, step) for task in unit.tasks for step in unit.steps}
        yield from sorted(told & set(predicate.places))
    elif isinstance(predicate.value, int | float) and int(predicate.value) in unit.steps:
        yield int(predicate.value)


def _share(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    if names(unit, predicate.subject) and _has(unit, predicate.value, predicate.tolerance):
        yield (predicate.subject, predicate.value)


def _contrast(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    values = [value for value in (predicate.value, predicate.other) if value is not None]
    both = all(_has(unit, value, predicate.tolerance) for value in values)
    if both and (names(unit, predicate.subject) or _is_held(unit, predicate)):
        yield (predicate.subject, predicate.value, predicate.other)


def _is_held(unit: Unit, predicate: Predicate) -> bool:
    """Whether the rates of a unit were found to be those of the predicate, by its counts and words."""
    return any(
        one.kind == "contrast" and one.verdict == SUPPORTED and one.found == predicate.subject
        for one in unit.assertions
    )


def _ordering(unit: Unit, predicate: Predicate) -> Iterator[Hashable]:
    first, second = (place_in(unit.text, name) for name in (predicate.subject, predicate.object))
    rises = re.search(
        r"\b(?:more|most|higher|larger|leads?|ahead|exceeds?|above|over|before)\b|>", unit.text.lower()
    )
    if first is not None and second is not None and first < second and rises:
        yield (predicate.subject, predicate.object)


_SAID = {
    "cause": _cause,
    "quote": _quote,
    "existence": _existence,
    "share": _share,
    "concentration": _share,
    "metric": _share,
    "contrast": _contrast,
    "ordering": _ordering,
}


_PARTS = re.compile(r"(\d[\d,]*)\s+(?:out\s+)?of\s+(?:the\s+|its\s+)?(\d[\d,]*)")


def _has(unit: Unit, value: float | str | None, tolerance: float) -> bool:
    """Whether a unit states a number, as it is, as a ratio, or as so many of so many."""
    if not isinstance(value, int | float):
        return False
    parts = [(float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in _PARTS.findall(unit.text)]
    if any(below and abs(top / below - value) <= tolerance for top, below in parts):
        return True
    return any(is_number(slot, value, tolerance) for slot in unit.numbers)


def is_number(slot: Slot, value: float, tolerance: float) -> bool:
    """Whether a printed number or ratio can stand for a value."""
    if slot.value is None:
        return False
    if slot.kind == RATIO:
        return bool(slot.of) and abs(slot.value / float(slot.of or 1) - value) <= tolerance
    if slot.unit or slot.digits > 1:
        return agrees(slot, value) or abs(slot.value - value) <= tolerance
    return slot.value == value  # a bare 1 is no rounded 0.6


def names(unit: Unit, subject: str) -> bool:
    """Whether a unit names a behaviour, tool or mode."""
    return place_in(unit.text, subject) is not None


def normal(text: str) -> str:
    return " ".join(text.split())


def overlap(quote: str, meant: str) -> bool:
    """Whether two quotations share a piece that is long enough to tell where it is from.

    Emphasis, quotation marks and line breaks may differ, and what is cut out is no part of either.
    """
    return any(_share_piece(one, other) for one in pieces(quote) for other in pieces(meant))


_BARE_QUOTE = round(0.8 * MIN_QUOTE)  # without its white space


def _share_piece(first: str, second: str) -> bool:
    short, long = sorted((first, second), key=len)
    if len(short) < _BARE_QUOTE:
        return False
    size = max(_BARE_QUOTE, len(short) // 2)
    starts = range(0, len(short) - size + 1, 5)
    return short in long or any(short[at : at + size] in long for at in starts)

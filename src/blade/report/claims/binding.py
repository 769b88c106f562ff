"""Bind a printed number to the fact that it states: equal at its precision, and named around it."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right

import msgspec

from blade.facts.known import Known, number_of
from blade.model import Fact
from blade.prose.slots import Slot, rounded
from blade.report.claims.context import Context
from blade.report.claims.mentions import IMPLIED, Entity

UNITS = ("tasks", "task", "rows", "row", "rollouts", "rollout", "repeats", "repeat", "points", "point")
NEAR, FAR = 4, 0  # what an entity named in the statement, or around it, speaks for a fact
# What goes by its own name, so that the name says nothing of which of its numbers is meant.
ABOUT = ("behaviour", "signature", "mechanism", "contrast", "term", "shift", "mode", "flag", "slice", "stage")
ENOUGH = 4  # below this nothing but the value speaks for a fact
_OF = re.compile(r"\s+of\s+(?:the\s+)?([\d,]+)\b")
_P = re.compile(r"\bp\b|p\(|\bprobability|\bconfidence|\bcertain|\bweight|\bsure")
_ONLY_P = re.compile(r"p\(|p\b|adjusted p\b")
_MEDIAN = re.compile(r"\bmedian\b")
_SIZES = {"kib": 1024.0, "mib": 1024.0**2, "gib": 1024.0**3}


class Bound(msgspec.Struct, frozen=True):
    fact: Fact
    sign: int = 1  # -1: printed without its sign
    score: float = 0.0


class Binder:
    """Facts by value and by entity, ready to be held against slots."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._stems: dict[str, set[float]] = {}
        self._made: dict[tuple[frozenset[Entity], tuple[str, ...]], _Listed] = {}
        compared = known.report.comparisons
        # All are held against one baseline; which candidate is meant must be told where there are several.
        implied = {("baseline", one.baseline) for one in compared}
        implied |= {("candidate", one.candidate) for one in compared} if len(compared) == 1 else set()
        self._implied = frozenset(implied) | IMPLIED
        plain: dict[str | None, list[Fact]] = {}
        self._scoped: dict[Entity, list[Fact]] = {}
        for fact in known.all:
            told = _told(fact, self._implied)
            (self._scoped.setdefault(told[0], []) if told else plain.setdefault(fact.run, [])).append(fact)
        self._plain = {run: _Values(found) for run, found in plain.items()}
        self._names: dict[tuple[str, str], tuple[tuple[str, float], ...]] = {}

    def bound(self, slot: Slot, context: Context, before: Bound | None) -> Bound | None:
        """The fact that a slot states best, if anything beside its value speaks for it."""
        meant = context.near | context.far | self._implied
        scoped = self._about(meant, context.runs)
        best: tuple[tuple[float, int, str, str], Bound] | None = None
        whole = "\n".join((context.lead, context.column, context.row, context.lower, context.around))
        for low, high, sign in _ranges(slot, context):
            held = [self._plain[run] for run in (None, *context.runs) if run in self._plain]
            found = [fact for values in held for fact in values.between(low, high)]
            for fact in (*found, *scoped.between(low, high)):
                score = self._score(fact, slot, context, before, whole)
                if score is None or score < ENOUGH:
                    continue
                key = (-score, len(fact.query), fact.query, fact.subject)
                if best is None or key < best[0]:
                    best = key, Bound(fact, sign, score)
        return best[1] if best else None

    def _about(self, meant: frozenset[Entity], runs: tuple[str, ...]) -> _Listed:
        key = (meant, runs)
        if key not in self._made:
            found = [
                fact
                for entity in meant
                for fact in self._scoped.get(entity, [])
                if (fact.run is None or fact.run in runs) and all(told in meant for told in fact.scope)
            ]
            for kind, value in meant:
                if kind == "task":
                    found += [
                        fact
                        for run in runs
                        for fact in self._known.task(run, value)
                        if all(told in meant for told in fact.scope)
                    ]
            if len(self._made) > 4000:
                self._made.clear()
            self._made[key] = _Listed(found)
        return self._made[key]

    def _score(
        self, fact: Fact, slot: Slot, context: Context, before: Bound | None, whole: str
    ) -> float | None:
        fits = _kind(fact, slot, context)
        if fact.subject.startswith(("pass_at_k", "pass_hat_k")) and ("k", "1") in fact.scope:
            return None  # pass@1 by another name
        if fits is None or (fact.run is not None and fact.run not in context.runs):
            return None
        score: float = fits + (2 if context.runs and fact.run == context.runs[0] else 0)
        for entity in fact.scope:
            score += NEAR if entity in context.near else FAR if entity in context.far else 0
        key = (fact.query, fact.subject)
        names = self._names.get(key) or self._names.setdefault(key, _quantities(fact))
        named = _named(names, fact, slot, context, whole)
        beside = self._beside(fact, slot, context, before)
        counted = _counted(fact, slot, context)
        if not named and beside <= 0 and counted <= 0:
            return None
        return score + named + beside + counted

    def _beside(self, fact: Fact, slot: Slot, context: Context, before: Bound | None) -> float:
        """What the number before it says: an interval follows its value, and n follows both."""
        lead = context.text[: slot.start]
        open_at = lead.rfind("[")
        in_brackets = open_at > lead.rfind("]")
        is_end = fact.subject.endswith(_ENDS)
        if in_brackets != is_end and slot.bound != "≥":
            return -5
        score = 0.0
        if in_brackets:
            is_second = "," in re.sub(r"\d,\d{3}", "", lead[open_at:])
            score = 3 if fact.subject.endswith(_UPPER if is_second else _LOWER) else -8
        if before is None or before.fact.query == fact.query:
            return score
        is_sibling = _stem(fact) == _stem(before.fact) or _stem(fact) in before.fact.query
        if is_sibling or (is_end and fact.run == before.fact.run and self._rests_on(fact, before.fact)):
            score += 6
        return score

    def _rests_on(self, end: Fact, before: Fact) -> bool:
        """Whether the interval that this end belongs to is that of an equal value."""
        stem = _stem(end)
        if stem not in self._stems:
            self._stems[stem] = set()
            values = [fact for fact in self._known.of(_whole(end.subject)) if _stem(fact) == stem]
            self._stems[stem] = {number_of(fact) for fact in values}
        return number_of(before) in self._stems[stem]


_LOWER, _UPPER = ("_low", "_low90"), ("_high", "_high90")
_ENDS = _LOWER + _UPPER


def _whole(subject: str) -> str:
    return subject.rpartition("_")[0]


class _Values:
    def __init__(self, facts: list[Fact]) -> None:
        unique = {(fact.query, fact.subject): fact for fact in facts if isinstance(fact.value, float)}
        self._facts = sorted(unique.values(), key=lambda fact: (number_of(fact), fact.query))
        self._values = [number_of(fact) for fact in self._facts]

    def between(self, low: float, high: float) -> list[Fact]:
        return self._facts[bisect_left(self._values, low) : bisect_right(self._values, high)]


class _Listed:
    """Few facts, looked through one by one."""

    def __init__(self, facts: list[Fact]) -> None:
        unique = {(fact.query, fact.subject): fact for fact in facts if isinstance(fact.value, float)}
        self._facts = [(number_of(fact), fact) for fact in unique.values()]

    def between(self, low: float, high: float) -> list[Fact]:
        return [fact for value, fact in self._facts if low <= value <= high]


def _told(fact: Fact, implied: frozenset[Entity]) -> list[Entity]:
    """The entities of a fact that a text must name, those that name most first."""
    order = ("mechanism", "behaviour", "signature", "contrast", "recommendation", "term", "shift", "slice")
    told = [entity for entity in fact.scope if entity not in implied]
    return sorted(told, key=lambda entity: order.index(entity[0]) if entity[0] in order else len(order))


def _ranges(slot: Slot, context: Context) -> list[tuple[float, float, int]]:
    """What the value may lie between: as printed, without its sign, or with a unit that came later."""
    value, half = slot.value or 0.0, rounded(slot) * (1 + 1e-9) + 1e-12
    if slot.bound in ("<", "≤"):
        return [(-value, value, 1)]
    if slot.bound == ">":
        return [(value, 1 + 1e-9, 1)]
    if slot.bound == "≥":  # rounded down
        return [(value - 1e-9, value + 10.0**-slot.digits, 1)]
    size = _SIZES.get(context.lower[slot.end : slot.end + 4].strip(), 1.0)
    found = [((value - half) * size, (value + half) * size, 1)]
    if slot.unit == "points" and "+" not in slot.text:
        found.append((-value - half, -value + half, -1))
    if not slot.unit and _later_unit(slot, context):
        found.append((value / 100 - half / 100, value / 100 + half / 100, 1))
        found.append((-value / 100 - half / 100, -value / 100 + half / 100, -1))
    return found


def _later_unit(slot: Slot, context: Context) -> bool:
    after = context.text[slot.end : slot.end + 200]
    return "point" in after or "point" in context.text[: slot.start] or "point" in context.column


def _kind(fact: Fact, slot: Slot, context: Context) -> float | None:
    """Whether a fact of this kind can be printed so."""
    is_whole = slot.digits == 0 and not slot.unit
    if _MEDIAN.search(context.column) and "median" not in fact.subject:
        return None
    if fact.kind == "count" and context.lower[slot.end : slot.end + 4].strip() in _SIZES:
        return 1
    if fact.kind in ("rate", "points", "count") and _ONLY_P.match(context.column):
        return None
    if slot.unit == "%":
        return 2 if fact.kind == "rate" else 0 if fact.kind in ("number", "points") else None
    if slot.unit == "points":
        return 2 if fact.kind == "points" else 0 if fact.kind in ("number", "rate") else None
    if fact.kind == "p":
        text = f"{context.text[max(0, slot.start - 60) : slot.start].lower()} {context.column}"
        return 2 if _P.search(text) else None
    if fact.kind in ("rate", "points"):
        value = number_of(fact)
        if abs(value - (slot.value or 0.0)) <= rounded(slot) * 1.001 + 1e-12:
            return 0 if not is_whole or (value == 0 and _later_unit(slot, context)) else None
        return 1
    if fact.kind == "count":
        return 1 if is_whole or fact.value != math.floor(number_of(fact)) else None
    return 0


def _named(
    names: tuple[tuple[str, float], ...], fact: Fact, slot: Slot, context: Context, whole: str
) -> float:
    """How well the words around a slot name the fact; 0: not at all."""
    best = 0.0
    lower = context.lower
    close = lower[max(0, slot.start - 45) : slot.start] + "\0" + lower[slot.end : slot.end + 35]
    after = lower[slot.end :].lstrip()
    for name, size in names:
        if name not in whole:
            continue
        if context.lead == name:
            best = max(best, 7 + size)
        if context.column and _holds(context.column, name):
            best = max(best, 4 + size)
        if context.row and _holds(context.row, name):
            best = max(best, 3 + size)
        if after.startswith(name):
            best = max(best, 6 + size)
        elif _holds(close, name):
            best = max(best, 4 + size)
        elif _holds(lower, name):
            best = max(best, 2 + size)
        elif _holds(context.around, name):
            best = max(best, 0.5 * size)
    if context.column == "n" and best:
        best += 3 if fact.subject.endswith(("_n", "_n_tasks")) else 0
    return best


def _quantities(fact: Fact) -> tuple[tuple[str, float], ...]:
    """The names of a fact without those of what it is about: these are counted as named already."""
    about = {value.lower() for kind, value in fact.scope if kind in ABOUT}
    about |= {value.replace("_", " ") for value in about}
    return tuple((name, 1 + 0.1 * min(len(name), 30)) for name in fact.names[:12] if name not in about)


def _holds(text: str, name: str) -> bool:
    """Whether a text holds a name as words of its own."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (text[at - 1 : at].isalnum() and name[0].isalnum()) and not (
            text[end : end + 1].isalnum() and name[-1].isalnum()
        ):
            return True
        at = text.find(name, at + 1)
    return False


def _stem(fact: Fact) -> str:
    return fact.query.rpartition(".")[0] or fact.query


def _counted(fact: Fact, slot: Slot, context: Context) -> float:
    """What the word after it and the number it is out of say."""
    after = context.lower[slot.end : slot.end + 40]
    score = 0.0
    of = slot.of
    if of is None and (hit := _OF.match(after)):
        of = float(hit[1].replace(",", ""))
    if of is not None:
        score += 6 if fact.n == of else -4 if fact.n is not None else 0
    word = re.match(r"\s+(?:\w+\s+)?(\w+)", after)
    if word and word[1] in UNITS and fact.kind == "count":
        said = word[1] if word[1].endswith("s") else f"{word[1]}s"
        if fact.unit:
            score += 2 if said == fact.unit else -3
    return score

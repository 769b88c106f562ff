"""Hold two pass rates in a sentence against those that the rows give with a condition and without it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.package.judge.plainly import telling
from blade.package.judge.polarity import signs
from blade.package.judge.predicates import Predicate, is_number, names
from blade.package.judge.units import SAME, Unit
from blade.prose.slots import slots

_CLAUSE = re.compile(
    r"[,;:–—]|\.\s|\b(?:against|versus|vs|while|whereas|but|compared (?:to|with)|as opposed to|and)\b",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"\b(?:never|not|none(?: of \w+)?|cannot|doesn['’]t|don['’]t)\s+(?:ever\s+)?"
    r"(?:pass|fail|succeed|solve)\w*",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"\b(?:never|not|without|no|none|skip\w*|omit\w*|lack\w*|miss(?:es|ing)?|lea(?:ve|ves|ving) out"
    r"|left out)\b|n['’]t\b|\bonly fails? at\b|\bfails? to\b",
    re.IGNORECASE,
)
_REST = re.compile(r"\b(?:others?|rest|remaining|remainder|elsewhere|otherwise)\b", re.IGNORECASE)
_DO = re.compile(r"\b(?:those|ones|rollouts|repeats|which|that) (?:that |which )?do(?:es)?\b", re.IGNORECASE)


def with_contrasts(read: Sequence[Unit], wanted: Iterable[Predicate]) -> tuple[Unit, ...]:
    """Units with what the rows say of the pass rates that they set against each other."""
    told = list(wanted)
    return tuple(_held(unit, told) if unit.kind == "sentence" else unit for unit in read)


def _held(unit: Unit, wanted: Sequence[Predicate]) -> Unit:
    if unit.verdict == CONTRADICTED or unit.foreign or any(one.why == SAME for one in unit.assertions):
        return unit
    for one in wanted:
        is_right = oriented(unit, one)
        if is_right is None:
            continue
        verdict = SUPPORTED if is_right and not unit.denied else CONTRADICTED
        part = Assertion(
            verdict, "contrast", unit.line, unit.last_line, unit.text, one.subject,
            None if is_right else one.object or "of the failing ones",
            "the rows give the same" if is_right else "it is said of the other side",
        )  # fmt: skip
        return replace(unit, verdict=verdict, assertions=(*unit.assertions, part))
    return unit


def oriented(unit: Unit, predicate: Predicate) -> bool | None:
    """Whether a sentence gives each rate to its own side; None if it does not say, or not these rates."""
    if predicate.type == "share":
        return _of_failing(unit, predicate)
    if not isinstance(predicate.value, float) or predicate.other is None:
        return None
    if "fail" in signs(unit.text) and "pass" not in signs(unit.text):
        return None
    by_count = _by_count(unit, predicate)
    if by_count is not None or not names(unit, predicate.subject) or _miscounts(unit.text, predicate):
        return by_count
    sides = _sides(unit.text, predicate)
    lacks = bool(_ABSENT.search(predicate.object.split(":")[0]))
    first, second = sides
    if first is None or second is None or first == second:
        return None
    return first == lacks


_SPLIT = re.compile(
    r"[,;:–—]|\.\s|\b(?:against|versus|vs|while|whereas|but|compared (?:to|with)|as opposed to)\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:others?|rest|remaining|remainder|elsewhere|otherwise"
    r"|(?:those|ones|rollouts|repeats|answers)\s+(?:that|which|who)\s+(?:do|did))\b",
    re.IGNORECASE,
)
_ALIKE = 0.3  # of the telling words of a condition that a sentence about it keeps


def _by_count(unit: Unit, predicate: Predicate) -> bool | None:
    """Whether the rates stand with so many rollouts and with the others: a sentence in a person's own words.

    The number of rollouts that meet the condition, both rates and some of its words tell which one is meant.
    """
    condition = predicate.object.split(":")[0]
    counted = [int(slot.value) for slot in slots(condition) if slot.value is not None and not slot.unit]
    if not counted or not _is_alike(unit.text, condition):
        return None
    many = [slot.start for slot in slots(unit.text) if counted[-1] in (slot.value, slot.of) and not slot.unit]
    sides = []
    for value in (predicate.value, predicate.other):
        rate = float(value or 0)
        at = [slot for slot in slots(unit.text) if slot.unit and is_number(slot, rate, predicate.tolerance)]
        if len(at) != 1 or not many:
            return None
        cuts = [0, *(hit.end() for hit in _SPLIT.finditer(unit.text)), len(unit.text)]
        start = max(cut for cut in cuts if cut <= at[0].start)
        end = min(cut for cut in cuts if cut >= at[0].end)
        is_rest = bool(_OTHERS.search(unit.text[start:end]))
        sides.append("rest" if is_rest else "with" if many[0] < end else "")
    return {("with", "rest"): True, ("rest", "with"): False}.get((sides[0], sides[1]))


def _miscounts(text: str, predicate: Predicate) -> bool:
    """Whether a sentence gives a number of rollouts that its condition does not have."""
    known = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", predicate.object)}
    told = re.findall(r"(?<![\d./,])(\d+) (?:completed |scored )?rollouts\b", text)
    return any(int(number) not in known for number in told)


def _is_alike(text: str, condition: str) -> bool:
    """Whether a sentence keeps enough of the words of a condition."""
    wanted = telling(condition)
    return len(wanted & telling(text)) >= max(2, round(_ALIKE * len(wanted)))


def _of_failing(unit: Unit, predicate: Predicate) -> bool | None:
    """Whether the share of a behaviour is said of failing rollouts alone."""
    told = {"pass", "fail"} & set(signs(unit.text))
    share = float(predicate.value or 0)
    stated = any(is_number(slot, share, predicate.tolerance) for slot in unit.numbers)
    return told == {"fail"} if stated and len(told) == 1 and names(unit, predicate.subject) else None


def _sides(text: str, predicate: Predicate) -> tuple[bool | None, bool | None]:
    """For each of the two rates, whether it is said of rollouts that lack the subject."""
    found: list[bool | None] = []
    for value in (predicate.value, predicate.other):
        places = [
            slot.start for slot in slots(text) if is_number(slot, float(value or 0), predicate.tolerance)
        ]
        found.append(_lacks(text, places[0]) if places else None)
    return found[0], found[1]


def _lacks(text: str, place: int) -> bool | None:
    """Whether the clause at a place speaks of lacking, by its own words or by those before it."""
    last: bool | None = None
    at = 0
    for part in [*_CLAUSE.finditer(text), None]:
        end = part.start() if part else len(text)
        last = _of_clause(text[at:end], last)
        if place < end:
            return last
        at = part.end() if part else end
    return last


def _of_clause(clause: str, before: bool | None) -> bool | None:
    bare = _OUTCOME.sub(" ", clause)
    if _ABSENT.search(bare):
        return True
    if _REST.search(bare):
        return None if before is None else not before
    if _DO.search(bare) or re.search(r"\b(?:with|calls?|called|calling|uses?|used|gives?|makes?)\b|`", bare):
        return False
    return before

"""Turn contradictions into open questions where the sentence may say less than was read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion

# Exceptions, conditions and denials turn round what is said of single tasks and rollouts.
_TURNED = re.compile(
    r"\b(?:except|other than|apart from|besides|all but|neither|nor|none of|not one"
    r"|no (?:rollout|repeat|attempt|task)|if|suppose|supposing|unless|would|had it"
    r"|it is (?:false|not true|untrue))\b"
    r"|\bpassed (?:an?|the|its|wrong|no)\b"
)
_OF_ONE = frozenset(("outcome", "bucket", "label", "step"))
# A reason or a clause after what was counted makes it a part: not all that fail, fail because of this.
_PART = re.compile(
    r"[^.;]{0,60}?\b(?:fail|pass|solv|succeed|los)\w*\b[^.;,]{0,30}?"
    r"\b(?:because|due to|owing to|thanks to|with|although|though|despite|after|before|that|which|who|only"
    r"|for|on|in|when|as)\b"
)
_BACK = re.compile(
    r"\s+(?:of (?:these|those|them)|in \d|(?:rollouts?|repeats?|attempts?) of (?:task )?\S+)\b"
)
_FEW = re.compile(
    r"\b(?:ha(?:ve|s) only|at least one|only once|only (?:one|two|three|four|five) \w+|\d+ in \d+)\b"
)
_COUNTED = frozenset(("count", "share"))
# At another time, or elsewhere: not of these rows.
_ELSEWHERE = re.compile(
    r"^\W*(?:previously|earlier|formerly|historically|originally|before (?:that|this)|back then|last \w+"
    r"|in (?:the|an?|our) (?:paper|past|previous|earlier|older|original|published)\b)"
)


def untangled(found: Iterable[Assertion], text: str) -> Iterator[Assertion]:
    """The assertions of one sentence; what it may mean otherwise is not contradicted."""
    lower = text.lower()
    is_turned = bool(_TURNED.search(lower))
    for one in found:
        is_open = one.verdict == CONTRADICTED or (one.verdict == SUPPORTED and one.kind in _OF_ONE)
        if is_open and (reason := _reason(one, lower, is_turned)):
            yield replace(one, verdict=UNVERIFIABLE, expected=None, why=reason)
        else:
            yield one


def _reason(one: Assertion, text: str, is_turned: bool) -> str:
    if _ELSEWHERE.match(text):
        return "it may be said of another run"
    if one.kind in _OF_ONE and is_turned:
        return "the sentence has an exception, a condition or a denial in it"
    if one.kind not in _COUNTED:
        return ""
    after = text[one.start + len(one.found) :] if one.start >= 0 else text
    if _PART.match(after) or _BACK.match(after) or _FEW.search(text):
        return "the sentence may count a part only"
    return ""


_WEAK = (CONTRADICTED, UNVERIFIABLE, SUPPORTED)


def weakest(found: Iterable[Assertion]) -> list[Assertion]:
    """One verdict where the same words are said of several tasks: they hold if they hold of all."""
    kept: dict[tuple[str, int, str], Assertion] = {}
    rest: list[Assertion] = []
    for one in found:
        if one.kind not in _OF_ONE:
            rest.append(one)
            continue
        key = (one.kind, one.start, one.found)
        if key not in kept or _WEAK.index(one.verdict) < _WEAK.index(kept[key].verdict):
            kept[key] = one
    return [*kept.values(), *rest]

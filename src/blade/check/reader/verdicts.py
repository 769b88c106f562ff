"""Turn a claim and the readings it may have into an assertion with its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from blade.check.reader.ground import Reading
from blade.check.reader.mentions import Mention, Sentence
from blade.check.reader.quantities import Quantity
from blade.model import Assertion
from blade.model.checked import CONTRADICTED, SUPPORTED, UNVERIFIABLE


class Place(msgspec.Struct, frozen=True):
    """Where a sentence or a table row stands, and what it cites."""

    text: str
    line: int
    last_line: int
    cites: tuple[str, ...] = ()


def cited(sentence: Sentence) -> tuple[str, ...]:
    """The tasks and rollouts that a sentence names."""
    return tuple(dict.fromkeys(name for one in sentence.mentions if one.kind in "TA" for name in one.names))


def said(
    place: Place, verdict: str, kind: str, found: str, start: int = -1, *, expected: str | None = None,
    why: str = "", subject: str | None = None, run: str | None = None,
    scope: tuple[tuple[str, str], ...] = (), value: float | str | None = None, query: str | None = None,
) -> Assertion:  # fmt: skip
    """An assertion at a place."""
    return Assertion(
        verdict, kind, place.line, place.last_line, place.text, found, expected, why, subject, run, scope,
        value, query, place.cites, start,
    )  # fmt: skip


def held(amount: Quantity, readings: Sequence[Reading], as_rate: bool) -> Reading | None:
    """The reading that an amount can stand for, if any."""
    told = amount.as_rate() if as_rate else (amount,)
    return next((one for one in readings for each in told if each.fits(one.value)), None)


def judged(
    place: Place, amount: Mention, kind: str, readings: Sequence[Reading], *, subject: str, run: str | None,
    scope: tuple[tuple[str, str], ...] = (), as_rate: bool = False, doubt: str = "",
) -> Assertion:  # fmt: skip
    """An amount against its readings; `doubt` says why a misfit is no contradiction."""
    quantity = amount.amount
    assert quantity is not None
    told: dict[str, Any] = {"subject": subject, "run": run, "scope": scope, "value": quantity.value}
    fit = held(quantity, readings, as_rate)
    if fit is not None:
        return said(
            place, SUPPORTED, kind, amount.text, amount.start, expected=fit.words, query=fit.query, **told
        )
    if not readings or doubt:
        why = doubt or "nothing here measures it"
        return said(place, UNVERIFIABLE, kind, amount.text, amount.start, why=why, **told)
    first = readings[0]
    return said(
        place, CONTRADICTED, kind, amount.text, amount.start, expected=first.words,
        why=_others(readings), query=first.query, **told,
    )  # fmt: skip


def _others(readings: Sequence[Reading]) -> str:
    others = [words for words in dict.fromkeys(one.words for one in readings) if words != readings[0].words]
    return f"no reading fits: {'; '.join(others[:3])}" if others else "the rows say otherwise"

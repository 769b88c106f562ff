"""Turn fields of a noun into facts: one for each field that says something, under its query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from blade.model import Fact

Scope = tuple[tuple[str, str], ...]


class Says(NamedTuple):
    """A field of a noun that says something."""

    field: str  # of the noun, and its name on the wire unless `wire` says otherwise
    kind: str
    names: tuple[str, ...]
    subject: str = ""  # as the field, unless said
    unit: str = ""
    n: str = ""  # the field that holds its denominator
    low: str = ""
    high: str = ""
    wire: str = ""


def said(
    noun: Any,
    stem: str,
    fields: Iterable[Says],
    run: str | None = None,
    scope: Scope = (),
    also: tuple[str, ...] = (),
    cites: tuple[str, ...] = (),
) -> Iterator[Fact]:
    """The facts that `fields` of a noun are; `stem` finds the noun, `also` are further names of each."""
    for one in fields:
        value = finite(getattr(noun, one.field))
        if value is None:
            continue
        yield Fact(
            query=f"{stem}.{one.wire or one.field}",
            kind=one.kind,
            subject=one.subject or one.field,
            names=(*one.names, *also),
            value=value,
            run=run,
            scope=scope,
            n=number(getattr(noun, one.n)) if one.n else None,
            unit=one.unit,
            low=number(getattr(noun, one.low)) if one.low else None,
            high=number(getattr(noun, one.high)) if one.high else None,
            cites=cites,
        )


def finite(value: Any) -> float | str | None:
    """A value as a fact holds it; None where there is nothing to say."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value)


def number(value: Any) -> float | None:
    return float(value) + 0.0 if value is not None and math.isfinite(value) else None


def ends(subject: str) -> tuple[Says, Says]:
    """The two ends of an interval, of what `subject` names."""
    return (
        Says("low", "number", (f"lower end of {subject}", "lower end"), f"{subject}_low"),
        Says("high", "number", (f"upper end of {subject}", "upper end"), f"{subject}_high"),
    )


def counted(query: str, value: int, subject: str, names: tuple[str, ...], **more: Any) -> Fact:
    """A count that the report does not state as such, but follows from it."""
    return Fact(query, "count", subject, names, float(value), **more)


def told(
    stem: str, subject: str, texts: Sequence[str], run: str | None = None, scope: Scope = ()
) -> Iterator[Fact]:
    """A list of texts as one, line by line; nothing where there are none."""
    if texts:
        yield Fact(
            f"lines({stem})", "text", subject, (subject.replace("_", " "),), "\n".join(texts), run, scope
        )

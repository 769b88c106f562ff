"""Say how right the labels are: the accuracy card, natural sets before planted ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from blade import hostile
from blade.model import Report
from blade.report import numbers, words
from blade.report.sections import Block, Code, Heading, Line, Num, Span, Table, cells, para

KINDS = ("natural", "planted")
MAX_ROWS = 40
SKIPPED = ("name", "kind")


def accuracy(report: Report) -> list[Block]:
    """Every set of the card with its numbers, or that there is no card."""
    heading = Heading(("How right are these labels",))
    card = report.accuracy
    if not card:
        return [
            heading,
            para(
                "No accuracy card came with this report: how often its causes and steps are right is unknown."
            ),
        ]
    blocks: list[Block] = [
        heading,
        para(
            "How often causes and steps were right where the truth is known. Natural sets, labelled by "
            "people, come first and say what to expect; planted sets only show that a rule finds what it "
            "describes. "
            "A label of this report is not more certain than this."
        ),
    ]
    for labelled in sets(card):
        rows = tuple(
            cells(numbers.name(hostile.line(" ".join(path), 120)), value, n)
            for path, value, n in list(measures(labelled.content, labelled.query))[:MAX_ROWS]
        )
        kind = labelled.kind if labelled.kind not in labelled.name.lower() else ""
        what = f", {hostile.line(kind, 40)}:" if kind else ":"
        blocks.append(para(Code(hostile.line(labelled.name, 80)), what))
        blocks.append(
            Table(("Measure", "Value, 95% interval", "n"), rows, "lrr") if rows else para("No number.")
        )
    about = [(key, value) for key, value in card.items() if _is_plain(value)]
    facts = [
        (f"{hostile.line(key, 80)}: ", _stated(value, f"engine.accuracy[{key!r}]")) for key, value in about
    ]
    return [*blocks, para(*numbers.joined(list(facts), "; ", "; "), ".")] if facts else blocks


class Labelled(NamedTuple):
    """A set of known truth: its name, natural or planted, its numbers, and the query that gives it."""

    name: str
    kind: str
    content: Mapping[str, Any]
    query: str


def sets(card: Mapping[str, Any]) -> list[Labelled]:
    """The sets of a card, natural first.

    A card is `{"sets": [{"name", "kind", ...}]}` or maps names (or the kinds themselves) to sets.
    """
    listed = card.get("sets")
    every: list[Labelled] = []
    if isinstance(listed, list | tuple):
        for place, entry in enumerate(listed):
            if isinstance(entry, Mapping):
                name, kind = str(entry.get("name", "")), str(entry.get("kind", ""))
                every.append(Labelled(name, kind, entry, f"engine.accuracy['sets'][{place}]"))
    for key, value in card.items():
        if isinstance(value, Mapping):
            kind = str(value.get("kind", key if key in KINDS else ""))
            every.append(Labelled(str(key), kind, value, f"engine.accuracy[{key!r}]"))

    def rank(labelled: Labelled) -> tuple[int, str]:
        names = (labelled.kind, labelled.name)
        return (next((place for place, kind in enumerate(KINDS) if kind in names), len(KINDS)), labelled.name)

    return sorted(every, key=rank)


def measures(
    content: Mapping[str, Any], query: str, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Line, Span]]:
    """Every number of a set: its name, itself with its interval, and its n."""
    for key, value in content.items():
        if key in SKIPPED and not path:
            continue
        here, inner = (*path, str(key).replace("_", " ")), f"{query}[{key!r}]"
        if isinstance(value, Mapping) and "value" in value:
            yield here, _with_interval(value, inner), _stated(value.get("n"), f"{inner}['n']")
        elif isinstance(value, Mapping):
            yield from measures(value, inner, here)
        elif _is_plain(value):
            yield here, (_stated(value, inner),), ""


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _with_interval(value: Mapping[str, Any], query: str) -> Line:
    point, low, high = (_stated(value.get(key), f"{query}[{key!r}]") for key in ("value", "low", "high"))
    return (point, *numbers.between(low, high))


def _stated(value: Any, query: str) -> Span:
    """A number of the card with its query; any other value as code."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Code(hostile.line(str(value), 120)) if value is not None else words.NONE
    if isinstance(value, int):
        return Num(words.whole(value), value, query)
    return numbers.number(value, query) if math.isfinite(value) else words.NONE

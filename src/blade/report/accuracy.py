"""Say how right the labels are: the accuracy card, natural sets before planted ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from blade import hostile
from blade.model import Report
from blade.report import words
from blade.report.sections import Block, Code, Heading, Table, cells, para

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
    for name, kind, found in sets(card):
        rows = tuple(
            cells(hostile.line(" ".join(path), 120), said, n)
            for path, said, n in list(measures(found))[:MAX_ROWS]
        )
        what = f", {kind}" if kind and kind not in name.lower() else ""
        blocks.append(para(Code(hostile.line(name, 80)), f"{hostile.line(what, 40)}:"))
        blocks.append(
            Table(("Measure", "Value, 95% interval", "n"), rows, "lrr") if rows else para("No number.")
        )
    about = [f"{key}: {hostile.line(str(value), 120)}" for key, value in card.items() if _is_plain(value)]
    return [*blocks, para(f"{'; '.join(hostile.line(text, 200) for text in about)}.")] if about else blocks


def sets(card: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """The sets as (name, kind, numbers), natural first.

    A card is `{"sets": [{"name", "kind", ...}]}` or maps names (or the kinds themselves) to sets.
    """
    listed = card.get("sets")
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    if isinstance(listed, list | tuple):
        found += [
            (str(one.get("name", "")), str(one.get("kind", "")), one)
            for one in listed
            if isinstance(one, Mapping)
        ]
    for name, value in card.items():
        if isinstance(value, Mapping):
            found.append((str(name), str(value.get("kind", name if name in KINDS else "")), value))

    def place(one: tuple[str, str, Mapping[str, Any]]) -> tuple[int, str]:
        kind = next((at for at, kind in enumerate(KINDS) if kind in (one[1], one[0])), len(KINDS))
        return (kind, one[0])

    return sorted(found, key=place)


def measures(
    found: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Every number of a set: its name, itself with its interval, and its n."""
    for key, value in found.items():
        if key in SKIPPED and not path:
            continue
        here = (*path, str(key).replace("_", " "))
        if isinstance(value, Mapping) and "value" in value:
            yield here, _with_interval(value), _n(value)
        elif isinstance(value, Mapping):
            yield from measures(value, here)
        elif _is_plain(value):
            yield here, _said(value), ""


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _with_interval(value: Mapping[str, Any]) -> str:
    low, high = value.get("low"), value.get("high")
    ends = f" [{_said(low)}, {_said(high)}]" if low is not None and high is not None else ""
    return _said(value["value"]) + ends


def _n(value: Mapping[str, Any]) -> str:
    return words.whole(value["n"]) if isinstance(value.get("n"), int) else words.NONE


def _said(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return hostile.line(str(value), 120) if value is not None else words.NONE
    return (
        words.whole(value)
        if isinstance(value, int)
        else words.number(value)
        if math.isfinite(value)
        else words.NONE
    )

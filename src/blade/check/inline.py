"""Hold the quotations in sentences, block quotes and tables against the rollouts beside them."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from blade import hostile
from blade.check.citing import Citing, Known, citings
from blade.check.held import STANDS, Address, Held, squeezed
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from blade.prose.document import Document

UNSAID = "no rollout holds these words, and it is not said that one does"


def inline(
    document: Document, world: World, settled: AbstractSet[tuple[int, str]]
) -> tuple[list[Assertion], set[int]]:
    """Every long quotation that stands in a sentence, a block quote or a cell, looked up in the rows.

    And the lines of the block quotes among them: what they say is not said by the report itself.
    """
    told = citings(document, Known(world.rows.names()), settled)
    if not told:
        return [], set()
    held = Held(world.rows)
    ours = _Ours(world)
    found: list[Assertion] = []
    left: list[Citing] = []
    for one in told:
        runs = _runs(one, world)
        stated = (*one.where, *one.near)
        place = next((at for where in stated if (at := held.at(one.quote, where, runs))), None)
        if place is not None:
            found += [] if one.is_unsaid else [_said(one, SUPPORTED, f"stands in {_shown(place, world)}")]
        elif not one.is_unsaid:
            left.append(one)
    places = held.anywhere(dict.fromkeys(one.quote for one in left))
    lost = {one for one in left if one.is_loose and places.get(one.quote) is None}
    remarks = {one for one in lost if not any(where.steps for where in one.where)}
    for one in left:
        if one in remarks:
            continue
        if one in lost:
            found.append(_said(one, UNVERIFIABLE, UNSAID))
        elif places.get(one.quote) is None and ours.has(one.quote):
            found.append(_said(one, SUPPORTED, "the rows give the same words"))
        else:
            found.append(_looked_up(one, places, held, world))
    blocks = (one for one in told if one.is_block and one not in remarks)
    return found, {line for one in blocks for line in range(one.line, one.last_line + 1)}


class _Ours:
    """The words of the recomputed pages, such as the names of failure modes."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._text: str | None = None

    def has(self, quote: str) -> bool:
        if self._text is None:
            parts = []
            for page in self._world.pages:
                parts += [one.text for one in page.statements] + [one.text for one in page.quotations]
                parts += [cell for table in page.tables for row in table.rows for cell in row.cells]
            self._text = "\n".join(map(squeezed, parts))
        return squeezed(quote).strip(".,;:…'") in self._text


def _looked_up(one: Citing, places: dict[str, Address | None], held: Held, world: World) -> Assertion:
    """A quotation that does not stand where the text around it says, if it says anything."""
    if one.quote not in places:
        return _said(one, UNVERIFIABLE, "too much to look for in all rows")
    place = places[one.quote]
    stated = one.where or one.near
    meant = " or ".join(map(str, stated[:4]))
    if place is None:
        if one.is_firm or one.is_spoken:
            nowhere = (
                f"neither {meant} nor any other rollout holds this text"
                if stated
                else "no rollout holds this text"
            )
            return _said(one, CONTRADICTED, nowhere)
        return _said(one, UNVERIFIABLE, UNSAID)
    if one.where and one.is_firm:
        # Where it stands in the rollout that is meant tells more than where it stands first.
        wider = [Address(where.task, where.repeat) for where in stated]
        wider += [Address(where.task) for where in stated if where.repeat is not None]
        loose = (held.at(one.quote, where, _runs(one, world)) for where in wider)
        place = next((at for at in loose if at is not None), place)
        there = f"{STANDS} {_shown(place, world)}"
        return _said(one, CONTRADICTED, f"it does not stand in {meant}", there)
    return _said(one, SUPPORTED, f"stands in {_shown(place, world)}")


def _shown(place: Address, world: World) -> str:
    return f"{place} of run {place.run}" if len(world.rows.runs) > 1 else str(place)


def _runs(one: Citing, world: World) -> tuple[str, ...]:
    """The runs that are named beside a quotation; all of them if none is."""
    runs = world.rows.runs
    if len(runs) == 1:
        return runs
    marks = ((run, re.escape(run) if len(run) > 2 else f"`{re.escape(run)}`") for run in runs)
    named = tuple(run for run, mark in marks if re.search(rf"(?<![\w-]){mark}(?![\w-])", one.around))
    return named or runs


def _said(one: Citing, verdict: str, why: str, expected: str | None = None) -> Assertion:
    cites = tuple(str(replace(where, steps=(), field=None)) for where in one.where)
    return Assertion(
        verdict, "quote", one.line, one.last_line, one.text, hostile.line(one.quote, 300), expected, why,
        value=one.quote, cites=cites, start=one.start,
    )  # fmt: skip

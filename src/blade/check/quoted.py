"""Hold the quotations of a report against the rollouts they are said to stand in."""

from __future__ import annotations

import re

from msgspec.structs import replace

from blade import hostile
from blade.check.citing import leads
from blade.check.held import STANDS, Address, Held
from blade.check.world import Rows, World
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from blade.prose.document import Document, Quotation

_ADDRESS = re.compile(
    r"\b(?:task|rollout|row)\s+(?:`(?P<code>[^`]{1,200})`|(?P<bare>[\w.#-]+(?:/\d+)?)(?![\w/]))"
    r"(?:[^;:`]{0,60}?\bstep\s+(?P<step>\d+)|[^;:`]{0,60}?\bfield\s+`(?P<field>[^`]{1,200})`)?",
    re.IGNORECASE,
)
Known = dict[tuple[tuple[str, ...], str], list[str]]  # headings and label -> what stands there
SHELLS = frozenset("sh bash shell console".split())


def address(label: str) -> Address | None:
    """The rollout, and the step or field of it, that a label names last."""
    found = [_address(hit) for hit in _ADDRESS.finditer(label)]
    told = [one for one in found if one.repeat is not None or one.steps or one.field]
    return told[-1] if told else None


def address_at(label: str) -> int:
    """Where in a label its address begins; its length if it has none."""
    return max((hit.start() for hit in _ADDRESS.finditer(label)), default=len(label))


def _address(hit: re.Match[str]) -> Address:
    task, slash, repeat = (hit["code"] or hit["bare"]).strip().rpartition("/")
    steps = (int(hit["step"]),) if hit["step"] else ()
    if slash and repeat.isdecimal() and len(repeat) < 9:
        return Address(task, int(repeat), steps, hit["field"])
    return Address(f"{task}{slash}{repeat}", None, steps, hit["field"])


def quoted(document: Document, world: World) -> list[Assertion]:
    """Every quotation with an address, opened there; others where the recomputed pages quote the same."""
    known: Known = {}
    for page in world.pages:
        for one in page.quotations:
            known.setdefault((one.headings, one.label), []).append(one.text)
    texts = {_normal(one.text) for page in world.pages for one in page.quotations}
    found, held = [], Held(world.rows)
    for one in document.quotations:
        if one.info.lower() in SHELLS or not one.text.strip():
            continue
        found.append(_quotation(one, held, known, texts))
    return _elsewhere(found, held)


def _elsewhere(found: list[Assertion], held: Held) -> list[Assertion]:
    """The same, with where those stand that the task they are said to be from does not hold."""
    lost = {str(one.value) for one in found if one.verdict == CONTRADICTED and one.expected is None}
    places = held.anywhere(lost) if lost else {}
    told = []
    for one in found:
        place = places.get(str(one.value)) if one.verdict == CONTRADICTED and one.expected is None else None
        if place is not None:
            run = f" of run {place.run}" if len(held.rows.runs) > 1 else ""
            one = replace(one, expected=f"{STANDS} {place}{run}")
        told.append(one)
    return told


def _quotation(one: Quotation, held: Held, known: Known, texts: set[str]) -> Assertion:
    where = address(one.label)
    if _normal(one.text) in texts and (where is None or _same_label(one, known)):
        return _told(one, SUPPORTED, "the rows give the same quotation")
    meant = known.get((one.headings, one.label))
    if meant:
        return _told(one, CONTRADICTED, "the rows give another text here", hostile.line(meant[0], 200))
    if where is not None:
        return _opened(one, where, held)
    return _told(one, UNVERIFIABLE, "the text does not say which rollout it is from")


def _same_label(one: Quotation, known: Known) -> bool:
    return _normal(one.text) in map(_normal, known.get((one.headings, one.label), ()))


def _opened(one: Quotation, where: Address, held: Held) -> Assertion:
    runs = _runs(one, held.rows)
    rollout = Address(where.task, where.repeat)
    if not held.has(where.task, runs, where.repeat):
        return _told(one, CONTRADICTED, f"there is no rollout {rollout}")
    place = where if leads(one.label) else replace(where, steps=())
    if held.at(one.text, place, runs) is not None:
        return _told(one, SUPPORTED, f"stands in {rollout}")
    elsewhere = held.at(one.text, rollout, runs) or held.at(one.text, Address(where.task), runs)
    if elsewhere is not None:
        return _told(one, CONTRADICTED, f"it does not stand in {where}", f"{STANDS} {elsewhere}")
    return _told(one, CONTRADICTED, f"{rollout} does not hold this text")


def _runs(one: Quotation, rows: Rows) -> tuple[str, ...]:
    """The runs that a label or a heading names; all of them if none is named."""
    text = " ".join((*one.headings, one.label))
    named = tuple(run for run in rows.runs if re.search(rf"(?<![\w-]){re.escape(run)}(?![\w-])", text))
    return named or rows.runs


def _normal(text: str) -> str:
    return " ".join(text.split())


def _told(one: Quotation, verdict: str, why: str, expected: str | None = None) -> Assertion:
    cites = address(one.label)
    named = () if cites is None else (str(Address(cites.task, cites.repeat)),)
    return Assertion(
        verdict, "quote", one.line, one.last_line, one.label, hostile.line(one.text, 300), expected, why,
        value=one.text, cites=named,
    )  # fmt: skip

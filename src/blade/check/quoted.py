"""Hold the quotations of a report against the rollouts they are said to stand in."""

from __future__ import annotations

import re

from msgspec.structs import replace

from blade import hostile
from blade.check.citing import Known as Names
from blade.check.citing import leading, leads, named_in, paragraph, unquoted
from blade.check.held import STANDS, Address, Held, in_order, pieces, squeezed
from blade.check.speech import is_unsaid
from blade.check.world import Rows, World
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from blade.prose.document import Document, Quotation

_ADDRESS = re.compile(
    r"\b(?:task|rollout|row)\s+(?:`(?P<code>[^`]{1,200})`|(?P<bare>[\w.#-]+(?:/\d+)?)(?![\w/]))"
    r"(?:[^;:`]{0,60}?\bstep\s+(?P<step>\d+)|[^;:`]{0,60}?\bfield\s+`(?P<field>[^`]{1,200})`)?",
    re.IGNORECASE,
)
Known = dict[tuple[tuple[str, ...], str], list[str]]  # headings and label -> what stands there
# A block under a line that only begins with a rollout may be no quotation, unless some row holds it.
_PERHAPS = "no rollout holds this text, and it is not said that one does"
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
    found, held, names = [], Held(world.rows), Names(world.rows.names())
    for one in document.quotations:
        if one.info.lower() in SHELLS or not one.text.strip():
            continue
        above = paragraph(document, one.line)
        is_led = address(one.label) is None and not _same_label(one, known) and _is_exact(above, names)
        told = None if is_led else _quotation(one, held, known, texts)
        found.append(told or _under(one, above, held, names))
    return _elsewhere(found, held)


def _elsewhere(found: list[Assertion], held: Held) -> list[Assertion]:
    """The same, with where those stand that the task they are said to be from does not hold."""
    lost = {str(one.value) for one in found if one.verdict == CONTRADICTED and one.expected is None}
    places = held.anywhere(lost) if lost else {}
    told = []
    for one in found:
        place = places.get(str(one.value)) if one.verdict == CONTRADICTED and one.expected is None else None
        if one.why == _PERHAPS:
            why = f"{' or '.join(one.cites[:4])} does not hold this text"
            one = replace(one, verdict=UNVERIFIABLE) if place is None else replace(one, why=why)
        if place is not None:
            run = f" of run {place.run}" if len(held.rows.runs) > 1 else ""
            one = replace(one, expected=f"{STANDS} {place}{run}")
        told.append(one)
    return told


def _quotation(one: Quotation, held: Held, known: Known, texts: set[str]) -> Assertion | None:
    """What is known of a quotation by its label; None if that does not say in full where it is from."""
    where = address(one.label)
    if _normal(one.text) in texts and (where is None or _same_label(one, known)):
        return _told(one, SUPPORTED, "the rows give the same quotation")
    meant = known.get((one.headings, one.label))
    if meant and any(in_order(pieces(one.text), squeezed(text)) for text in meant):
        return _told(one, SUPPORTED, "an excerpt of the quotation that the rows give")
    if meant:
        return _told(one, CONTRADICTED, "the rows give another text here", hostile.line(meant[0], 200))
    if where is not None:
        return _opened(one, where, held)
    return None


def _is_exact(above: str, names: Names) -> bool:
    """Whether a line begins with a rollout, or with a step of a task."""
    lead = leading(unquoted(above), names)
    return lead is not None and (lead.repeat is not None or bool(lead.steps))


def _under(one: Quotation, above: str, held: Held, names: Names) -> Assertion:
    """A quotation under a line that names a rollout in whatever words: it begins with it, or leads to it."""
    outside = unquoted(above)
    lead = leading(outside, names)
    places = named_in(outside, names)
    runs = _runs(one, held.rows)
    if lead is None and not leads(outside):
        places = tuple(replace(where, steps=()) for where in places)
    place = next((where for where in places if held.at(one.text, where, runs) is not None), None)
    if place is not None:
        return _cited(one, (place,), SUPPORTED, f"stands in {_meant((place,))}")
    is_led = above.rstrip("*_ ").endswith(":")
    if not places or not (is_led or _is_exact(above, names)) or is_unsaid(outside.rstrip("*_: ")):
        return _told(one, UNVERIFIABLE, "the text does not say which rollout it is from")
    wider = [replace(where, steps=(), field=None) for where in places]
    wider += [Address(where.task) for where in places if where.repeat is not None]
    elsewhere = next((at for where in wider if (at := held.at(one.text, where, runs)) is not None), None)
    if elsewhere is None:
        is_said = is_led or (lead is not None and bool(lead.steps))
        why = f"{_meant(places)} does not hold this text" if is_said else _PERHAPS
        return _cited(one, places, CONTRADICTED, why)
    why = f"it does not stand in {' or '.join(map(str, places[:4]))}"
    return _cited(one, places, CONTRADICTED, why, f"{STANDS} {elsewhere}")


def _meant(places: tuple[Address, ...]) -> str:
    return " or ".join(str(Address(where.task, where.repeat)) for where in places[:4])


def _cited(
    one: Quotation, places: tuple[Address, ...], verdict: str, why: str, expected: str | None = None
) -> Assertion:
    named = tuple(dict.fromkeys(str(Address(where.task, where.repeat)) for where in places))
    return replace(_told(one, verdict, why, expected), cites=named)


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

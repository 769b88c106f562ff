"""Hold the quotations of a report against the rollouts they are said to stand in."""

from __future__ import annotations

import re

import msgspec

from blade import hostile
from blade.check.world import World
from blade.ingest.items import NOTHING, quotable, value_at
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion, Step, Trace
from blade.prose.document import Document, Quotation
from blade.sanitize import is_redacted, known_key, matches

_ADDRESS = re.compile(
    r"\b(?:task|rollout|row)\s+(?:`(?P<code>[^`]{1,200})`|(?P<bare>[\w.#-]+(?:/\d+)?)(?![\w/]))"
    r"(?:[^;:`]{0,60}?\bstep\s+(?P<step>\d+)|[^;:`]{0,60}?\bfield\s+`(?P<field>[^`]{1,200})`)?",
    re.IGNORECASE,
)
_CUT = re.compile(r"\s*(?:\[?(?:…|\.\.\.)\]?(?:\s*\([\d,]+ characters more\))?)\s*")
Known = dict[tuple[tuple[str, ...], str], list[str]]  # headings and label -> what stands there
SHELLS = frozenset("sh bash shell console".split())


class Address(msgspec.Struct, frozen=True):
    task: str
    repeat: int | None
    step: int | None
    field: str | None


def address(label: str) -> Address | None:
    """The rollout, and the step or field of it, that a label names last."""
    found = [_address(hit) for hit in _ADDRESS.finditer(label)]
    told = [one for one in found if (one.repeat, one.step, one.field) != (None, None, None)]
    return told[-1] if told else None


def address_at(label: str) -> int:
    """Where in a label its address begins; its length if it has none."""
    return max((hit.start() for hit in _ADDRESS.finditer(label)), default=len(label))


def _address(hit: re.Match[str]) -> Address:
    task, slash, repeat = (hit["code"] or hit["bare"]).strip().rpartition("/")
    step = int(hit["step"]) if hit["step"] else None
    if slash and repeat.isdigit():
        return Address(task, int(repeat), step, hit["field"])
    return Address(f"{task}{slash}{repeat}", None, step, hit["field"])


def quoted(document: Document, world: World) -> list[Assertion]:
    """Every quotation with an address, opened there; others where the recomputed pages quote the same."""
    known: Known = {}
    for page in world.pages:
        for one in page.quotations:
            known.setdefault((one.headings, one.label), []).append(one.text)
    texts = {_normal(one.text) for page in world.pages for one in page.quotations}
    found = []
    for one in document.quotations:
        if one.info.lower() in SHELLS or not one.text.strip():
            continue
        found.append(_quotation(one, world, known, texts))
    return found


def _quotation(one: Quotation, world: World, known: Known, texts: set[str]) -> Assertion:
    where = address(one.label)
    if _normal(one.text) in texts and (where is None or _same_label(one, known)):
        return _told(one, SUPPORTED, "the rows give the same quotation")
    meant = known.get((one.headings, one.label))
    if meant:
        return _told(one, CONTRADICTED, "the rows give another text here", hostile.line(meant[0], 200))
    if where is not None:
        return _opened(one, where, world)
    return _told(one, UNVERIFIABLE, "the text does not say which rollout it is from")


def _same_label(one: Quotation, known: Known) -> bool:
    return _normal(one.text) in map(_normal, known.get((one.headings, one.label), ()))


def _opened(one: Quotation, where: Address, world: World) -> Assertion:
    runs = _runs(one, world)
    traces = [trace for run in runs for trace in world.rows.at(run, where.task, where.repeat)]
    place = where.task if where.repeat is None else f"{where.task}/{where.repeat}"
    if not traces:
        return _told(one, CONTRADICTED, f"there is no rollout {place}")
    if any(_holds(text, one.text) for trace in traces for text in _texts(trace, where)):
        return _told(one, SUPPORTED, f"stands in {place}")
    elsewhere = any(_holds(text, one.text) for trace in traces for text in _texts(trace, None))
    spot = f"step {where.step}" if where.step is not None else f"field {where.field}"
    if elsewhere and (where.step is not None or where.field is not None):
        return _told(one, CONTRADICTED, f"stands in {place}, but not at {spot}")
    return _told(one, CONTRADICTED, f"{place} does not hold this text")


def _runs(one: Quotation, world: World) -> tuple[str, ...]:
    """The runs that a label or a heading names; all of them if none is named."""
    text = " ".join((*one.headings, one.label))
    named = tuple(run for run in world.rows.runs if re.search(rf"(?<![\w-]){re.escape(run)}(?![\w-])", text))
    return named or world.rows.runs


def _texts(trace: Trace, where: Address | None) -> list[str]:
    """What stands at an address, or anywhere in a rollout."""
    if where is not None and where.step is not None:
        return [text for step in trace.steps if step.index == where.step for text in _step_texts(step)]
    row = trace.row
    if where is not None and where.field is not None:
        value = value_at(row, where.field)
        return [] if value is NOTHING else [quotable(value)]
    return [quotable(row), *(text for step in trace.steps for text in _step_texts(step))]


def _step_texts(step: Step) -> list[str]:
    return [text for text in (step.text, step.reasoning, step.arguments, step.tool) if text]


def _holds(text: str, quote: str) -> bool:
    """Whether `text` has all pieces of a quotation, in order; cuts that it marks are left out."""
    text, at = _normal(hostile.lines(text)), 0
    for piece in _CUT.split(quote):
        piece = _normal(piece)
        if is_redacted(piece):
            if not matches(piece, text, known_key()):
                return False
            continue
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def _normal(text: str) -> str:
    return " ".join(text.split())


def _told(one: Quotation, verdict: str, why: str, expected: str | None = None) -> Assertion:
    cites = address(one.label)
    named = () if cites is None else (cites.task if cites.repeat is None else f"{cites.task}/{cites.repeat}",)
    return Assertion(
        verdict, "quote", one.line, one.last_line, one.label, hostile.line(one.text, 300), expected, why,
        value=one.text, cites=named,
    )  # fmt: skip

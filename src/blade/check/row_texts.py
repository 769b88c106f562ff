"""Look quotations up in the rows: at the rollout they are said to be from, or in any of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from blade.check.world import Rows
from blade.events import step_texts
from blade.formats.items import NOTHING, quotable, value_at
from blade.model import Trace
from blade.model.measured import PLACEHOLDER

_CUT = re.compile(r"\s*(?:\[?(?:…|\.{3,})\]?(?:\s*\([\d,]+ characters more\))?)\s*")
_PUT_IN = re.compile(r"\[[^\[\]]{0,80}\]")  # a word of whoever quotes
_BREAK = re.compile(r"\\+[nrt]")
_SAME = str.maketrans(
    dict.fromkeys("“”„‟«»‘’‚‛\"'", "'") | dict.fromkeys("–—−‐‑", "-") | dict.fromkeys("\\*`", "")
)
_EDGES = ".,;:!?'"
_WORK = 3_000_000_000  # characters compared in a search of all rows, at most


class Address(msgspec.Struct, frozen=True):
    """A rollout, or a task, and the steps or the field of it."""

    task: str
    repeat: int | None = None
    steps: tuple[int, ...] = ()
    field: str | None = None
    run: str = ""
    is_pinned: bool = False  # the step belongs to the address itself: 12/0#4

    @property
    def rollout(self) -> Address:
        return Address(self.task, self.repeat)

    def __str__(self) -> str:
        place = self.task if self.repeat is None else f"{self.task}/{self.repeat}"
        if self.steps:
            return f"{place}, step {', '.join(map(str, self.steps))}"
        return f"{place}, field {self.field}" if self.field else place


def squeezed(text: str) -> str:
    """A text without what quoting changes: white space, escaped line breaks, marks, emphasis, case."""
    return "".join(_BREAK.sub(" ", text).translate(_SAME).casefold().split())


def pieces(quote: str, put_in: bool = False) -> list[str]:
    """The parts of a quotation between its cuts, squeezed; `put_in` takes [words] for cuts as well."""
    text = PLACEHOLDER.sub("…", quote)  # it stands for something that was taken out
    parts = [squeezed(part) for part in _CUT.split(_PUT_IN.sub("…", text) if put_in else text)]
    parts[0], parts[-1] = parts[0].lstrip(_EDGES), parts[-1].rstrip(_EDGES)
    return [part for part in parts if part]


def _in_order(parts: Iterable[str], text: str) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return True


class RowTexts:
    """The texts of rows, squeezed, opened as they are asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._of = lru_cache(maxsize=200)(self._texts)

    def at(self, quote: str, where: Address, runs: Iterable[str]) -> Address | None:
        """Where a quotation stands in the rollouts of an address, at its steps or field if it names any."""
        for trace, text in (pair for run in runs for pair in self._of(run, where.task, where.repeat)):
            place = _in_trace(quote, trace, text, where)
            if place is not None:
                return place
        is_failure = bool(where.field) and quote.strip() in self.rows.failures(where.task, where.repeat)
        return where.rollout if is_failure else None

    def anywhere(self, quotes: Iterable[str]) -> dict[str, Address | None]:
        """The first rollout that holds each quotation, or None; what was not looked for is left out."""
        wanted = {quote: (pieces(quote), pieces(quote, put_in=True)) for quote in quotes}
        wanted = {quote: parts for quote, parts in wanted.items() if parts[1]}
        places: dict[str, Address | None] = {}
        work = 0
        for trace in (trace for run in self.rows.runs if wanted for trace in self.rows.each(run)):
            left = [quote for quote in wanted if quote not in places]
            text = squeezed(quotable(trace.row))
            work += len(text) * (len(left) + 20)
            if work > _WORK or not left:
                return places
            for quote in left:
                if any(_in_order(parts, text) for parts in wanted[quote]):
                    places[quote] = _in_trace(quote, trace, text, None)
        return dict.fromkeys(wanted) | places

    def _texts(self, run: str, task: str, repeat: int | None) -> list[tuple[Trace, str]]:
        return [(trace, squeezed(quotable(trace.row))) for trace in self.rows.at(run, task, repeat)]


def _in_trace(quote: str, trace: Trace, text: str, where: Address | None) -> Address | None:
    rollout = Address(trace.rollout.task, trace.rollout.repeat, run=trace.rollout.run)
    if where is not None and where.field is not None:
        value = value_at(trace.row, where.field)
        is_there = value is not NOTHING and holds(squeezed(quotable(value)), quote)
        return msgspec.structs.replace(rollout, field=where.field) if is_there else None
    is_step = where is not None and bool(where.steps)
    if not is_step and not holds(text, quote):
        return None
    calls = {step.call_id: step.index for step in trace.steps if step.kind == "call" and step.call_id}
    for step in trace.steps:  # a result may go by the step of its call, as in the table of calls
        own = (step.index, calls.get(step.call_id or "", -1) if step.kind == "result" else -1)
        is_meant = where is None or not is_step or not {*own}.isdisjoint(where.steps)
        if is_meant and any(holds(squeezed(part), quote) for part in step_texts(step)):
            return msgspec.structs.replace(rollout, steps=(step.index,))
    return None if is_step else rollout


def holds(text: str, quote: str) -> bool:
    """Whether a squeezed text has all pieces of a quotation in order."""
    return _in_order(pieces(quote), text) or _in_order(pieces(quote, put_in=True), text)

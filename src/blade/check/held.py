"""Find quotations in the rows: at the rollout they are said to be from, or in any of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from blade import hostile
from blade.check.world import Rows
from blade.events import step_texts
from blade.ingest.items import NOTHING, quotable, value_at
from blade.model import Step, Trace
from blade.sanitize import is_redacted, known_key, matches

_CUT = re.compile(r"\s*(?:\[?(?:…|\.{3,})\]?(?:\s*\([\d,]+ characters more\))?)\s*")
_PUT_IN = re.compile(r"\[[^\[\]]{0,80}\]")  # a word of whoever quotes
_BREAK = re.compile(r"\\+[nrt]")
_SAME = str.maketrans(
    dict.fromkeys("“”„‟«»‘’‚‛\"'", "'") | dict.fromkeys("–—−‐‑", "-") | dict.fromkeys("\\*`", "")
)
_EDGES = ".,;:!?'"
STANDS = "it stands in"  # how what is expected begins for a quotation that is true of another place
_WORK = 3_000_000_000  # characters compared in a search of all rows, in all: a bound, not a hope
_KEPT = 60_000_000  # characters of rows kept for the next question


class Address(msgspec.Struct, frozen=True):
    """A rollout, or a task, and the steps or the field of it."""

    task: str
    repeat: int | None = None
    steps: tuple[int, ...] = ()
    field: str | None = None
    run: str = ""

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
    text = _PUT_IN.sub("…", quote) if put_in else quote
    parts = [squeezed(part) for part in _CUT.split(text)]
    if parts:
        parts[0], parts[-1] = parts[0].lstrip(_EDGES), parts[-1].rstrip(_EDGES)
    return [part for part in parts if part]


def in_order(parts: Iterable[str], text: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


class Held:
    """The texts of rows, squeezed, opened as they are asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._texts: dict[tuple[str, str, int | None], list[tuple[Trace, str]]] = {}
        self._size = 0

    def has(self, task: str, runs: Iterable[str], repeat: int | None = None) -> bool:
        """Whether any run has the rollout."""
        return any(self._of(run, task, repeat) for run in runs)

    def at(self, quote: str, where: Address, runs: Iterable[str]) -> Address | None:
        """Where a quotation stands in the rollouts of an address, at its steps or field if it names any."""
        for run in runs:
            for trace, text in self._of(run, where.task, where.repeat):
                found = _in_trace(quote, trace, text, where)
                if found is not None:
                    return found
        return None

    def anywhere(self, quotes: Iterable[str]) -> dict[str, Address | None]:
        """The first rollout that holds each quotation, or None; what was not looked for is left out."""
        told = {quote: (pieces(quote), pieces(quote, put_in=True)) for quote in quotes}
        wanted = {
            quote: [whole, *([cut] if cut != whole else [])] for quote, (whole, cut) in told.items() if cut
        }
        found: dict[str, Address | None] = {}
        work = 0
        for run in self.rows.runs:
            for trace in self.rows.each(run):
                left = [quote for quote in wanted if quote not in found]
                if not left:
                    return found
                text = squeezed(quotable(trace.row))
                work += len(text) * (len(left) + 20)
                if work > _WORK:
                    return found
                for quote in left:
                    if any(in_order(parts, text) for parts in wanted[quote]):
                        found[quote] = _in_trace(quote, trace, text, None) or _place(trace)
        return found | {quote: None for quote in wanted if quote not in found}

    def _of(self, run: str, task: str, repeat: int | None) -> list[tuple[Trace, str]]:
        key = (run, task, repeat)
        if key not in self._texts:
            if self._size > _KEPT:
                self._texts.clear()
                self._size = 0
            told = [(trace, squeezed(quotable(trace.row))) for trace in self.rows.at(run, task, repeat)]
            self._size += sum(len(text) for _, text in told)
            self._texts[key] = told
        return self._texts[key]


def standing(quotes: Iterable[str], rows: Rows) -> set[str]:
    """The quotations that some rollout holds, and those that were too much to look for."""
    wanted = set(quotes)
    found = Held(rows).anywhere(wanted) if wanted else {}
    return {quote for quote in wanted if quote not in found or found[quote] is not None}


def _place(trace: Trace, steps: tuple[int, ...] = (), field: str | None = None) -> Address:
    return Address(trace.rollout.task, trace.rollout.repeat, steps, field, trace.rollout.run)


def _in_trace(quote: str, trace: Trace, text: str, where: Address | None) -> Address | None:
    if where is not None and where.field is not None:
        value = value_at(trace.row, where.field)
        told = "" if value is NOTHING else quotable(value)
        return _place(trace, field=where.field) if _holds(told, squeezed(told), quote) else None
    if where is not None and where.steps:
        steps: Iterable[Step] = [step for step in trace.steps if step.index in where.steps]
        return next((_place(trace, (step.index,)) for step in steps if _step_holds(step, quote)), None)
    if not is_redacted(quote) and not _fits(quote, text):
        return None
    for step in trace.steps:
        if _step_holds(step, quote):
            return _place(trace, (step.index,))
    return _place(trace) if _holds(quotable(trace.row), text, quote) else None


def _step_holds(step: Step, quote: str) -> bool:
    return any(_holds(text, squeezed(text), quote) for text in step_texts(step))


def _fits(quote: str, text: str) -> bool:
    return in_order(pieces(quote), text) or in_order(pieces(quote, put_in=True), text)


def _holds(raw: str, text: str, quote: str) -> bool:
    """Whether a text, which is `text` squeezed, has all pieces of a quotation in order."""
    if is_redacted(quote):
        flat = " ".join(hostile.lines(raw).split())
        return all(
            matches(part, flat, known_key())
            for part in (" ".join(cut.split()) for cut in _CUT.split(quote))
            if part
        )
    return _fits(quote, text)

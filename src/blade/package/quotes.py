"""Hold quotations inside sentences against the rollouts of the tasks that the sentence names."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from blade.check.world import World
from blade.ingest.items import quotable
from blade.model import CONTRADICTED, SUPPORTED, Assertion, Trace
from blade.package.predicates import normal
from blade.package.units import SAME, Unit

_CUTS = ("…", "...", "[…]", "[...]")


def with_quotes(read: Sequence[Unit], world: World) -> tuple[Unit, ...]:
    """Units whose quotations were looked up; one that no rollout of the named tasks holds is contradicted."""
    told = _Held(world)
    return tuple(_looked_up(unit, told) for unit in read)


def _looked_up(unit: Unit, told: _Held) -> Unit:
    if unit.kind == "quote" or not unit.quotes or not unit.own:
        return unit
    settled = any(part.why == SAME or part.kind in ("quote", "cell") for part in unit.assertions)
    if settled or unit.verdict == CONTRADICTED:
        return unit
    found = []
    for quote in unit.quotes:
        held = any(told.has(task, quote) for task in unit.own) or told.is_ours(quote)
        verdict, why = (
            (SUPPORTED, "stands there") if held else (CONTRADICTED, "no rollout named here holds it")
        )
        found.append(Assertion(verdict, "quote", unit.line, unit.last_line, unit.text, quote[:300], why=why))
    is_false = any(one.verdict == CONTRADICTED for one in found)
    verdict = CONTRADICTED if is_false else unit.verdict or SUPPORTED
    return replace(unit, assertions=(*unit.assertions, *found), verdict=verdict)


class _Held:
    """The texts of tasks, opened as they are asked for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.texts: dict[str, str] = {}
        self.pages: str | None = None

    def has(self, task: str, quote: str) -> bool:
        if task not in self.texts:
            runs = self.world.rows.runs
            traces = [trace for run in runs for trace in self.world.rows.at(run, task)]
            self.texts[task] = "\n".join(normal(text) for trace in traces for text in _texts(trace))
        return _holds(self.texts[task], quote)

    def is_ours(self, quote: str) -> bool:
        """Whether it is a phrase of the recomputed pages, such as the name of a failure mode."""
        if self.pages is None:
            self.pages = "\n".join(one.text for page in self.world.pages for one in page.statements)
        return normal(quote) in self.pages


def _texts(trace: Trace) -> list[str]:
    told = [quotable(trace.row)]
    for step in trace.steps:
        told += [text for text in (step.text, step.reasoning, step.arguments) if text]
    return told


def _holds(text: str, quote: str) -> bool:
    """Whether a text has all pieces of a quotation; cuts that it marks are left out."""
    for cut in _CUTS:
        quote = quote.replace(cut, "\0")
    pieces = [normal(piece).rstrip(".,;:") for piece in quote.split("\0")]
    return all(piece in text for piece in pieces if piece)

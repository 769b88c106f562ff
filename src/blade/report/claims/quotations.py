"""Find the texts of a report that a page repeats: sentences of its stages, quotations of rollouts."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property

from blade.facts.known import Known
from blade.facts.query import numbers_in, path, running
from blade.model import Evidence, Fact, Report
from blade.prose.slots import Slot
from blade.report.claims.context import Context

MIN_TEXT = 12  # characters of a text that can be recognised
WINDOWS = (
    (22, 22),
    (0, 30),
    (30, 0),
    (0, 16),
    (16, 0),
)  # characters before and after a number that tell its place
LETTERS = 8  # of these, letters


class Texts:
    """The texts that the facts hold, searched as one."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def number(self, slot: Slot, context: Context) -> tuple[str, float] | None:
        """The query and value of a number that stands in a text of the report which the statement repeats."""
        start = len(running(context.text[: slot.start] + "|")) - 1
        text = running(context.text)
        digits = numbers_in(text[start : start + len(slot.text) + 2])
        if not digits:
            return None
        at, value = start + digits[0][0], digits[0][1]
        for shelf in self._shelves(context):
            for before, after in WINDOWS:
                window = text[max(0, at - before) : at + len(slot.text) + after]
                if sum(sign.isalpha() for sign in window) < LETTERS:
                    continue
                for fact, place in shelf.holding(window):
                    if fact.run is not None and fact.run not in context.runs:
                        continue
                    found = numbers_in(running(fact.value))
                    number = bisect_right([start for start, _ in found], place + min(before, at))
                    if number and found[number - 1] == (place + min(before, at), value):
                        return f"number({fact.query}, {number})", value
        return None

    def holding(self, part: str, context: Context) -> Fact | None:
        """A fact whose text holds a part, of the tasks that the statement names first."""
        part = running(part)
        if len(part) < 3:
            return None
        for shelf in self._shelves(context):
            for fact, _ in shelf.holding(part):
                if fact.run is None or fact.run in context.runs:
                    return fact
        return None

    def _shelves(self, context: Context) -> Iterator[_Shelf]:
        tasks = sorted({value for kind, value in context.near | context.far if kind == "task"})
        for run in context.runs[:2]:
            for task in tasks[:6]:
                yield self._of_task(run, task)
        yield self._all

    def _of_task(self, run: str, task: str) -> _Shelf:
        key = (run, task)
        if key not in self._made:
            self._made[key] = _Shelf(self._known.task(run, task))
        return self._made[key]

    @cached_property
    def _made(self) -> dict[tuple[str, str], _Shelf]:
        return {}

    @cached_property
    def _all(self) -> _Shelf:
        return _Shelf(self._known.all)


class _Shelf:
    """Texts in a row, and which fact stands where."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self._starts: list[int] = []
        self._facts: list[Fact] = []
        parts: list[str] = []
        at = 0
        for fact in facts:
            if isinstance(fact.value, str) and len(fact.value) >= MIN_TEXT:
                text = running(fact.value)
                self._starts.append(at)
                self._facts.append(fact)
                parts.append(text)
                at += len(text) + 1
        self._text = "\0".join(parts)

    def holding(self, part: str, most: int = 20) -> Iterator[tuple[Fact, int]]:
        """The facts that hold a part, with where it starts in each."""
        at = self._text.find(part)
        while at >= 0 and most:
            found = bisect_right(self._starts, at) - 1
            yield self._facts[found], at - self._starts[found]
            at, most = self._text.find(part, at + 1), most - 1


class Quotations:
    """The quotations of a report by their first words."""

    FIRST = 24

    def __init__(self, report: Report) -> None:
        self._report = report

    def found(self, context: Context) -> tuple[str, str, Evidence] | None:
        """The query, text and place of what a page quotes, of the tasks that its label names first."""
        quote = running(context.quote or context.label_of)
        near = {value for kind, value in context.near if kind == "task"}
        held = [
            one
            for one in self._first.get(quote[: self.FIRST], [])
            if running(one[1]).startswith(quote.rstrip("…")) and one[2].run in context.runs
        ]
        return min(held, key=lambda one: one[2].task not in near, default=None)

    @cached_property
    def _first(self) -> dict[str, list[tuple[str, str, Evidence]]]:
        found: dict[str, list[tuple[str, str, Evidence]]] = {}
        for stem, evidence in _quoted(self._report):
            quoted = [one for one in evidence if one.quote is not None]
            places = Counter(_where(one) for one in quoted)
            for one in quoted:
                if one.quote is not None:
                    at = dict(zip(_PLACE, _where(one), strict=True))
                    # The place alone finds it, unless two quotations are of one place.
                    at = {name: value for name, value in at.items() if value is not None}
                    more = {"quote": one.quote} if places[_where(one)] > 1 else {}
                    where = path("evidence", "quote", **at, **more)
                    key = running(one.quote)[: self.FIRST]
                    found.setdefault(key, []).append((f"{stem}.{where}", one.quote, one))
        return found


_PLACE = ("run", "task", "repeat", "step", "field")


def _where(one: Evidence) -> tuple[str | int | None, ...]:
    return one.run, one.task, one.repeat, one.step, one.field


def _quoted(report: Report) -> Iterator[tuple[str, tuple[Evidence, ...]]]:
    for failure in report.attributions:
        yield path("attributions", id=failure.id, run=failure.run), failure.evidence
    for mechanism in report.mechanisms:
        yield path("mechanisms", run=mechanism.run, id=mechanism.id), mechanism.evidence
    for signature in report.signatures:
        yield path("signatures", run=signature.run, id=signature.id), signature.evidence
    for contrast in report.contrasts:
        yield path("contrasts", run=contrast.run, id=contrast.id), contrast.evidence
    for parting in report.divergences:
        yield path("divergences", run=parting.run, task=parting.task, repeat=parting.repeat), parting.evidence
    for one in report.recommendations:
        yield path("recommendations", run=one.run, rank=one.rank), one.evidence
    for finding in report.findings:
        yield path("findings", run=finding.run, id=finding.id), finding.evidence
    for flag in report.health:
        yield path("health", run=flag.run, flag=flag.flag, task=flag.task), flag.evidence
    for cause in report.run_causes:
        yield path("run_causes", run=cause.run, cause=cause.cause.value, mode=cause.mode), cause.evidence

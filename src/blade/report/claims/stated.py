"""Turn a statement into claims: numbers, ids, names, quotations, buckets, directions, orderings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from blade.facts.known import Known
from blade.facts.query import path, running
from blade.model import Evidence, Fact
from blade.prose.slots import CODE, NUMBER, QUOTED, RATIO, Slot, slots
from blade.report.claims.binding import Binder, Bound
from blade.report.claims.context import Context
from blade.report.claims.mentions import IS_TASK, places
from blade.report.claims.quotations import Quotations, Texts

VERDICTS = ("improved", "regressed", "equivalent", "inconclusive")
_DIRECTION = re.compile(
    r"\b(?:higher|lower|better|worse|fewer|less|more often|above|below|beyond|improved|regressed|equivalent|"
    r"inconclusive|gains?|gained|loses?|rises?|falls?)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:largest|smallest|first|last|most|least|best|worst|highest|lowest|top|surest)\b", re.IGNORECASE
)
# Numbers of the method: the same in every report, whatever the rows.
METHOD = re.compile(
    r"p above 0\.05|0\.05 or less|above 90%|below 10%|nearest 50%|[Ss]teps count from 0|ratio lies above 1 |"
    r"odds ratio of 0 or|1 − \w|tolerance 1e-9|counts 3 points|responses 1;|suspect from 3|review from 2|"
    r"Repeats: 1 passed, 0 failed|1 − 0\.05\^|range 0 to 1|lists the first 1,000|at 5%, two-sided|"
    r"in 80 of 100|probability of at least 0\.\d+|[Aa] row passes at a reward of 1 or more \(tolerance"
)
_LEVEL = re.compile(r"\s*(?:exact |posterior |one-sided )*(?:interval|bound|limit|posterior|level)")


class Said(NamedTuple):
    """A claim without its id."""

    text: str
    kind: str
    value: float | str | None
    query: str
    cites: tuple[str, ...] = ()


class Stated:
    """What statements claim, by the facts of one report."""

    def __init__(self, known: Known) -> None:
        self._known = known
        self._binder = Binder(known)
        self._texts = Texts(known)
        self._quotations = Quotations(known.report)

    def claims(self, context: Context) -> Iterator[Said]:
        """The claims of one statement, in the order of its words."""
        if context.quote:
            yield self._quote(context)
            return
        found: list[tuple[int, Said]] = []
        before: Bound | None = None
        parts = slots(context.text)
        for at, slot in enumerate(parts, 1):
            if slot.kind == NUMBER:
                said, before = self._number(slot, at, context, before)
                found.append((slot.start, said))
            elif slot.kind == RATIO:
                told, before = self._ratio(slot, at, context, before)
                found += [(slot.start, said) for said in told]
            elif slot.kind == CODE:
                found += [(slot.start, said) for said in self._code(slot, at, context)]
            elif slot.kind == QUOTED:
                found.append((slot.start, self._quoted(slot, at, context)))
        found += [(start, said) for start, said in self._words(context, parts)]
        yield from (said for _, said in sorted(found, key=lambda pair: pair[0]))

    def _number(
        self, slot: Slot, at: int, context: Context, before: Bound | None
    ) -> tuple[Said, Bound | None]:
        kind = "share" if slot.unit == "%" else "number"
        if any(entity[0] == "accuracy" for entity in context.near) and context.column == "measure":
            return Said(context.shown, "name", context.text, _says(context, at)), before
        after = context.text[slot.end : slot.end + 40]
        if slot.unit == "%" and _LEVEL.match(after):
            return Said(context.shown, kind, slot.value, f"{slot.value:g}"), before
        if METHOD.search(context.text[max(0, slot.start - 40) : slot.end + 30]):
            return Said(context.shown, kind, slot.value, f"{slot.value:g}"), before
        if context.column == "term" and context.text.strip() == slot.text:
            fact = self._labelled(slot.text, context)
            if fact is not None and isinstance(fact.value, str):
                return Said(context.shown, "name", fact.value, fact.query), before
        for read in (self._rank, self._step, self._more):
            said = read(slot, context)
            if said is not None:
                return said, before
        told = self._texts.number(slot, context)
        if told is not None:
            return Said(context.shown, kind, told[1], told[0], _cites(context)), before
        bound = self._binder.bound(slot, context, before)
        if bound is None:
            return Said(context.shown, kind, slot.value, _says(context, at), _cites(context)), before
        return self._said(bound, kind, context), bound

    def _said(self, bound: Bound, kind: str, context: Context) -> Said:
        fact = bound.fact
        kind = "count" if fact.kind == "count" and kind != "share" else kind
        kind = "ordering" if fact.subject == "recommendation_rank" else kind
        value = fact.value if not isinstance(fact.value, tuple) else None
        return Said(context.shown, kind, value, fact.query, fact.cites or _cites(context))

    def _rank(self, slot: Slot, context: Context) -> Said | None:
        """The number that stands before a recommendation."""
        if slot.start or context.text[slot.end : slot.end + 1] != "." or slot.digits:
            return None
        for fact in self._known.about(
            ("recommendation", slot.text), context.runs[0] if context.runs else None
        ):
            if fact.subject == "recommendation_rank" and ("recommendation", slot.text) in context.near:
                return Said(context.shown, "ordering", slot.value, fact.query)
        return None

    def _step(self, slot: Slot, context: Context) -> Said | None:
        """The step of the quotation that a statement introduces."""
        if not context.label_of or not context.text[: slot.start].endswith("step "):
            return None
        found = self._quotations.found(context)
        if found is None or found[2].step is None or found[2].step != slot.value:
            return None
        query = f"{found[0].removesuffix('.quote')}.step"
        return Said(context.shown, "number", float(found[2].step), query, _place(found[2]))

    def _more(self, slot: Slot, context: Context) -> Said | None:
        """`and 3 more`: a count without those that stand before it."""
        if not re.match(r" more\b", context.text[slot.end :]):
            return None
        listed = [one for one in slots(context.text[: slot.start]) if one.kind == CODE]
        shown = [one for one in listed if self._address(one.text, context) is not None]
        total = msgspec.structs.replace(slot, value=(slot.value or 0.0) + len(shown))
        bound = self._binder.bound(total, context, None) if shown else None
        if bound is None or bound.fact.kind != "count":
            return None
        query = f"minus({bound.fact.query}, {len(shown)})"
        return Said(context.shown, "count", slot.value, query, _cites(context))

    def _ratio(
        self, slot: Slot, at: int, context: Context, before: Bound | None
    ) -> tuple[list[Said], Bound | None]:
        if re.search(r"\b(?:tasks?|rollouts?|repeat) $", context.text[: slot.start]):
            place = self._address(slot.text, context)
            if place is not None:
                return [place], before
        bound = self._binder.bound(slot, context, before)
        if bound is None:
            return [Said(context.shown, "number", slot.text, _says(context, at), _cites(context))], before
        whole = Slot(NUMBER, slot.text, slot.start, slot.end, slot.of)
        below = self._binder.bound(whole, context, bound)
        found = [self._said(bound, "count", context)]
        if below is not None:
            found.append(self._said(below, "count", context))
        return found, bound

    def _code(self, slot: Slot, at: int, context: Context) -> Iterator[Said]:
        found = [self._address(part, context) for part in places(slot.text)]
        is_told = not slot.text.isdigit() or IS_TASK.search(
            f"{context.column} {context.text[: slot.start].lower()}"
        )
        if found and is_told and all(place is not None for place in found):
            yield from (place for place in found if place is not None)
            return
        fact = self._text(slot.text, context)
        if fact is not None:
            yield Said(context.shown, "name", slot.text, fact.query, fact.cites)
            return
        held = self._texts.holding(slot.text, context)
        query = f"within({held.query}, {json.dumps(slot.text)})" if held else _says(context, at)
        yield Said(context.shown, "name", slot.text, query, _cites(context))

    def _text(self, text: str, context: Context) -> Fact | None:
        """The fact whose value is this text, those of what the statement is about first."""
        found = [fact for fact in self._known.saying(text) if fact.run is None or fact.run in context.runs]
        near = context.near | context.far

        def rank(fact: Fact) -> tuple[int, int, str]:
            unnamed = sum(entity not in near for entity in fact.scope)
            told = any(name in context.row or name in context.lower for name in fact.names)
            return unnamed, 0 if told else 1, fact.query

        return min(found, key=rank, default=None)

    def _address(self, text: str, context: Context) -> Said | None:
        """A task, or one of its repeats."""
        for task, repeat in ((text, None), text.rpartition("/")[::2]):
            keys = [key for key in self._known.keys(task) if key[0] in context.runs]
            if not keys or (repeat is not None and not repeat.isdigit()):
                continue
            run, key = min(keys, key=lambda found: (context.runs.index(found[0]), found[1]))
            stem = path("tasks", run=run, task=key)
            if repeat is None:
                field = "task" if key == task else "task_name"
                return Said(context.shown, "id", text, f"{stem}.{field}", (f"{run}/{key}",))
            result = self._known.result(run, key)
            if result is None or key != task or all(one.repeat != int(repeat) for one in result.repeats):
                return None
            query = f"place({stem}.task, {stem}.{path('repeats', 'repeat', repeat=int(repeat))})"
            return Said(context.shown, "id", text, query, (f"{run}/{key}/{repeat}",))
        return None

    def _quoted(self, slot: Slot, at: int, context: Context) -> Said:
        held = self._texts.holding(slot.text.rstrip("…"), context)
        if held is None or not slot.text.rstrip("…").strip():
            return Said(context.shown, "quote", slot.text, _says(context, at), _cites(context))
        part = slot.text.rstrip("…")
        return Said(
            context.shown, "quote", part, f"within({held.query}, {json.dumps(part)})", _cites(context)
        )

    def _quote(self, context: Context) -> Said:
        found = self._quotations.found(context)
        if found is None:
            return Said(
                context.shown, "quote", running(context.quote)[:200], _says(context, 1), _cites(context)
            )
        query, quote, evidence = found
        return Said(context.shown, "quote", quote, query, _place(evidence))

    def _words(self, context: Context, parts: tuple[Slot, ...]) -> Iterator[tuple[int, Said]]:
        """Buckets, causes, verdicts, directions and orderings, where the statement is about something."""
        text = context.text
        fact = self._labelled(text.strip(), context)
        if fact is not None and isinstance(fact.value, str):
            kind = (
                "bucket"
                if fact.subject == "task_bucket"
                else "direction"
                if "verdict" in fact.subject
                else "label"
            )
            yield 0, Said(context.shown, kind, fact.value, fact.query, fact.cites)
            return
        taken = [(slot.start, slot.end) for slot in parts]
        if not parts or any(entity[0] == "accuracy" for entity in context.near):
            return
        for pattern, kind in ((_DIRECTION, "direction"), (_ORDER, "ordering")):
            for at, hit in enumerate(pattern.finditer(text), 1):
                if any(start <= hit.start() < end for start, end in taken):
                    continue
                verdict = self._labelled(hit[0].lower(), context) if hit[0].lower() in VERDICTS else None
                query = verdict.query if verdict else _says(context, at, kind)
                yield hit.start(), Said(context.shown, kind, hit[0].lower(), query, _cites(context))

    def _labelled(self, text: str, context: Context) -> Fact | None:
        """The bucket, cause, verdict or status that a whole cell states."""
        word = text.split(" ")[0].strip("*.,") if len(text) < 60 else ""
        if not word:
            return None
        tasks = [value for kind, value in sorted(context.near) if kind == "task"]
        found = [
            fact
            for run in context.runs
            for task in tasks[:1]
            for fact in self._known.task(run, task)
            if fact.subject in ("task_bucket", "task_cause") and fact.value == word
        ]
        found += [
            fact
            for fact in self._known.saying(text)
            if fact.scope and fact.kind == "text" and (len(text) > 2 or fact.subject == "term_name")
            and all(entity in context.near | context.far for entity in fact.scope if entity[0] not in _SIDES)
            and fact.subject not in ("setting",)
        ]  # fmt: skip
        return found[0] if found else None


_SIDES = ("baseline", "candidate")


def _says(context: Context, at: int, kind: str = "") -> str:
    more = f", {json.dumps(kind)}" if kind else ""
    return f"says({json.dumps(context.section)}, {context.at}, {at}{more})"


def _cites(context: Context) -> tuple[str, ...]:
    tasks = sorted(value for kind, value in context.near if kind == "task")
    return tuple(f"{context.runs[0]}/{task}" for task in tasks[:8]) if context.runs else ()


def _place(evidence: Evidence) -> tuple[str, ...]:
    repeat = f"/{evidence.repeat}" if evidence.repeat is not None else ""
    return (f"{evidence.run}/{evidence.task}{repeat}",)

"""Turn what a sentence says of a behaviour or a kind of row into assertions, by the facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from blade.check.reader.quantities import Quantity, quantities
from blade.check.reader.verdicts import Place, said
from blade.model import CONTRADICTED, SUPPORTED, Assertion, Fact

_COUNTED = {
    "lost": ("lost", "rows_missing", "failed"),
    "missing": ("rows_missing", "lost", "failed", "missing"),
    "masked": ("masked",),
    "duplicate": ("duplicates", "identical_duplicates"),
    "duplicated": ("duplicates", "identical_duplicates"),
    "errored": ("rows_errored", "flag_errored_scored_zero"),
    "malformed": ("rows_malformed", "unscored"),
    "expected": ("expected_rollouts",),
    "scored": ("scored", "n_rollouts"),
    "unscored": ("unscored",),
}
_ROWS = re.compile(
    rf"\s*(?P<kind>{'|'.join(_COUNTED)})\s+(?:rows?|rollouts?|repeats?|attempts?)\b"
    r"(?!\s+(?:have|has|had|are|were|is|was|without|with|that|which|lack))"
)
_SIDE = re.compile(
    r"\s*(?:of |out of )?(?:the |all )?(?:\d[\d,]* )?(?P<side>failing|failed|passing|passed|successful)"
    r" (?:ones|rollouts?|rows?|attempts?|repeats?)\b"
)
_NAMED = re.compile(r"\b(?:tasks?|rollouts?|repeats?|rows?|steps?|and|,)\s*`?$")  # an id, not an amount
_SHARES = re.compile(
    r"\b(?P<side>infrastructure|data|the model|model|undetermined)\s+(?:accounts? )?(?:for|with)\s*$"
)
_SIDES = {"the model": "model"}


class Scoped:
    """The facts of runs by what they are about, and what sentences say of it."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.facts = [fact for fact in facts if isinstance(fact.value, float)]

    @cached_property
    def _behaviours(self) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for fact in self.facts:
            if fact.subject.startswith("behaviour_") and fact.scope:
                for name in {fact.scope[0][1], fact.scope[0][1].replace("_", " ")}:
                    found.setdefault(name, []).append(fact)
        return found

    @cached_property
    def _counts(self) -> dict[tuple[str | None, str], Fact]:
        return {(fact.run, fact.subject): fact for fact in self.facts if fact.kind == "count"}

    @cached_property
    def _behaviour_pattern(self) -> re.Pattern[str] | None:
        return _names_pattern(self._behaviours)

    def read(self, text: str, place: Place, run: str | None) -> Iterator[Assertion]:
        """The claims of one sentence about one run."""
        if run is None:
            return
        amounts = quantities(text)
        if not amounts:
            return
        lower = text.lower()
        yield from self._fired(lower, amounts, place, run)
        yield from self._rows(lower, amounts, place, run)
        yield from self._lost(lower, amounts, place, run)

    def _fired(self, text: str, amounts: Sequence[Quantity], place: Place, run: str) -> Iterator[Assertion]:
        """`it fires in 11 of 28 failing rollouts`: how often a behaviour is seen on either side."""
        names = {hit[0].replace(" ", "_") for hit in (self._behaviour_pattern or _NOTHING).finditer(text)}
        if len(names) != 1:
            return
        facts = [fact for fact in self._behaviours[names.pop()] if fact.run == run]
        for amount in amounts:
            side = _SIDE.match(text, amount.end)
            if side is None:
                continue
            if _NAMED.search(text[: amount.start]):
                continue
            where = "fail" if side["side"].startswith("fail") else "pass"
            wholes = [fact.value for fact in facts if fact.subject == f"behaviour_of_{where}"]
            if amount.of is not None and amount.of not in wholes:
                continue  # of some of them: those of one task
            subject = f"behaviour_in_{where}"
            if amount.kind in ("rate", "ratio"):
                subject = f"behaviour_{where}_share"
            elif re.search(r"\bof (?:the |all )*$", text[: amount.start]):  # `none of the 60 passing ones`
                subject = f"behaviour_of_{where}"
            meant = [fact for fact in facts if fact.subject == subject]
            yield from _judged(amount, meant, place, "share" if amount.of else "count")

    def _rows(self, text: str, amounts: Sequence[Quantity], place: Place, run: str) -> Iterator[Assertion]:
        """`3 lost rows`: rows of one kind in the whole run."""
        if re.search(r"\b(?:tasks?|repeats?|rollouts?) (?:`|\d)|\bper\b|\beach\b", text):
            return
        for amount in amounts:
            hit = _ROWS.match(text, amount.end) if amount.kind == "count" else None
            if hit is None:
                continue
            facts = [self._counts[run, name] for name in _COUNTED[hit["kind"]] if (run, name) in self._counts]
            yield from _judged(amount, facts, place, "count")

    def _lost(self, text: str, amounts: Sequence[Quantity], place: Place, run: str) -> Iterator[Assertion]:
        """`infrastructure for 12%` of the lost score."""
        if not re.search(r"\blost (?:score|points)\b|\bloss\b|\bpoints lost\b", text):
            return
        total = next((f.value for f in self.facts if f.subject == "lost_total" and f.run == run), None)
        for amount in amounts:
            hit = _SHARES.search(text, 0, amount.start)
            if hit is None or amount.kind != "rate" or not isinstance(total, float) or total <= 0:
                continue
            side = _SIDES.get(hit["side"], hit["side"])
            for fact in self.facts:
                if (
                    fact.subject == "lost_by_side"
                    and fact.run == run
                    and dict(fact.scope).get("side") == side
                ):
                    yield from _judged(amount, [fact], place, "share", of=total)


_NOTHING = re.compile(r"(?!)")


def _names_pattern(names: Iterable[str]) -> re.Pattern[str] | None:
    found = sorted({re.escape(name) for name in names}, key=len, reverse=True)[:2_000]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(found)})(?![\w-])") if found else None


def _judged(
    amount: Quantity, facts: Sequence[Fact], place: Place, kind: str, of: float = 1.0
) -> Iterator[Assertion]:
    """An amount against the facts that it may mean."""
    values = [(fact, fact.value / of) for fact in facts if isinstance(fact.value, float)]
    if not values:
        return
    told = amount.as_rate()[0] if amount.of is not None else amount
    fit = next((fact for fact, value in values if told.fits(value)), None)
    fact, value = (fit or facts[0]), values[0][1]
    shown = f"{value:.1%}" if fact.kind in ("rate", "points") else f"{value:g}"
    yield said(
        place, SUPPORTED if fit else CONTRADICTED, kind, place.text[amount.start : amount.end], amount.start,
        expected=None if fit else f"{shown} ({fact.query})", why="the rows say otherwise" if not fit else "",
        subject=fact.subject, run=fact.run, scope=fact.scope, value=amount.value, query=fact.query,
    )  # fmt: skip

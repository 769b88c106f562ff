"""Turn what is said of a failure mode or a cause into claims: its rollouts, its tasks, its points."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.ground import PROPOSALS, ROLLOUTS, TASKS, Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, CAUSE, MODE, RUN, Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.phrases import COSTS
from blade.check.reader.quantities import COUNT, POINTS, RATE, RATIO
from blade.check.reader.scope import aligned
from blade.model import Assertion

_VERB = (
    r"(?:affects?|affected|occurs?|occurred|appears?|appeared|fires?|fired|shows?\s+up|showed\s+up|"
    r"hits?|happens?|happened|"
    r"(?:is|was|were|are)\s+(?:seen|found|observed|present|detected|flagged)|covers?|covered|"
    r"touch(?:es)?|spans?|strikes?)"
)
_FIRES = shaped(
    rf"(?P<d><D>)\s+(?:\w+ly\s+)?{_VERB}\s+(?:in\s+|on\s+|at\s+)?(?:only\s+|just\s+|exactly\s+|"
    rf"a total of\s+)?(?P<q><Q>)\s+"
    r"(?:of\s+the\s+)?(?P<s><S>)?\s*(?P<n><N>)(?!\s*(?:of|that|which|with|per)\b)"
)
# `in 9 of the 29 failed rollouts (`x`)`, `in 9 of them (`x`)`
_NAMED_BEHIND = shaped(
    r"\bin\s+(?:only\s+|just\s+|exactly\s+)?(?P<q><Q>)\s+(?:of\s+(?:them|these|those)|(?:of\s+the\s+)?(?P<s><S>)?\s*(?P<n><N>))"
    r"\s*\(\s*(?P<d><D>)\s*\)"
)
_MORE = shaped(
    r"(?:\s*,?\s*(?:compared\s+(?:with|to)|against|versus|vs\.?|and|but|"
    r"while)\s+(?:in\s+)?(?:only\s+|just\s+)?)(?P<q><Q>)"
    r"(?=\s*(?:<N>|in\b|for\b|with\b|$|[.,;]))"
)


class Modes:
    """What one sentence says of modes and causes in figures."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence, self.ground = line, line.sentence, line.ground

    def read(self) -> Iterator[Assertion]:
        if (
            self.sentence.of("T")
            or self.sentence.of("L")
            or not (self.sentence.of(MODE) or self.sentence.of(CAUSE))
        ):
            return
        for hit in _FIRES.finditer(self.line.shape):
            yield from self._fires(hit)
        for hit in _NAMED_BEHIND.finditer(self.line.shape):
            yield from self._named_behind(hit)
        for hit in COSTS.finditer(self.line.shape):
            yield from self._costs(hit)

    def _named_behind(self, hit: re.Match[str]) -> Iterator[Assertion]:
        """A count with the rule's own name in brackets behind it; `of them` leaves open of which."""
        mode, amount, run = (
            self.sentence.at[hit.start("d")],
            self.sentence.at[hit.start("q")],
            self.line.run(),
        )
        seen = self.ground.runs[run].behaviours.get(mode.names[0]) if run is not None else None
        unit = self.sentence.at[hit.start("n")].names[0] if hit["n"] else ROLLOUTS
        quantity = amount.amount
        if (
            seen is None
            or run is None
            or unit != ROLLOUTS
            or not self._is_ours(mode, run)
            or quantity is None
        ):
            return
        state = self.line.mention(hit, "s")
        readings = self._counts(run, mode.names[0], unit, state)
        if quantity.kind == RATIO and quantity.of not in (
            seen.of_fail,
            seen.of_pass,
            seen.of_fail + seen.of_pass,
        ):
            return
        if quantity.kind not in (COUNT, RATIO):
            return
        yield self.line.amount(
            amount, "count", readings, "behaviour_rollouts", run, given=(("mode", mode.names[0]),),
            doubt=self.line.part(),
        )  # fmt: skip

    def _fires(self, hit: re.Match[str]) -> Iterator[Assertion]:
        mode, amount = self.sentence.at[hit.start("d")], self.sentence.at[hit.start("q")]
        unit, state = self.sentence.at[hit.start("n")].names[0], self.line.mention(hit, "s")
        amounts = [amount]
        more = _MORE.match(self.line.shape, hit.end())
        if more is not None:
            amounts.append(self.sentence.at[more.start("q")])
        whose = self._whose(amounts)
        for one in amounts:
            if one.start not in whose or one.amount is None or one.amount.kind not in (COUNT,):
                continue
            run = whose[one.start]
            readings = self._counts(run, mode.names[0], unit, state)
            doubt = "" if self._is_ours(mode, run) else PROPOSALS
            yield self.line.amount(
                one,
                "count",
                readings,
                f"behaviour_{unit}",
                run,
                given=(("mode", mode.names[0]),),
                doubt=doubt or self.line.part(),
            )

    def _whose(self, amounts: list[Mention]) -> dict[int, str]:
        run = self.line.run()
        if len(amounts) == 1:
            return {amounts[0].start: run} if run is not None else {}
        named = self.sentence.of(RUN)
        if len(named) == 2:
            return aligned(self.sentence, amounts) or {}
        return {}

    def _counts(self, run: str, mode: str, unit: str, state: Mention | None) -> list[Reading]:
        seen = self.ground.runs[run].behaviours.get(mode)
        readings = list(self.ground.counts(run, unit, (f"mode:{mode}",)))
        if seen is not None:
            told = {ROLLOUTS: [seen.n_rollouts, seen.in_fail], TASKS: [seen.n_tasks]}[unit]
            if state is not None and unit == ROLLOUTS:
                told = [seen.in_fail if state.names[0] == "failed" else seen.in_pass]
                readings = []
            readings = [Reading(float(n), f"{mode}: {n} {unit} in {run}") for n in told] + readings
        return readings

    def _is_ours(self, one: Mention, run: str) -> bool:
        """Whether it is named as the rules here name it, so that their count is meant."""
        if one.kind == CAUSE:
            return "infra" not in one.text.lower() and "task" not in one.text.lower()
        return "_" in one.text and (
            one.names[0] in self.ground.runs[run].behaviours
            or any(each.mode == one.names[0] for each in self.ground.runs[run].causes.values())
        )

    def _costs(self, hit: re.Match[str]) -> Iterator[Assertion]:
        what, amount, run = (
            self.sentence.at[hit.start("c")],
            self.sentence.at[hit.start("q")],
            self.line.run(),
        )
        quantity = amount.amount
        if (
            run is None
            or quantity is None
            or quantity.kind not in (POINTS, RATE)
            or len(self.sentence.of(AMOUNT)) > 2
        ):
            return
        causes = (what.names[0],) if what.kind == CAUSE else ()
        lost, total = (
            self.ground.lost(run, causes, what.names[0] if what.kind == MODE else None),
            self.ground.lost(run),
        )
        if total <= 0:
            return
        name = what.names[0]
        readings = [Reading(lost, f"{name} costs {lost * 100:.1f} points of the score of {run}")]
        if quantity.kind == RATE:
            readings.append(
                Reading(lost / total, f"{name} takes {lost / total:.1%} of the score that {run} lost")
            )
        for unit in (TASKS, ROLLOUTS) if quantity.kind == RATE else ():
            readings += self.ground.shares(
                run, unit, ("failed",), (("cause:" if causes else "mode:") + name,)
            )
        yield self.line.amount(
            amount,
            "share",
            readings,
            "lost",
            run,
            given=(("cause" if causes else "mode", name),),
            as_rate=True,
            doubt="" if self._is_ours(what, run) else PROPOSALS,
        )

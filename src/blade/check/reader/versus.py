"""Turn comparisons of two things into claims: more often than, better than, twice as many."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.ground import PROPOSALS, ROLLOUTS, TASKS, Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import CAUSE, MODE, RUN, SLICE, STATE, Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import POINTS, RATE
from blade.model import Assertion

_THING = (
    r"(?:(?:the|all|its|our|an?)\s+)*(?P<{0}><LDSCR>)(?:['’]s)?(?:[\s-]+(?:<N>|ones?|requests?|"
    r"cases?|items?|changes?|"
    r"category|slice|model|run|errors?|behaviou?rs?))?"
)
_NOT = r"(?P<no>(?:does|do|did|is|are|was|were|has|have)\s*(?:n['’]t|not|no)\s+)?"
_BETTER = (
    r"(?:do(?:es)?|did|perform(?:s|ed)?|is|are|was|were|go(?:es)?|fare[sd]?|scor(?:es?|ed)|<M>|"
    r"come(?:s)?|<S>)?\s*"
    r"(?:(?:much|far|clearly|slightly|noticeably|considerably|significantly|consistently|a lot|"
    r"markedly|<Q>|<Q> points?)"
    r"\s+)*(?:a\s+)?"
)
_UP = (
    r"(?:better|higher|easier|more successful(?:ly)?|outperforms?|outperformed|beats?|more reliabl[ey]|"
    r"stronger|ahead)"
)
_DOWN = (
    r"(?:worse|lower|harder|less successful(?:ly)?|underperforms?|underperformed|trails?|trailed|"
    r"lags?|lagged|"
    r"less reliabl[ey]|weaker|behind|more difficult)"
)
_THAN = r"(?:\s+(?:<M>|than|of|behind|by|in|on|that|at|the|<N>|do|does|<S>|<Q>|points?))*\s+"
_RATED = shaped(
    rf"{_THING.format('a')}\s+{_NOT}{_BETTER}(?:(?P<up>{_UP})|(?P<down>{_DOWN})){_THAN}{_THING.format('b')}"
)
_OFTEN = shaped(
    rf"{_THING.format('a')}\s+{_NOT}(?P<s><S>)\s+(?P<way>more|less)\s+(?:often|frequently|"
    rf"reliably)\s+than\s+"
    rf"{_THING.format('b')}"
)
_MORE = shaped(
    rf"{_THING.format('a')}\s+{_NOT}(?:"
    r"(?P<out>outnumbers?|outnumbered)|"
    r"(?:(?:is|are|was|were)\s+(?P<way1>more|less)\s+(?:common|frequent|widespread|prevalent|"
    r"numerous)\s+than)|"
    r"(?:(?:occurs?|occurred|appears?|appeared|shows?\s+up|showed\s+up|fires?|fired|happens?|"
    r"happened|arises?|hits?|"
    r"affects?|affected|was\s+seen|is\s+seen|strikes?)\s+(?:in\s+)?(?P<way2>more|fewer|less)\s+"
    r"(?P<n><N>|often|frequently)\s+than)|"
    r"(?:(?:costs?|cost|loses?|lost)\s+(?P<way3>more|less|fewer)\s+(?:points\s+|<M>\s+)?than))"
    rf"\s+(?:in\s+)?{_THING.format('b')}"
)
_HAS = shaped(
    r"(?P<a><R>)\s+(?:has|have|had|produces?|produced|shows?|records?|recorded|sees?|makes?|makes?|<S>)\s+"
    r"(?P<way>more|fewer|less)\s+(?P<s><S>)?\s*(?P<n><N>)?\s*(?:than)\s+(?P<b><R>)"
)
_AS_MANY = shaped(
    r"(?P<times>twice|double|three times|four times|five times|<Q> times|half)\s+as\s+many\s+(?P<n><N>)\s+"
    r"(?P<a><S>)\s+as\s+(?P<b><S>)"
)
_THAN_STATE = shaped(
    r"\b(?P<way>more|fewer)\s+(?P<n><N>)\s+(?:are\s+|were\s+)?(?P<a><S>)\s+than\s+(?:are\s+)?(?:(?P<b><S>)|(?P<not>not\b))"
)
_TIMES = {"twice": 2.0, "double": 2.0, "three times": 3.0, "four times": 4.0, "five times": 5.0, "half": 0.5}


class Versus:
    """What one sentence says of one thing against another."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence, self.ground = line, line.sentence, line.ground

    def read(self) -> Iterator[Assertion]:
        taken: set[int] = set()
        for pattern, told in (
            (_OFTEN, self._often),
            (_RATED, self._rated),
            (_MORE, self._more),
            (_HAS, self._has),
            (_AS_MANY, self._as_many),
            (_THAN_STATE, self._than),
        ):
            for hit in pattern.finditer(self.line.shape):
                if not taken & set(range(*hit.span())):
                    found = list(told(hit))
                    if found:
                        taken |= set(range(*hit.span()))
                    yield from found

    # --- slices and runs, by their rates -------------------------------------------------------------

    def _rated(self, hit: re.Match[str]) -> Iterator[Assertion]:
        a, b = self._ends(hit)
        metrics = self.sentence.of("M")
        other = metrics and metrics[0].names[0] not in ("pass_at_1", "pass_rate", "score")
        if a.kind != SLICE or b.kind != SLICE or other or len(self.sentence.of(SLICE)) != 2:
            return  # of runs the directions tell
        yield from self._by_rate(hit, a, b, 1 if hit["up"] else -1)

    def _often(self, hit: re.Match[str]) -> Iterator[Assertion]:
        a, b = self._ends(hit)
        state = self.line.mention(hit, "s")
        way = _ways(state) * (1 if hit["way"].lower() == "more" else -1)
        if not way:
            return
        if a.kind == b.kind == SLICE and len(self.sentence.of(SLICE)) == 2:
            yield from self._by_rate(hit, a, b, way)
        elif a.kind == b.kind == RUN:
            yield from self._by_runs(hit, a, b, way)

    def _by_rate(self, hit: re.Match[str], a: Mention, b: Mention, way: int) -> Iterator[Assertion]:
        run = self.line.run()
        if run is None or a.names[0] != b.names[0] or a.names == b.names:
            return
        ones, others = (self.ground.of_slice(run, *each.names) for each in (a, b))
        if not ones or not others:
            return
        gap = ones[0].value - others[0].value
        unequal = len({task.n for task in self.ground.runs[run].tasks.values()}) > 1
        holds = (gap * way > 0) != bool(hit.groupdict().get("no"))
        if abs(gap) < (0.03 if unequal else 1e-9):
            holds_or: bool | None = None
        else:
            holds_or = holds
        words = f"{'='.join(a.names)} {ones[0].value:.1%}, {'='.join(b.names)} {others[0].value:.1%} in {run}"
        yield self.line.claim(
            "ordering",
            self.line.span(*hit.span()),
            holds_or,
            words,
            self.line.beside(*hit.span(), _KNOWN),
            subject="slice_rate",
            run=run,
            value="higher" if way > 0 else "lower",
        )
        yield from self._gap(hit, abs(gap), words, run)

    def _gap(self, hit: re.Match[str], gap: float, words: str, run: str) -> Iterator[Assertion]:
        """`by 22 points`, behind it or in it."""
        amounts = [one for one in self.sentence.of("Q") if one.amount and one.amount.kind in (POINTS, RATE)]
        if len(amounts) == 1 and amounts[0].amount and amounts[0].amount.kind == POINTS:
            near = [Reading(gap + step / 1000, f"{gap * 100:.1f} points: {words}") for step in range(-5, 6)]
            yield self.line.amount(amounts[0], "metric", near, "delta", run)

    def _by_runs(self, hit: re.Match[str], a: Mention, b: Mention, way: int) -> Iterator[Assertion]:
        if len(a.names) != 1 or len(b.names) != 1 or a.names == b.names or self.line.sentence.of(SLICE):
            return
        signs = set()
        for unit in (TASKS, ROLLOUTS):
            ones, others = (self.ground.shares(each.names[0], unit, (), ("passed",)) for each in (a, b))
            signs |= {_sign(one.value - other.value) for one, other in zip(ones, others, strict=False)}
        holds = (way in signs) != bool(hit.groupdict().get("no"))
        clear = len(signs) == 1
        first = [self.ground.shares(each.names[0], ROLLOUTS, (), ("passed",)) for each in (a, b)]
        words = "; ".join(each[0].words for each in first if each)
        yield self.line.claim(
            "ordering",
            self.line.span(*hit.span()),
            holds if clear or holds else None,
            words,
            self.line.beside(*hit.span(), _KNOWN),
            subject="passed",
            value="more" if way > 0 else "fewer",
        )

    # --- modes, outcomes and runs, by their counts ---------------------------------------------------

    def _more(self, hit: re.Match[str]) -> Iterator[Assertion]:
        a, b = self._ends(hit)
        run = self.line.run()
        if run is None or SLICE in (a.kind, b.kind) or RUN in (a.kind, b.kind) or a.names == b.names:
            return
        word = hit["way1"] or hit["way2"] or hit["way3"] or "more"
        way = 1 if word.lower() == "more" else -1
        unit = self.line.mention(hit, "n")
        lost = bool(hit["way3"])
        tallies = self._tallies(run, a, b, unit.names[0] if unit else "", lost)
        signs = {_sign(one - other) for one, other in tallies}
        if not signs:
            return
        doubt = self._unsettled(run, a, b) or self.line.beside(*hit.span(), _KNOWN)
        words = f"{a.names[0]} {tallies[0][0]:g}, {b.names[0]} {tallies[0][1]:g} in {run}"
        holds = (way in signs) != bool(hit["no"])
        yield self.line.claim(
            "ordering",
            self.line.span(*hit.span()),
            holds if holds or len(signs) == 1 else None,
            words,
            doubt,
            subject="lost" if lost else "count",
            run=run,
            value=word.lower(),
        )
        if hit["out"] and a.kind == b.kind == STATE:
            yield from self._ratio(hit, tallies, words, run)

    def _ratio(
        self, hit: re.Match[str], tallies: list[tuple[float, float]], words: str, run: str
    ) -> Iterator[Assertion]:
        """`outnumber them two to one`, `by 3:1`."""
        told = shaped(
            r"(?:\s+\w+){0,2}\s+(?:by\s+)?(?:about\s+|roughly\s+|nearly\s+|"
            r"almost\s+)*(?P<q><Q>)(?:\s+to\s+|:)"
            r"(?:one|1)\b"
        ).match(self.line.shape, hit.end())
        amount = self.sentence.at.get(told.start("q")) if told else None
        if amount is None or amount.amount is None or amount.amount.high is not None:
            return
        value = amount.amount.value
        fits = any(other and 0.75 <= one / other / value <= 1.3 for one, other in tallies if value)
        yield self.line.claim("ordering", (amount.start, amount.text), fits, words, subject="ratio", run=run)

    def _has(self, hit: re.Match[str]) -> Iterator[Assertion]:
        a, b = self._ends(hit)
        state = self.line.mention(hit, "s") or next((one for one in self.sentence.of(STATE)), None)
        if state is None or len(self.sentence.of(STATE)) != 1 or (not hit["s"] and not hit["n"]):
            return
        way = _ways(state) * (1 if hit["way"].lower() == "more" else -1)
        if way:
            yield from self._by_runs(hit, a, b, way)

    def _tallies(self, run: str, a: Mention, b: Mention, unit: str, lost: bool) -> list[tuple[float, float]]:
        """How often each is met, in every way of counting that the sentence allows."""
        units = (unit,) if unit in (TASKS, ROLLOUTS) else (ROLLOUTS, TASKS)
        if lost:
            each = [
                self.ground.lost(
                    run,
                    (one.names[0],) if one.kind == CAUSE else (),
                    one.names[0] if one.kind == MODE else None,
                )
                for one in (a, b)
            ]
            return [(each[0], each[1])] if {a.kind, b.kind} <= {CAUSE, MODE} else []
        found = []
        for each_unit in units:
            ones, others = (self.ground.counts(run, each_unit, (_state(one),)) for one in (a, b))
            found += [(one.value, other.value) for one in ones for other in others]
            if a.kind == b.kind == STATE:
                return [(ones[0].value, others[0].value)] if ones and others else []
        return found

    def _unsettled(self, run: str, a: Mention, b: Mention) -> str:
        known = self.ground.runs[run].behaviours
        if any(one.kind == CAUSE or (one.kind == MODE and one.names[0] not in known) for one in (a, b)):
            return PROPOSALS
        return ""

    # --- outcomes ------------------------------------------------------------------------------------

    def _as_many(self, hit: re.Match[str]) -> Iterator[Assertion]:
        given = hit["times"].lower()
        named = next(
            (one for at, one in self.sentence.at.items() if hit.start("times") <= at < hit.end("times")), None
        )
        times = _TIMES.get(given) or (named.amount.value if named and named.amount else 0.0)
        counted = self._counted(hit)
        if counted is None or not times:
            return
        (one, other), words, run = counted
        ratio = one / other if other else float("inf")
        yield self.line.claim(
            "ordering",
            self.line.span(*hit.span()),
            times * 0.8 <= ratio <= times * 1.25,
            words,
            self.line.part() or self.line.beside(*hit.span(), _KNOWN),
            subject="ratio",
            run=run,
            value=given,
        )

    def _than(self, hit: re.Match[str]) -> Iterator[Assertion]:
        counted = self._counted(hit)
        if counted is None:
            return
        (one, other), words, run = counted
        way = 1 if hit["way"].lower() == "more" else -1
        yield self.line.claim(
            "ordering",
            self.line.span(*hit.span()),
            (one - other) * way > 0,
            words,
            self.line.part() or self.line.beside(*hit.span(), _KNOWN),
            subject="count",
            run=run,
            value=hit["way"],
        )

    def _counted(self, hit: re.Match[str]) -> tuple[tuple[float, float], str, str] | None:
        run = self.line.run()
        a, unit = self.sentence.at[hit.start("a")].names, self.sentence.at[hit.start("n")].names[0]
        if hit.groupdict().get("not"):
            b = {"passed": ("failed",), "solved": ("failed",), "failed": ("passed",)}.get(a[0], a)
        else:
            b = self.sentence.at[hit.start("b")].names
        if run is None or a == b:
            return None
        ones, others = (self.ground.counts(run, unit, each) for each in (a, b))
        if not ones or not others:
            return None
        is_single = self.ground.runs[run].run.coverage.repeats == 1
        if unit == TASKS and not is_single and not {a[0], b[0]} <= {"always", "sometimes", "never"}:
            return None  # a task that passes sometimes is counted here and there
        return (ones[0].value, others[0].value), f"{ones[0].words}, {others[0].words}", run

    def _ends(self, hit: re.Match[str]) -> tuple[Mention, Mention]:
        return self.sentence.at[hit.start("a")], self.sentence.at[hit.start("b")]


_KNOWN = frozenset(
    "often much far clearly slightly consistently frequently points categories agent does".split()
)


def _ways(state: Mention | None) -> int:
    if state is None:
        return 0
    return {"passed": 1, "solved": 1, "failed": -1}.get(state.names[0], 0)


def _state(one: Mention) -> str:
    return {CAUSE: "cause:", MODE: "mode:", STATE: ""}[one.kind] + one.names[0]


def _sign(value: float) -> int:
    return 0 if abs(value) < 1e-9 else 1 if value > 0 else -1

"""Turn how often a task is said to have passed into claims: once, 3 of 4, in no repeat, the only one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.ground import TASKS
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, TASK, UNIT
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT, RATIO
from blade.model import Assertion

_OFTEN = {"once": 1, "twice": 2, "thrice": 3}
_TIMES = shaped(
    r"(?P<t><T>)\s+(?:was\s+|is\s+|has\s+|have\s+|were\s+|been\s+)*(?P<s><S>)\s+(?:it\s+)?"
    r"(?P<least>at least\s+|more than\s+)?(?:only\s+|just\s+|exactly\s+)?"
    r"(?:(?P<often>once|twice|thrice)|(?P<q><Q>)\s+times?)"
    r"(?=\s*(?:$|[.,;:)(]|(?:out\s+)?of\b|in\s+<Q>|and\b|but\b|in\s+(?:this|the|that)\s+run\b|here\b|"
    r"overall\b))"
)
_RATIO = shaped(
    r"(?P<t><T>)(?:\s+(?:was|is|has|were|been)\b)?(?:\s*[:(]\s*|\s+)(?:(?P<s><S>)|(?P<verb>went|goes|"
    r"scored|scores|got|"
    r"gets|manages|managed|achieves|achieved|reaches|reached|sits at|is at|stands at))?\s*"
    r"(?:only\s+|just\s+|in\s+|on\s+|exactly\s+)*(?P<q><Q>)(?!\s*(?:<S>|<M>|points|tokens|turns|"
    r"steps|tool|of\b))"
)
_NO_RUN = shaped(
    r"(?:\b(?:in|at|on|during)\s+(?:no|none of (?:its|the|their))\s+(?:\w+\s+)?(?:run|runs|point|"
    r"time|<N>)|\bnot once|\bnever)"
    r"\s+(?:did|does|do|has|have|was|is|were)\s+(?P<t><T>)\s+(?:get\s+|been\s+)?(?P<s><S>)"
    r"|\b(?:no|not one|not a single|none of the)\s+(?:<N>|run)\s+(?:of|for|on|at|in)\s+(?P<t2><T>)\s+"
    r"(?:ever\s+|is\s+|was\s+|are\s+|were\s+)*(?P<s2><S>)(?=\s*(?:$|[.,;:)(]))"
)
_SOLE = shaped(
    r"(?P<t><T>)\s+(?:are|is|were|was)\s+(?P<no>not\s+)?the\s+only\s+(?:<Q>\s+)?(?:ones?|"
    r"<N>)\s+(?:that\s+|which\s+|to\s+)?"
    r"(?:are\s+|is\s+|were\s+|was\s+|be\s+)*(?P<s><S>)(?=\s*(?:$|[.,;:)(]|in\s+(?:this|the)\s+run\b))"
)


class Tries:
    """What one sentence says of how often tasks passed."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence, self.ground = line, line.sentence, line.ground

    def read(self) -> Iterator[Assertion]:
        run = self.line.run()
        if run is None or not self.sentence.of(TASK):
            return
        for hit in _TIMES.finditer(self.line.shape):
            yield from self._times(hit, run)
        for hit in _RATIO.finditer(self.line.shape):
            yield from self._ratio(hit, run)
        for hit in _NO_RUN.finditer(self.line.shape):
            yield from self._in_no(hit, run)
        for hit in _SOLE.finditer(self.line.shape):
            yield from self._sole(hit, run)

    def _times(self, hit: re.Match[str], run: str) -> Iterator[Assertion]:
        task, state = self.sentence.at[hit.start("t")], self.sentence.at[hit.start("s")]
        amount = self.line.mention(hit, "q")
        times = _OFTEN.get((hit["often"] or "").lower())
        if times is None and amount is not None and amount.amount is not None and amount.amount.kind == COUNT:
            times = int(amount.amount.value) if not amount.amount.hedge else None
        if (
            times is None
            or hit["least"]
            or len(task.names) != 1
            or state.names[0] not in ("passed", "solved", "failed")
        ):
            return
        fits, told = self._fits(task.names[0], run, state.names[0], times)
        if told:
            of = self._whole(hit, task.names[0], run)
            yield self.line.claim(
                "count",
                self.line.span(*hit.span()),
                (fits and of) if of else None,  # of another number of tries: a proportion
                told,
                self._some(hit),
                subject=state.names[0],
                run=run,
                given=(("task", task.names[0]),),
                value=str(times),
            )

    def _some(self, hit: re.Match[str]) -> str:
        """`in the first two repeats task 2 passed once`: what stands before it may leave some out."""
        before = [
            one for at, one in self.sentence.at.items() if at < hit.start() and one.kind in (AMOUNT, UNIT)
        ]
        return "it may be said of some repeats" if before else ""

    def _whole(self, hit: re.Match[str], key: str, run: str) -> bool:
        """`once out of 4 tries`: as many as there are."""
        told = shaped(r"\s*(?:out\s+)?(?:of|in)\s+(?:its\s+|the\s+|all\s+)?(?P<q><Q>)").match(
            self.line.shape, hit.end()
        )
        amount = self.sentence.at.get(told.start("q")) if told else None
        if amount is None or amount.amount is None:
            return True
        return amount.amount.value in self._sizes(key, run)

    def _sizes(self, key: str, run: str) -> set[float]:
        return {float(self.ground.runs[run].tasks[key].n), *self.ground.wholes(run, "rollouts", (), key)}

    def _ratio(self, hit: re.Match[str], run: str) -> Iterator[Assertion]:
        task, state = self.sentence.at[hit.start("t")], self.line.mention(hit, "s")
        amount = self.sentence.at[hit.start("q")]
        quantity = amount.amount
        if quantity is None or quantity.kind != RATIO or len(task.names) != 1 or quantity.hedge:
            return
        key = task.names[0]
        if key not in self.ground.runs[run].tasks or len(self.sentence.of(AMOUNT)) > 2:
            return
        what = state.names[0] if state is not None else "passed"
        if what not in ("passed", "solved", "failed"):
            return
        fits, told = self._fits(key, run, what, int(quantity.value))
        other, _ = self._fits(key, run, "failed", int(quantity.value))
        holds: bool | None = fits and quantity.of in self._sizes(key, run)
        if not holds and state is None and not hit["verb"] and other:
            holds = None  # the failures may be meant
        if told:
            yield self.line.claim(
                "count",
                (amount.start, amount.text),
                holds,
                told,
                self._some(hit),
                subject=what,
                run=run,
                given=(("task", key),),
                value=quantity.text,
            )

    def _fits(self, key: str, run: str, state: str, times: int) -> tuple[bool, str]:
        if not all(one in self.ground.runs[run].tasks for one in self.line.reader.either(key)):
            return False, ""
        readings = [
            one
            for each in self.line.reader.either(key)
            for one in self.ground.counts(run, "rollouts", (state,), each)
        ]
        return any(one.value == times for one in readings), readings[0].words if readings else ""

    def _in_no(self, hit: re.Match[str], run: str) -> Iterator[Assertion]:
        of, did = ("t", "s") if hit["t"] else ("t2", "s2")
        task, state = self.sentence.at[hit.start(of)], self.sentence.at[hit.start(did)]
        wanted = {"passed": "never", "solved": "never", "failed": "always"}.get(state.names[0])
        for key in task.names:
            known = self.ground.runs[run].tasks.get(key)
            if wanted and known is not None and known.bucket in ("always", "sometimes", "never"):
                yield self.line.claim(
                    "bucket",
                    self.line.span(*hit.span()),
                    known.bucket == wanted,
                    f"task {key} is {known.bucket} ({known.passed} of {known.n} passed) in {run}",
                    subject=wanted,
                    run=run,
                    given=(("task", key),),
                    value=wanted,
                )

    def _sole(self, hit: re.Match[str], run: str) -> Iterator[Assertion]:
        task, state = self.sentence.at[hit.start("t")], self.sentence.at[hit.start("s")]
        sets = self.ground.runs[run].states(state.names[0], TASKS)
        if not sets or state.names[0] not in ("always", "sometimes", "never", "passed", "failed", "solved"):
            return
        named = frozenset(task.names)
        holds = any(each == named for each in sets) != bool(hit["no"])
        some = ", ".join(sorted(map(str, sets[0]))[:8])
        yield self.line.claim(
            "bucket",
            self.line.span(*hit.span()),
            holds,
            f"{state.names[0]} in {run}: {some or 'no task'}",
            subject=state.names[0],
            run=run,
            value="only",
        )

"""Turn what is said of a part of a run into claims: a bucket's rollouts, tasks solved so often."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.ground import ROLLOUTS, TASKS, Keys, Reading
from blade.check.reader.lines import Line
from blade.check.reader.mentions import Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import COUNT, RATE, RATIO
from blade.model import Assertion

_BUCKET = shaped(
    r"(?:^|[.,;:]\s+)\W*(?:the\s+|all\s+|these\s+)*(?:<Q>\s+)?(?P<b><S>)[\s-]+(?P<t><N>)\s+(?:only\s+|still\s+)?"
    r"(?P<s><S>)\s+(?:only\s+|just\s+|in\s+|on\s+)*(?P<q><Q>)(?:\s+of)?(?:\s+(?:the|their|all|its))?\s+(?P<n><N>)"
    r"(?:\s*,?\s*\(?(?:i\.e\.|or)?\s*,?\s*(?P<again><Q>)\)?)?(?=\s*(?:$|[.;]))"
)
_SO_OFTEN = shaped(r"(?P<s><S>)\s+(?P<often><Q>)\s*\(\s*(?P<q><Q>)\s*\)")
_PASS, _FAIL = ("passed", "solved"), ("failed",)


class Portions:
    """What one sentence says of a part of one run."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence, self.ground = line, line.sentence, line.ground

    def read(self) -> Iterator[Assertion]:
        run = self.line.run()
        if run is None or any(self.sentence.of(kind) for kind in "TALD"):
            return
        for hit in _BUCKET.finditer(self.line.shape):
            yield from self._bucket(hit, run)
        for hit in _SO_OFTEN.finditer(self.line.shape):
            yield from self._so_often(hit, run)

    def _bucket(self, hit: re.Match[str], run: str) -> Iterator[Assertion]:
        """`the 26 flaky tasks pass 44 of 104 rollouts, i.e. 42.3%`."""
        bucket, state = (self.sentence.at[hit.start(name)].names[0] for name in ("b", "s"))
        units = [self.sentence.at[hit.start(name)].names[0] for name in ("t", "n")]
        if units != [TASKS, ROLLOUTS] or state not in (*_PASS, *_FAIL):
            return
        known = self.ground.runs[run]
        rows = known.states(state, ROLLOUTS)
        pairs: list[tuple[Keys, Keys]] = []
        for tasks in known.states(bucket, TASKS):
            for every in known.universe(ROLLOUTS):
                whole = frozenset(key for key in every if isinstance(key, tuple) and key[0] in tasks)
                pairs += [(whole & each, whole) for each in rows]
        doubt = "" if bucket in ("always", "sometimes", "never") else "the state may be meant loosely"
        for name in ("q", "again"):
            amount = self.line.mention(hit, name)
            if amount is not None:
                yield from self._portion(
                    amount, pairs, f"rollouts of {bucket} tasks {state} in {run}", run, doubt
                )

    def _portion(
        self, amount: Mention, pairs: list[tuple[Keys, Keys]], words: str, run: str, doubt: str
    ) -> Iterator[Assertion]:
        quantity = amount.amount
        if quantity is None or quantity.kind not in (RATIO, RATE):
            return
        told = [(len(some), len(whole)) for some, whole in pairs if whole]
        if quantity.kind == RATIO:
            fitting = [pair for pair in told if pair[1] == quantity.of]
            doubt = doubt or ("" if fitting else "it may be another part")
            told = fitting or told
        is_rate = quantity.kind == RATE
        readings = [Reading(n / of if is_rate else float(n), f"{n} of {of} {words}") for n, of in told]
        if quantity.kind == RATIO and doubt and not any(pair[1] == quantity.of for pair in told):
            readings = []
        yield self.line.amount(
            amount, "count", readings, "part_rollouts", run, as_rate=is_rate, doubt=doubt or self.line.part()
        )

    def _so_often(self, hit: re.Match[str], run: str) -> Iterator[Assertion]:
        """`tasks solved 4/4 (10)`: how many passed as often as that."""
        often, amount = self.sentence.at[hit.start("often")].amount, self.sentence.at[hit.start("q")]
        state = self.sentence.at[hit.start("s")].names[0]
        units = {one.names[0] for one in self.sentence.of("N")}
        if often is None or amount.amount is None or amount.amount.kind != COUNT or often.kind != RATIO:
            return
        if units != {TASKS} or state not in (*_PASS, *_FAIL) or often.of != self._repeats(run):
            return
        tasks = self.ground.runs[run].tasks.values()
        wanted = often.value if state in _PASS else often.of - often.value
        n = sum(one.passed == wanted and one.n == often.of for one in tasks)
        told = [Reading(float(n), f"{n} tasks {state} {often.text} in {run}")]
        yield self.line.amount(amount, "count", told, "tasks_so_often", run, doubt=self.line.part())

    def _repeats(self, run: str) -> float:
        return float(self.ground.runs[run].run.coverage.repeats)

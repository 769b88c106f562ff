"""Turn stated intervals of a measure into claims: ours, or one that another honest method may give."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from blade.check.reader.ground import ROLLOUTS, TASKS
from blade.check.reader.lines import Line
from blade.check.reader.mentions import measures_in
from blade.model import Assertion

_END = r"(?P<{0}>[01]?\.\d+|\d{{1,3}}(?:\.\d+)?)\s?(?P<{0}_unit>%|percent\b)?"
_STATED = re.compile(
    r"(?P<level>9[059](?:\.\d)?)\s?%\s?(?:CI\b|C\.I\.|confidence interval\b|(?:credible |"
    r"bootstrap )?interval\b|confidence\b)"
    r"(?:[\s:=,(\[]|\b(?:of|for|is|was|runs?|ranges?|from|between|spans?|goes|the|pass[@^]\d+|"
    r"pass rate|accuracy|score|"
    r"overall|mean reward)\b)*" + _END.format("low") + r"\s?(?:,|to|–|—|-|;|and)\s?" + _END.format("high"),
    re.IGNORECASE,
)
_SOLVED = re.compile(r"\b(?:right|correct(?:ly)?|pass(?:es|ed)?|solve[sd]?)\b", re.IGNORECASE)
_CHANGE = re.compile(
    r"95\s?%\s?(?:CI|confidence interval|interval)\b[^.;\d]{0,40}"
    r"\b(?:change|difference|gain|improvement|delta|effect)\b[^.;\d+−-]{0,50}"
    r"(?P<low>[-+−]?\d+(?:\.\d+)?)\s?(?:points?|pp|%)?\s?(?:to|,|–|and)\s?(?P<high>[-+−]?\d+(?:\.\d+)?)"
    r"\s?(?:points?|pp)\b",
    re.IGNORECASE,
)
_NARROWEST, _WIDEST = 0.75, 1.4  # of the half-widths that honest methods give


class Bounds:
    """The intervals that one sentence states."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence = line, line.sentence

    def read(self) -> Iterator[Assertion]:
        yield from self._of_change()
        run = self.line.run()
        hits = list(_STATED.finditer(self.sentence.text))
        metrics = measures_in(self.sentence.text)
        if not metrics and len(hits) == 1 and _SOLVED.search(self.sentence.text[: hits[0].start()]):
            metrics = {("pass_at_1", "")}
        if (
            run is None
            or len(hits) != 1
            or len(metrics) != 1
            or any(self.sentence.of(kind) for kind in "TALDC")
        ):
            return
        if self.line.part():
            return
        name, k = next(iter(metrics))
        yield from self._held(hits[0], run, name, int(k) if k else None)

    def _of_change(self) -> Iterator[Assertion]:
        """`the 95% interval of the change runs from +13.6 to +46.4 points`, of the one comparison."""
        told = self.line.ground.report.comparisons
        hit = _CHANGE.search(self.sentence.text)
        if hit is None or len(told) != 1 or any(self.sentence.of(kind) for kind in "TALDC"):
            return
        low, high = (float(hit[name].replace("−", "-")) / 100 for name in ("low", "high"))
        slack = 0.5 * 10.0 ** -max(_digits(hit["low"]), _digits(hit["high"])) / 100 + 1e-9
        ends = [
            (one.low, one.high) for one in told[0].tests
            if one.low is not None and one.high is not None and "equivalence" not in one.name
        ]  # fmt: skip
        if not ends:
            return
        sides = [ends, [(-b, -a) for a, b in ends]]
        fits = [(abs(low - a) <= slack, abs(high - b) <= slack) for side in sides for a, b in side]
        widest = max(b - a for a, b in ends)
        # one end as we have it and the other far off is no other method
        is_odd = any(a != b for a, b in fits) and all(
            abs((high - low) - (b - a)) > 0.2 * widest for a, b in ends
        )
        holds = True if any(all(each) for each in fits) else False if is_odd else None
        words = "; ".join(f"{a * 100:+.1f} to {b * 100:+.1f} points" for a, b in dict.fromkeys(ends))
        yield self.line.claim(
            "interval", (hit.start("low"), hit.string[hit.start("low") : hit.end()]), holds, words,
            "another method may give it" if holds is None else "", subject="delta",
        )  # fmt: skip

    def _held(self, hit: re.Match[str], run: str, name: str, k: int | None) -> Iterator[Assertion]:
        ground = self.line.ground.runs[run]
        key = ("pass_at_1", None) if name in ("pass_rate", "score", "pass_at_1") else (name, k)
        measure = ground.measures.get(key)
        if measure is None or measure.value is None or measure.low is None or measure.high is None:
            return
        scale = 100 if hit["high_unit"] or float(hit["high"]) > 1 else 1
        low, high = float(hit["low"]) / scale, float(hit["high"]) / scale
        slack = 0.5 * 10.0 ** -max(_digits(hit["low"]), _digits(hit["high"])) / scale + 1e-9
        is_ours = (
            hit["level"] == "95" and abs(low - measure.low) <= slack and abs(high - measure.high) <= slack
        )
        value = float(measure.value)
        z = {"90": 1.645, "95": 1.96, "99": 2.576}.get(hit["level"].partition(".")[0], 1.96)
        spread = math.sqrt(max(value * (1 - value), 0.0))
        sizes = [n for unit in (TASKS, ROLLOUTS) for n in self.line.ground.wholes(run, unit, ()) if n]
        halves = [z * spread / math.sqrt(n) for n in sizes] + [(measure.high - measure.low) / 2 * z / 1.96]
        half = (high - low) / 2
        is_odd = half < _NARROWEST * min(halves) - slack or half > _WIDEST * max(halves) + slack
        far = min(abs(one.value - (low + high) / 2) for one in self.line.ground.rates(run, name, k)) > max(
            halves
        )
        holds = True if is_ours else False if is_odd or far else None
        words = f"{name} of {run}: {value:.1%}, 95% interval {measure.low:.1%} to {measure.high:.1%}"
        yield self.line.claim(
            "interval",
            (hit.start("low"), hit.string[hit.start("low") : hit.end()]),
            holds,
            words,
            "another method may give it" if holds is None else "",
            subject=name,
            run=run,
        )


def _digits(text: str) -> int:
    return len(text.partition(".")[2])

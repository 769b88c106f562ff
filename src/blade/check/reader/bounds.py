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
_NARROWEST, _WIDEST = 0.75, 1.4  # of the half-widths that honest methods give


class Bounds:
    """The intervals that one sentence states."""

    def __init__(self, line: Line) -> None:
        self.line, self.sentence = line, line.sentence

    def read(self) -> Iterator[Assertion]:
        run = self.line.run()
        hits = list(_STATED.finditer(self.sentence.text))
        metrics = measures_in(self.sentence.text)
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

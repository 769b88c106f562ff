"""Find what rules found behind sentences of single rollouts, lost points and expected gains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from blade.model import SUPPORTED, UNVERIFIABLE, Assertion, Report
from blade.package.judge.plainly import ABSENT_WORDS
from blade.package.judge.units import Unit
from blade.prose.slots import NUMBER, agrees


def with_findings(read: Sequence[Unit], report: Report) -> tuple[Unit, ...]:
    """Units that readers of numbers leave open, supported where a rule found what they say."""
    return tuple(_found(unit, report) for unit in read)


def _found(unit: Unit, report: Report) -> Unit:
    if unit.kind != "sentence" or unit.verdict not in (UNVERIFIABLE, None) or unit.denied or unit.foreign:
        return unit
    if any(one.verdict == UNVERIFIABLE and one.kind in ("label", "blame") for one in unit.assertions):
        return unit
    for kind, found in (*_absent(unit, report), *_gains(unit, report), *_losses(unit, report)):
        part = Assertion(
            SUPPORTED, kind, unit.line, unit.last_line, unit.text, found, why="the rules find the same"
        )
        return replace(unit, verdict=SUPPORTED, assertions=(*unit.assertions, part))
    return unit


def _absent(unit: Unit, report: Report) -> Iterator[tuple[str, str]]:
    """A tool that passing rollouts of a task call, and that the rollout named here does not."""
    if not ABSENT_WORDS.search(unit.text):
        return
    for one in report.divergences:
        cite = f"{one.task}/{one.repeat}"
        if one.task in unit.own and re.search(rf"(?<![\w/-]){re.escape(cite)}(?![\w/])", unit.text):
            for tool in one.missing:
                if re.search(rf"(?<![\w.]){re.escape(tool)}(?![\w])", unit.text):
                    yield "absent", tool


def _gains(unit: Unit, report: Report) -> Iterator[tuple[str, str]]:
    """What a recommendation would win, said of its own tasks."""
    for one in report.recommendations if unit.advice and unit.own else ():
        if unit.own <= set(one.tasks) and _has_points(unit, one.gain.point):
            yield "gain", one.action


def _losses(unit: Unit, report: Report) -> Iterator[tuple[str, str]]:
    """The points that a cause loses, or one mode of it."""
    for run in {one.run for one in report.losses}:
        for cause in unit.causes if len(unit.causes) == 1 else ():
            told = [one.lost for one in report.losses if one.run == run and one.cause.value == cause]
            if any(_has_points(unit, lost) for lost in (*told, sum(told))):
                yield "loss", cause


def _has_points(unit: Unit, value: float) -> bool:
    return value > 0 and any(
        slot.kind == NUMBER and slot.unit in ("%", "points") and agrees(slot, value) for slot in unit.numbers
    )

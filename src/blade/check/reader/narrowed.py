"""Turn verdicts on numbers into open questions where the sentence names a part or a threshold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from blade.check.reader.clauses import clauses
from blade.check.reader.ground import ROLLOUTS, TASKS
from blade.check.reader.lines import Line
from blade.check.reader.mentions import AMOUNT, STATE, Mention
from blade.check.reader.mentions import pattern as shaped
from blade.check.reader.quantities import RATIO
from blade.check.reader.verdicts import held
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion

# `flaky tasks pass …`: a state before the noun says which of them are meant
_PART_FIRST = shaped(
    r"(?:<S>[\s-]+(?:<N>)|<N>\s+(?:that|which)\s+(?:are\s+|were\s+)?<S>)\s+(?:\w+\s+){0,2}<S>"
)
_AT_MEASURE = shaped(r"\s*\(?(?:at|in|for|as|on|by|of)\s+(?P<m><M>)")
_COUNTED = shaped(r"\s+(?:\w+\s+)?<N>")
_TIMES = re.compile(r"\s+times?\b")
_EXPLICIT = re.compile(r"\ball\b|\ba total of\b|\bin total\b|\baltogether\b", re.IGNORECASE)
_NUMBERS = frozenset(("count", "share", "metric"))


def narrowed(found: Iterable[Assertion], line: Line) -> Iterator[Assertion]:
    """The assertions of one sentence; a number of what may be a part of the run settles nothing."""
    amounts = {one.start: (at, one) for at, one in line.sentence.at.items() if one.kind == AMOUNT}
    part = _PART_FIRST.search(line.shape)
    for one in found:
        reason = ""
        if one.kind in _NUMBERS and one.start in amounts and one.verdict != UNVERIFIABLE:
            at, amount = amounts[one.start]
            reason = _threshold(line, amount) or _measure(one, line, at, amount)
            if not reason and one.verdict == CONTRADICTED and one.subject not in _OF_PARTS:
                reason = "it may be said of a part" if part is not None and part.end() <= at else ""
                reason = reason or _whole(one, line, at, amount)
        yield replace(one, verdict=UNVERIFIABLE, expected=None, why=reason) if reason else one


_OF_PARTS = frozenset(("tasks_of_both", "part_rollouts", "tasks_so_often"))


def _threshold(line: Line, amount: Mention) -> str:
    """`more than ten times`: how often each of them, not how many there are."""
    quantity = amount.amount
    is_bound = quantity is not None and quantity.hedge in ("over", "under", "least", "most")
    told = is_bound and _TIMES.match(line.sentence.text, amount.end)
    return "a threshold is no count" if told else ""


def _measure(one: Assertion, line: Line, at: int, amount: Mention) -> str:
    """`the score is 42% at pass@4`: the measure behind a number says what it is."""
    hit = _AT_MEASURE.match(line.shape, at + 1)
    named = line.mention(hit, "m") if hit else None
    if one.kind != "metric" or one.run is None or named is None or amount.amount is None:
        return ""
    k = int(named.names[1]) if named.names[1] else None
    readings = line.ground.rates(one.run, named.names[0], k)
    if one.verdict == SUPPORTED and held(amount.amount, readings, True) is None:
        return f"it may be {named.text} that is meant"
    return ""


def _whole(one: Assertion, line: Line, at: int, amount: Mention) -> str:
    """A ratio of so many as no run has may be one of a part, unless it is all that its sentence says."""
    quantity = amount.amount
    if quantity is None or quantity.kind != RATIO or one.scope or _EXPLICIT.search(amount.text):
        return ""
    runs = line.ground.runs
    wholes = {
        size for run in runs for unit in (TASKS, ROLLOUTS) for size in line.ground.wholes(run, unit, ())
    }
    repeats = {float(task.n) for run in runs.values() for task in run.tasks.values()}
    if quantity.of in wholes:
        return ""
    if quantity.of in repeats and not _COUNTED.match(line.shape, at + 1):
        return "it may be said of the repeats of each task"
    return "" if _is_plain(line, at) else "it may be said of a part: no run has as many"


def _is_plain(line: Line, at: int) -> bool:
    """Whether the clause of an amount, and all before it, names nothing that it could be a part of."""
    for clause in clauses(line.sentence):
        is_own = clause.start <= at < clause.end
        if is_own and clause.joint == "(":
            return False
        if clause.start <= at and (clause.unknown or clause.of("TALDCX") or len(clause.of(STATE)) > 1):
            return False
    return True

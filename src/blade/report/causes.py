"""Put causes into words, and split what a run lost among those who answer for it."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from blade import hostile
from blade.model import Cause, Loss, Mechanism, RunCause
from blade.report import numbers, quantities, queries, words
from blade.report.facts import Facts
from blade.report.sections import Badge, Line, Span, Strong, plain

NAMES = {
    Cause.KNOWLEDGE_GAP: "knowledge gap",
    Cause.UNRELIABLE_KNOWLEDGE: "unreliable knowledge",
    Cause.BEHAVIOUR: "behavioural issue",
    Cause.TASK_OR_VERIFIER: "task or verifier issue",
    Cause.INFRASTRUCTURE: "infrastructure reliability",
    Cause.DATA_ARTIFACT: "data artifact",
    Cause.UNDETERMINED: "undetermined",
}
# Who answers for a cause: the model's losses stand apart from those of the measurement.
SIDES = {
    Cause.KNOWLEDGE_GAP: "model",
    Cause.UNRELIABLE_KNOWLEDGE: "model",
    Cause.BEHAVIOUR: "model",
    Cause.INFRASTRUCTURE: "infrastructure",
    Cause.TASK_OR_VERIFIER: "task or verifier",
    Cause.DATA_ARTIFACT: "data",
    Cause.UNDETERMINED: "undetermined",
}
SIDE_NAMES = tuple(dict.fromkeys(SIDES.values()))  # in the order of print
TO = {
    side: side if side == "undetermined" else f"to {'the model' if side == 'model' else side}"
    for side in SIDE_NAMES
}
SLUG = re.compile("[a-z]+(?:_[a-z0-9]+)+")  # how detectors and flags are called
SAME = 1e-9  # losses add up to this
CALL = re.compile(r"(never_)?calls\((.+)\)", re.DOTALL)
_SO_DO = re.compile(r"; so do [^;:]{1,20} of the run's rows")
_DO = re.compile(r", [\d,]+ (.+?): [<>]?\d+% of them pass", re.DOTALL)  # what the rollouts of a mechanism do


def called(cause: Cause) -> str:
    """`BI, behavioural issue`."""
    return cause.value if cause is Cause.UNDETERMINED else f"{cause.value}, {NAMES[cause]}"


def named(cause: Cause) -> Line:
    """The badge of a cause, and its name where the badge is a code."""
    return (badge(cause),) if cause is Cause.UNDETERMINED else (badge(cause), f" {NAMES[cause]}")


def badge(cause: Cause) -> Badge:
    side = SIDES[cause]
    return Badge(cause.value, "quiet" if side == "undetermined" else "bad" if side == "model" else "warning")


def lost_by_side(losses: list[Loss]) -> dict[str, float]:
    """Points of score by who answers for them; every side is there."""
    sums = {side: [loss.lost for loss in losses if SIDES[loss.cause] == side] for side in SIDE_NAMES}
    return {side: math.fsum(found) for side, found in sums.items()}


def total(losses: list[Loss]) -> float:
    return math.fsum(loss.lost for loss in losses)


class Mode(NamedTuple):
    """A failure mode over all causes it is booked under."""

    name: str
    lost: float
    causes: tuple[Cause, ...]  # the one that takes most of it first

    def told(self, facts: Facts) -> Line:
        codes = "/".join(cause.value for cause in self.causes)
        return (numbers.name(mode(facts, self.name)), f" ({codes})")

    def points(self, facts: Facts) -> Span:
        keys = [
            {"run": facts.run.name, "cause": cause, "mode": self.name} for cause in dict.fromkeys(self.causes)
        ]
        return numbers.size(self.lost, " + ".join(f"{queries.entry('losses', **key)}.lost" for key in keys))


def largest(facts: Facts) -> Mode | None:
    """The mode that costs most, of the losses with a cause."""
    by_mode: dict[str, list[Loss]] = {}
    for loss in facts.losses:
        if loss.cause is not Cause.UNDETERMINED and loss.lost > SAME:
            by_mode.setdefault(loss.mode, []).append(loss)
    sums = {name: math.fsum(loss.lost for loss in found) for name, found in by_mode.items()}
    if not sums:
        return None
    name = min(sums, key=lambda name: (-sums[name], name))
    booked = sorted(by_mode[name], key=lambda loss: (-loss.lost, loss.cause.value))
    return Mode(name, sums[name], tuple(loss.cause for loss in booked))


def is_explained(losses: list[Loss]) -> bool:
    """Whether any loss has a cause."""
    return any(loss.cause is not Cause.UNDETERMINED for loss in losses)


def points(value: float | None) -> str:
    """Lost points of score, unsigned: a loss is called one."""
    return words.points(value).removeprefix("+")


def lost_query(facts: Facts, side: str | None = None) -> str:
    """The query that gives what a run lost, all of it or what one side answers for."""
    run = facts.run.name
    if side is None:
        return f"{queries.entry('losses', run=run)}.lost"
    causes = tuple(cause.value for cause, of in SIDES.items() if of == side)
    lost = f"{queries.entry('losses', run=run, cause=causes if len(causes) > 1 else causes[0])}.lost"
    return lost if any(loss.cause.value in causes for loss in facts.losses) else f"{lost} or 0"


def all_lost(facts: Facts) -> Span:
    """All points of score that a run lost."""
    return numbers.size(total(facts.losses), lost_query(facts))


def split(facts: Facts, shown_zero: bool = True) -> Line:
    """`21.5 points to the model, 3.3 points to infrastructure, 0 points to data, 4.0 points undetermined`."""
    parts: list[Line] = [
        (numbers.size(lost, lost_query(facts, side)), f" {TO[side]}")
        for side, lost in lost_by_side(facts.losses).items()
        if shown_zero or abs(lost) >= SAME
    ]
    return numbers.joined(parts, ", ", ", ")


def score(facts: Facts, strong: bool = False) -> Span:
    """The score of a run, in its form."""
    return quantities.value(facts.score, facts.is_rate, strong)


def clean(facts: Facts) -> Line:
    """The score without the faults of the measurement; nothing where it was not computed."""
    measure = next((measure for measure in facts.measures if measure.name == "clean_pass_at_1"), None)
    if measure is None or not facts.is_rate:  # a rate says nothing beside a mean reward
        return ()
    lead = " Without infrastructure rows and suspect tasks "
    n = quantities.n_of(measure)
    if measure.value is None:
        return (f"{lead}nothing is left to score (n = ", *n, ").")
    if facts.run.score is not None and abs(measure.value - facts.run.score) < SAME:
        return (f"{lead}the score is the same.",)
    values = quantities.with_interval(measure)
    return (
        f"{lead}the model scores ",
        *values,
        " (clean pass@1, n = ",
        *n,
        ") instead of ",
        score(facts),
        ".",
    )


def told(cause: RunCause, facts: Facts) -> Line:
    """A cause of the whole run in a few sentences: what it is, what it cost, what stands without it."""
    query, lost = facts.entry("run_causes", cause), total(facts.losses)
    who = SIDES[cause.cause] if cause.cause is not Cause.UNDETERMINED else "not determined"
    if cause.lost < SAME:
        lead = f"A fault of the whole run that distorts it without losing score ({who}): "
    elif lost > SAME and cause.lost >= lost / 2:
        lead = f"The cause of this run is {who}: "
    else:
        lead = f"A cause that concerns the run as a whole ({who}): "
    rows = numbers.count(cause.n_rollouts, "rollout", f"{query}.n_rollouts")
    cost: Line = (" It concerns ", *rows, ". ") if cause.n_rollouts else (" ",)
    if cause.lost >= SAME:
        part = numbers.size(cause.lost, f"{query}.lost")
        cost = (" It loses ", part, " of the ", all_lost(facts), " lost, in ", *rows, ". ")
    return (
        Strong(lead),
        *sentence(text(cause), f"{query}.text", 500, cause.text),
        *cost,
        *without(cause, facts),
    )


def text(cause: RunCause) -> str:
    """What is the matter with the run; its share of the rows is not said again at the end."""
    return _SO_DO.sub("", cause.text)


def sentence(text: str, query: str, limit: int = 600, written: str | None = None) -> Line:
    """What a stage says, as a sentence with its full stop."""
    return ended((numbers.said(text, query, limit, written),))


def ended(line: Line) -> Line:
    """A line with its full stop, unless it ends already."""
    return line if plain(line[-1:]).endswith((".", "!", "?", "…", ".)")) else (*line, ".")


def without(cause: RunCause, facts: Facts) -> Line:
    """The score without the rows of this cause, or that none can be had."""
    query, say = facts.entry("run_causes", cause), numbers.percent if facts.is_rate else numbers.number
    value, other = facts.run.score, cause.score_without if cause.n_without else None
    is_same = other is not None and value is not None and abs(other - value) < SAME
    if cause.lost < SAME and (other is None or is_same):
        of: Line = (" of ", score(facts)) if value is not None else ()
        return (
            "Until it is repaired the score",
            *of,
            " cannot be trusted: no rows are lost, but the score may be biased by an unknown amount.",
        )
    n: Line = (" (n = ", *numbers.count(cause.n_without, "task", f"{query}.n_without"), ").")
    if other is None:
        return ("Excluding these rows leaves nothing to score.",)
    if is_same:
        return ("Without it the score is the same", *n)
    now: Line = (" instead of ", score(facts)) if value is not None else ()
    return ("Without it the score would be ", say(other, f"{query}.score_without"), *now, *n)


def mode(facts: Facts, text: str, limit: int = 120) -> str:
    """A mode in words: of a predicate what its mechanism says rollouts do; of a detector its name."""
    found = facts.mechanism_of(text)
    said = hostile.line(does(found) if found is not None else text, limit)
    return (said.replace("_", " ") if SLUG.fullmatch(said) else said) or "(no name)"


def does(found: Mechanism) -> str:
    """`never calls get_x`; the predicate itself where its mechanism says nothing better."""
    call = CALL.fullmatch(found.predicate.partition(" within ")[0])
    if call is not None:
        return f"{'never ' if call[1] else ''}calls {call[2]}"
    told = _DO.search(found.text)
    return told[1].replace("`", "") if told is not None else found.predicate

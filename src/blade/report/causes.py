"""Put causes into words, and split what a run lost among those who answer for it."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from blade import hostile
from blade.model import Cause, Loss, Mechanism, RunCause
from blade.report import quantities, words
from blade.report.facts import Facts
from blade.report.sections import Badge, Line, Strong, prose

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
_DO = re.compile(r", [\d,]+ ([^:]+): [<>]?\d+% of them pass")  # what the rollouts of a mechanism do


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

    def told(self, facts: Facts) -> str:
        return f"{mode(facts, self.name)} ({'/'.join(cause.value for cause in self.causes)})"


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


def split(losses: list[Loss], shown_zero: bool = True) -> str:
    """`21.5 points to the model, 3.3 to infrastructure, 0 to data, 4.0 undetermined`."""
    said: list[str] = []
    for side, lost in lost_by_side(losses).items():
        if shown_zero or abs(lost) >= SAME:
            size = points(lost) if not said else points(lost).removesuffix(" points")
            said.append(f"{size} {TO[side]}")
    return ", ".join(said)


def clean(facts: Facts) -> str:
    """The score without the faults of the measurement; nothing where it was not computed."""
    found = next((measure for measure in facts.measures if measure.name == "clean_pass_at_1"), None)
    if found is None:
        return ""
    if found.value is None:
        n = quantities.n_of(found)
        return f" Without infrastructure rows and suspect tasks nothing is left to score (n = {n})."
    if facts.run.score is not None and abs(found.value - facts.run.score) < SAME:
        return " Without infrastructure rows and suspect tasks the score is the same."
    text = (
        f" Without infrastructure rows and suspect tasks the model scores {quantities.with_interval(found)}"
    )
    return f"{text} (clean pass@1, n = {quantities.n_of(found)}) instead of {words.percent(facts.run.score)}."


def told(cause: RunCause, facts: Facts) -> Line:
    """A cause of the whole run in a few sentences: what it is, what it cost, what stands without it."""
    all_lost = total(facts.losses)
    who = SIDES[cause.cause] if cause.cause is not Cause.UNDETERMINED else "not determined"
    if cause.lost < SAME:
        lead = f"A fault of the whole run that distorts it without losing score ({who}): "
    elif all_lost > SAME and cause.lost >= all_lost / 2:
        lead = f"The cause of this run is {who}: "
    else:
        lead = f"A cause that concerns the run as a whole ({who}): "
    rows = words.count(cause.n_rollouts, "rollout")
    cost = f" It touches {rows}. " if cause.n_rollouts else " "
    if cause.lost >= SAME:
        of = points(all_lost).removesuffix(" points")
        cost = f" It loses {points(cause.lost)} of the {of} lost, in {rows}. "
    return (Strong(lead), *sentence(text(cause), 500), cost, without(cause, facts))


def text(cause: RunCause) -> str:
    """What is the matter with the run; its share of the rows is not said again at the end."""
    return _SO_DO.sub("", cause.text)


def sentence(text: str, limit: int = 600) -> Line:
    """What a stage says, as a sentence with its full stop."""
    said = hostile.line(text, limit)
    return prose(said if said.endswith((".", "!", "?", "…", ".)")) else f"{said}.")


def without(cause: RunCause, facts: Facts) -> str:
    """The score as it would stand without the rows of this cause, or that none can be had."""
    say = words.percent if facts.is_rate else words.number
    score, other = facts.run.score, cause.score_without if cause.n_without else None
    is_same = other is not None and score is not None and abs(other - score) < SAME
    if cause.lost < SAME and (other is None or is_same):
        of = f" of {say(score)}" if score is not None else ""
        return (
            f"Until it is repaired the score{of} cannot be trusted: no rows are lost to it, but it bends "
            "what they say, and how far they cannot tell."
        )
    n = words.count(cause.n_without, "task")
    if other is None:
        return f"No score stands without it (n = {n})."
    if is_same:
        return f"Without it the score is the same (n = {n})."
    now = f" instead of {say(score)}" if score is not None else ""
    return f"Without it the score would be {say(other)}{now} (n = {n})."


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

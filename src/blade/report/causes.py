"""Put causes into words, and split what a run lost among those who answer for it."""

from __future__ import annotations

import math
from typing import NamedTuple

from blade import hostile, number_format
from blade.model import Cause, Loss
from blade.report import numbers, queries
from blade.report.blocks import Badge, Line, Span, plain
from blade.report.facts import Facts

NAMES = {
    Cause.KNOWLEDGE_GAP: "knowledge gap",
    Cause.UNRELIABLE_KNOWLEDGE: "unreliable knowledge",
    Cause.BEHAVIOUR: "behaviour",
    Cause.TASK_OR_VERIFIER: "task, verifier or harness",
    Cause.INFRASTRUCTURE: "infrastructure",
    Cause.DATA_ARTIFACT: "data",
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
SAME = 1e-9  # losses add up to this


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
    return number_format.points(value).removeprefix("+")


def all_lost(facts: Facts) -> Span:
    """All points of score that a run lost."""
    return numbers.size(total(facts.losses), f"{queries.entry('losses', run=facts.run.name)}.lost")


def sentence(text: str, query: str, limit: int = 600, written: str | None = None) -> Line:
    """What a stage says, as a sentence with its full stop."""
    return ended((numbers.said(text, query, limit, written),))


def ended(line: Line) -> Line:
    """A line with its full stop, unless it ends already."""
    return line if plain(line[-1:]).endswith((".", "!", "?", "…", ".)")) else (*line, ".")


def mode(facts: Facts, text: str, limit: int = 120) -> str:
    """The name of a failure mode."""
    return hostile.line(text, limit) or "(no name)"

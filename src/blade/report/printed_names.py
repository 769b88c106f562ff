"""Name causes and measures as they are printed; print the value, interval and n of a measure with their queries."""

from __future__ import annotations

import math
from typing import NamedTuple

from blade import hostile, number_format
from blade.model import Cause, Loss, Measure
from blade.report import queried_numbers
from blade.report.blocks import Badge, Line, Span
from blade.report.phrases import LABELS, plain
from blade.report.queried_numbers import between, count, measure, num, quoted, select, where
from blade.report.run_facts import Facts

# ---- Causes --------------------------------------------------------------------------------------

# What a cause is called, and who answers for it: the model's losses stand apart from those of the measurement.
CAUSES = {Cause(code): parts for code, parts in LABELS["causes"].items()}
NAMES = {cause: name for cause, (name, _) in CAUSES.items()}
SIDES = {cause: side for cause, (_, side) in CAUSES.items()}
SIDE_NAMES = tuple(dict.fromkeys(SIDES.values()))  # in the order of print
SAME = 1e-9  # losses add up to this


def called(cause: Cause) -> str:
    """`BI, behavioural issue`."""
    return cause.value if cause is Cause.UNDETERMINED else f"{cause.value}, {NAMES[cause]}"


def named(cause: Cause) -> Line:
    """The badge of a cause, and its name where the badge is a code."""
    return (badge(cause),) if cause is Cause.UNDETERMINED else (badge(cause), f" {NAMES[cause]}")


def badge(cause: Cause) -> Badge:
    tones = {"undetermined": "quiet", "model": "bad"}
    return Badge(cause.value, tones.get(SIDES[cause], "warning"))


def lost_by_side(losses: list[Loss]) -> dict[str, float]:
    """Points of score by who answers for them; every side is there."""
    return {side: total([loss for loss in losses if SIDES[loss.cause] == side]) for side in SIDE_NAMES}


def total(losses: list[Loss]) -> float:
    return math.fsum(loss.lost for loss in losses)


def largest(facts: Facts) -> tuple[str, float] | None:
    """The mode that costs most of the losses with a cause, over all causes it is booked under, and its points."""
    by_mode: dict[str, list[Loss]] = {}
    for loss in facts.losses:
        if loss.cause is not Cause.UNDETERMINED and loss.lost > SAME:
            by_mode.setdefault(loss.mode, []).append(loss)
    sums = {name: total(losses) for name, losses in by_mode.items()}
    return min(sums.items(), key=lambda mode: (-mode[1], mode[0])) if sums else None


def ended(line: Line) -> Line:
    """A line with its full stop, unless it ends already."""
    return line if plain(line[-1:]).endswith((".", "!", "?", "…", ".)")) else (*line, ".")


# ---- Measures ------------------------------------------------------------------------------------


class Quantity(NamedTuple):
    label: str  # {k} is the k of the measure
    form: str  # rate, points, number, score (the form of the run's score)
    meaning: str


# In the order of print. Names that are not here are printed as they are, as plain numbers.
QUANTITIES = {name: Quantity(*parts) for name, parts in LABELS["quantities"].items()}

EFFORTS: dict[str, str] = LABELS["efforts"]

# The column of `rollouts` that holds an effort, where it is called otherwise.
COLUMNS = {"tool_calls": "calls", "items": "steps", "wall_s": "seconds"}
MEAN_OF_TASK = "select avg(coalesce(reward, 0)) mean from rollouts {} group by task"


def label(measure: Measure) -> str:
    known = QUANTITIES.get(measure.name)
    if known is None:
        return hostile.line(measure.name, 60) + (f", k = {measure.k}" if measure.k is not None else "")
    part = f" {measure.slice}" if measure.slice is not None and measure.k is not None else ""
    return known.label.format(k=measure.k if measure.k is not None else "k") + part


def meaning(measure: Measure) -> str:
    known = QUANTITIES.get(measure.name)
    return known.meaning if known else ""


def formatted(measure: Measure, value: float | None, is_rate: bool) -> str:
    """`value` in the form of the measure; `is_rate` says whether the run's score is a pass rate."""
    form = QUANTITIES[measure.name].form if measure.name in QUANTITIES else "number"
    if form.startswith("score"):
        form = ("points" if form.endswith("points") else "rate") if is_rate else "number"
    if form == "points":
        return number_format.points(value)
    if form == "rate" and (value is None or -1e-9 <= value <= 1 + 1e-9):
        return number_format.percent(value)
    return number_format.number(value)


def value(measure: Measure, is_rate: bool = True, strong: bool = False, part: str = "value") -> Span:
    """The value, or one end of the interval."""
    number = getattr(measure, part)
    return num(formatted(measure, number, is_rate), number, query(measure, part), strong)


def interval(measure: Measure, is_rate: bool = True) -> Line:
    """` [32.7%, 51.8%]`, or nothing when there is no interval."""
    return between(value(measure, is_rate, part="low"), value(measure, is_rate, part="high"))


def with_interval(measure: Measure, is_rate: bool = True) -> Line:
    """`42.0% [32.7%, 51.8%]`."""
    return (value(measure, is_rate), *interval(measure, is_rate))


def n_of(measure: Measure) -> Line:
    """`50 tasks`."""
    return count(measure.n, measure.unit.removesuffix("s"), query(measure, "n"), measure.unit)


# Measures that one SELECT gives: what, from which table, on which condition beside the run.
_TRIED = ("tasks", "n > 0")
_ROWS = ("rollouts", "not masked")
_SELECTED: dict[tuple[str, str], tuple[str, ...]] = {
    ("solved", "value"): ("avg(cast(passes > 0 as int))", *_TRIED),
    ("solved", "n"): ("count(*)", *_TRIED),
    ("consistency", "value"): ("avg(cast(passes = n as int))", *_TRIED),
    ("consistency", "n"): ("count(*)", *_TRIED),
    ("coverage", "value"): ("scored / expected", "runs"),
    ("coverage", "n"): ("expected", "runs"),
    ("mean_reward", "n"): ("count(*)", *_TRIED),
    ("mean_reward_micro", "value"): ("avg(coalesce(reward, 0))", *_ROWS),
    ("mean_reward_micro", "n"): ("count(*)", *_ROWS),
}


def query(of: Measure, part: str = "value") -> str:
    """The query that gives the value, an end of the interval (low, high) or the n of a measure again."""
    run, name = of.run, "rate" if of.name == "pass_at_1_micro" else of.name
    effort = name.removesuffix("_median")
    if name in ("pass_at_1", "rate", "pass_at_k", "pass_hat_k") and of.slice is None:
        return measure(name, run, k=of.k, part="" if part == "value" else part)
    if effort in EFFORTS and part in ("value", "n"):
        return _effort_query(of, COLUMNS.get(effort, effort), part)
    if (name, part) in _SELECTED and of.slice is None:
        what, table, *also = _SELECTED[name, part]
        return select(what, table, run, *also)
    if name == "mean_reward" and part == "value":
        return f"select avg(mean) from ({MEAN_OF_TASK.format(where(run, 'not masked'))})"
    keys = {"run": run, "name": of.name, "k": of.k, "slice": of.slice}
    stated = {key: value for key, value in keys.items() if value is not None}
    return f"{queried_numbers.entry('measures', **stated)}.{part}"


def _effort_query(of: Measure, column: str, part: str) -> str:
    """Mean, median or number of the rows that report an effort, of one outcome or of all."""
    also = () if of.slice in (None, "all") else (f"outcome = {quoted(of.slice or '')}",)
    if part == "n":
        return select(f"count({column})", "rollouts", of.run, "not masked", *also)
    if of.name.endswith("_median"):
        return select(f"median({column})", "rollouts", of.run, "not masked", *also)
    return measure(f"mean({column})", of.run, *also)

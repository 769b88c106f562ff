"""Name each measure; print its value, interval and n with their queries."""

from __future__ import annotations

from typing import NamedTuple

from blade import hostile, number_format
from blade.model import Measure
from blade.report import numbers, queries
from blade.report.blocks import Line, Span


class Quantity(NamedTuple):
    label: str  # {k} is the k of the measure
    form: str  # rate, points, number, score (the form of the run's score)
    meaning: str


# In the order of print. Names that are not here are printed as they are, as plain numbers.
QUANTITIES: dict[str, Quantity] = {
    "pass_at_1": Quantity("pass@1", "rate", "share of repeats that passed, mean over tasks"),
    "pass_at_1_micro": Quantity(
        "pass@1 over rows", "rate", "share of rows that passed; tasks with more rows weigh more"
    ),
    "weighting_effect": Quantity("weighting effect", "score points", "mean over rows minus mean over tasks"),
    "solved": Quantity("solved", "rate", "tasks with at least one pass"),
    "pass_at_k": Quantity("pass@{k}", "rate", "chance that at least one of k repeats passes (unbiased)"),
    "pass_hat_k": Quantity("pass^{k}", "rate", "chance that all of k repeats pass"),
    "majority_at_k": Quantity("majority@{k}", "rate", "chance that the most frequent of k answers is right"),
    "consistency": Quantity("consistency", "rate", "tasks where every repeat passed"),
    "retry_value": Quantity(
        "retry value", "points", "pass@k minus pass@1: what a perfect choice among repeats would win"
    ),
    "self_agreement": Quantity("self-agreement", "rate", "chance that two repeats of a task end alike"),
    "expected_flip_rate": Quantity(
        "expected flip rate", "rate", "chance that two repeats of a task end differently"
    ),
    "mean_reward": Quantity("mean reward", "number", "mean over tasks of the mean reward"),
    "mean_reward_micro": Quantity("mean reward over rows", "number", "mean over rows"),
    "best_of_k": Quantity("best@{k}", "number", "expected best reward among k repeats (unbiased)"),
    "worst_of_k": Quantity("worst of {k}", "number", "expected worst reward among k repeats (unbiased)"),
    "coverage": Quantity("coverage", "rate", "scored of expected rollouts"),
    "missing_as_fail": Quantity(
        "missing as failed", "score", "the score if every missing rollout had failed"
    ),
    "bound_low": Quantity(
        "lower bound", "score", "the score if every missing rollout had got the lowest reward"
    ),
    "bound_high": Quantity(
        "upper bound", "score", "the score if every missing rollout had got the highest reward"
    ),
    "icc": Quantity("ICC", "number", "share of the variance that lies between tasks, not between repeats"),
    "between_task_variance": Quantity(
        "variance between tasks", "number", "how much tasks differ in difficulty"
    ),
    "within_task_variance": Quantity("variance within tasks", "number", "how much repeats of a task differ"),
    "design_effect": Quantity("design effect", "number", "how many rows tell as much as one independent row"),
    "effective_n": Quantity("effective n", "number", "independent rows these rows are worth"),
}

EFFORTS = {
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "reasoning_tokens": "reasoning tokens",
    "total_tokens": "total tokens",
    "turns": "turns",
    "tool_calls": "tool calls",
    "items": "output items",
    "wall_s": "seconds",
    "cost_usd": "cost (USD)",
}


# The column of `rollouts` that holds an effort, where it is called otherwise.
COLUMNS = {"tool_calls": "calls", "items": "steps", "wall_s": "seconds"}
MEAN_OF_TASK = "select avg(coalesce(reward, 0)) mean from rollouts {} group by task"

# How the intervals of `stats` are called in print.
METHODS = {
    "task t": "t over task means",
    "wilson": "Wilson score",
    "wilson n_eff": "Wilson score at the effective number of rows",
}


def label(measure: Measure) -> str:
    known = QUANTITIES.get(measure.name)
    if known is None:
        return hostile.line(measure.name, 60) + (f", k = {measure.k}" if measure.k is not None else "")
    part = f" {measure.slice}" if measure.slice is not None and measure.k is not None else ""
    return known.label.format(k=measure.k if measure.k is not None else "k") + part


def meaning(measure: Measure) -> str:
    known = QUANTITIES.get(measure.name)
    return known.meaning if known else ""


def said(measure: Measure, value: float | None, is_rate: bool) -> str:
    """`value` in the form of the measure; `is_rate` says whether the run's score is a pass rate."""
    form = QUANTITIES[measure.name].form if measure.name in QUANTITIES else "number"
    if form.startswith("score"):
        form = ("points" if form.endswith("points") else "rate") if is_rate else "number"
    if form == "points":
        return number_format.points(value)
    if form == "rate" and (value is None or -1e-9 <= value <= 1 + 1e-9):
        return number_format.percent(value)
    return number_format.number(value)


def query(measure: Measure, part: str = "value") -> str:
    """The query that gives the value, an end of the interval (low, high) or the n of a measure again."""
    run, k = measure.run, measure.k
    name = "rate" if measure.name == "pass_at_1_micro" else measure.name
    if name in ("pass_at_1", "rate", "pass_at_k", "pass_hat_k") and measure.slice is None:
        return queries.measure(name, run, k=k, part="" if part == "value" else part)
    effort = name.removesuffix("_median")
    if effort in EFFORTS:
        return _effort_query(measure, COLUMNS.get(effort, effort), part)
    if (name, part) in _SELECTED and measure.slice is None:
        what, table, *also = _SELECTED[name, part]
        return queries.select(what, table, run, *also)
    if name == "mean_reward" and part == "value":
        return f"select avg(mean) from ({MEAN_OF_TASK.format(queries.where(run, 'not masked'))})"
    return _entry(measure, part)


def _entry(measure: Measure, part: str) -> str:
    keys = {"run": measure.run, "name": measure.name, "k": measure.k, "slice": measure.slice}
    stated = {key: value for key, value in keys.items() if value is not None}
    return f"{queries.entry('measures', **stated)}.{part}"


# Measures that one SELECT gives: what, from which table, on which condition beside the run.
_SELECTED: dict[tuple[str, str], tuple[str, ...]] = {
    ("solved", "value"): ("avg(cast(passes > 0 as int))", "tasks", "n > 0"),
    ("solved", "n"): ("count(*)", "tasks", "n > 0"),
    ("consistency", "value"): ("avg(cast(passes = n as int))", "tasks", "n > 0"),
    ("consistency", "n"): ("count(*)", "tasks", "n > 0"),
    ("coverage", "value"): ("scored / expected", "runs"),
    ("coverage", "n"): ("expected", "runs"),
    ("mean_reward", "n"): ("count(*)", "tasks", "n > 0"),
    ("mean_reward_micro", "value"): ("avg(coalesce(reward, 0))", "rollouts", "not masked"),
    ("mean_reward_micro", "n"): ("count(*)", "rollouts", "not masked"),
}


def _effort_query(measure: Measure, column: str, part: str) -> str:
    """Mean, median or number of the rows that report an effort, of one outcome or of all."""
    also = () if measure.slice in (None, "all") else (f"outcome = {queries.quoted(measure.slice or '')}",)
    what = f"median({column})" if measure.name.endswith("_median") else f"avg({column})"
    if part == "value" and what.startswith("avg"):
        return queries.measure(f"mean({column})", measure.run, *also)
    if part in ("value", "n"):
        what = f"count({column})" if part == "n" else what
        return queries.select(what, "rollouts", measure.run, "not masked", *also)
    return _entry(measure, part)


def value(measure: Measure, is_rate: bool = True, strong: bool = False) -> Span:
    return numbers.num(said(measure, measure.value, is_rate), measure.value, query(measure), strong)


def interval(measure: Measure, is_rate: bool = True) -> Line:
    """` [32.7%, 51.8%]`, or nothing when there is no interval."""
    ends = {"low": measure.low, "high": measure.high}
    low, high = (
        numbers.num(said(measure, end, is_rate), end, query(measure, part)) for part, end in ends.items()
    )
    return numbers.between(low, high)


def part(measure: Measure, name: str, is_rate: bool = True) -> Span:
    """One end of the interval."""
    end = getattr(measure, name)
    return numbers.num(said(measure, end, is_rate), end, query(measure, name))


def with_interval(measure: Measure, is_rate: bool = True, strong: bool = False) -> Line:
    """`42.0% [32.7%, 51.8%]`."""
    return (value(measure, is_rate, strong), *interval(measure, is_rate))


def n_of(measure: Measure) -> Line:
    """`50 tasks`."""
    unit = measure.unit.removesuffix("s")
    return numbers.count(measure.n, unit, query(measure, "n"), measure.unit)


def method(measure: Measure) -> str:
    """How the interval was made, or why there is none."""
    text = METHODS.get(measure.method) or hostile.line(measure.method, 160)
    if measure.low is not None or text.startswith(("exact", "mean", "median", "no interval")):
        return text
    return f"{text} (no interval)" if text else "no interval"

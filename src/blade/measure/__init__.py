"""Count and rate outcomes; the MEASURES table."""

from __future__ import annotations

from types import ModuleType

from blade.measure import (
    compared,
    draft,
    effort,
    funnel,
    health,
    majority,
    outcomes,
    scoring,
    slices,
    tasks,
)
from blade.measure.health import Quote
from blade.measure.scoring import Scoring

__all__ = ["MEASURES", "Quote", "Scoring"]

# Name -> module, in the order of the report. Every member turns the columns of one run into nouns of
# `model`, by functions named for them:
MEASURES: dict[str, ModuleType] = {
    "scoring": scoring,  # scoring(rollouts, threshold) -> Scoring, which the others take
    "outcomes": outcomes,  # measures(run, rollouts, coverage, scoring) -> Iterator[Measure]
    "majority": majority,  # measures(rollouts, scoring, benchmark) -> Iterator[Measure]
    "effort": effort,  # measures(rollouts, scoring) -> Iterator[Measure]
    "tasks": tasks,  # task_results(rollouts, coverage, scoring); buckets(rollouts, scoring)
    "health": health,  # health(rollouts, coverage, scoring, quote) -> Iterator[Health]
    "funnel": funnel,  # funnel(rollouts, coverage, scoring, benchmark) -> Funnel
    "slices": slices,  # fields(rollouts, scoring, benchmark); by_row(...); gaps(...)
    "compared": compared,  # compared(run, reported, rollouts, coverage, scoring) -> Iterator[Compared]
    "draft": draft,  # draft(rollouts, scoring) -> Draft of a blade.toml
}

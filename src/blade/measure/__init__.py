"""Count and rate outcomes; the MEASURES table."""

from __future__ import annotations

from types import ModuleType

from blade.measure import funnel, health, outcome_rates, reconciliation, scoring, slices
from blade.measure.health import Quote
from blade.measure.scoring import Scoring

__all__ = ["MEASURES", "Quote", "Scoring"]

# Name -> module, in the order of the report. Every member turns the columns of one run into nouns of
# `model`, by functions named for them:
MEASURES: dict[str, ModuleType] = {
    "scoring": scoring,  # scoring(rollouts, threshold) -> Scoring, which the others take; task_results(...); buckets(...)
    "outcome_rates": outcome_rates,  # measures(run, rollouts, coverage, scoring), majority(...) and effort(...) -> Iterator[Measure]
    "health": health,  # health(rollouts, coverage, scoring, quote) -> Iterator[Health]
    "funnel": funnel,  # funnel(rollouts, coverage, scoring, benchmark) -> Funnel
    "slices": slices,  # fields(rollouts, scoring, benchmark); by_row(...); gaps(...); draft(rollouts, scoring) of a blade.toml
    "reconciliation": reconciliation,  # compared(run, reported, rollouts, coverage, scoring) -> Iterator[Compared]
}

"""Write the metrics sidecar of a BLADE-ready package: one flat object per run, rates as fractions."""

from __future__ import annotations

import math
from typing import Any

from blade.model import Cause, Outcome, Report
from blade.report.blocks import Figure
from blade.report.causes import largest, lost_by_side, total
from blade.report.facts import Facts, facts
from blade.report.report_json import indented, number

SUFFIX = ".json"


def render(report: Report, figures: tuple[Figure, ...] = ()) -> str:
    """One object for one run, `{"runs": {name: object}}` for several."""
    found = {run.run.name: metrics(run) for run in facts(report)}
    document = next(iter(found.values())) if len(found) == 1 else {"runs": found}
    return indented(document)


def metrics(facts: Facts) -> dict[str, Any]:
    """The keys that tools around BLADE reports read."""
    run, buckets, score = facts.run, facts.buckets, facts.score
    judged = run.has_pass_rate
    outcomes = facts.run.outcomes
    passed = outcomes[Outcome.PASSED] if judged else None
    scored = sum(n for outcome, n in outcomes.items() if outcome not in (Outcome.MASKED, Outcome.MISSING))
    at_k = facts.at_most_k("pass_at_k")
    return {
        "model": run.model,
        "model_name": run.model,
        "benchmark": run.benchmark,
        "score_name": run.score_name,
        "score": number(run.score),
        "score_low": number(score.low),
        "score_high": number(score.high),
        "score_n": score.n,
        "score_method": score.method,
        "pass_at_1": _value(facts, "pass_at_1"),
        "pass_at_k": number(at_k.value) if at_k else None,
        "k": at_k.k if at_k else None,
        "consistency": _value(facts, "consistency"),
        "coverage": _value(facts, "coverage"),
        "total_tasks": run.n_tasks,
        "num_tasks": run.n_tasks,
        "total_rollouts": run.n_rollouts,
        "num_rollouts": run.n_rollouts,
        "expected_rollouts": run.coverage.expected,
        "passed_rollouts": passed,
        "failed_rollouts": scored - passed if passed is not None else None,
        "always_pass_tasks": len(buckets.always) if judged else None,
        "sometimes_pass_tasks": len(buckets.sometimes) if judged else None,
        "always_fail_tasks": len(buckets.never) if judged else None,
        "missing_tasks": len(buckets.missing),
        "repeats": run.coverage.repeats,
        "unexplained": number(facts.unexplained.points) if facts.unexplained is not None else None,
        "losses": {side: number(lost) for side, lost in lost_by_side(facts.losses).items()}
        if facts.losses
        else None,
        "losses_by_cause": _by_cause(facts),
        **_dominant(facts),
    }


def _by_cause(facts: Facts) -> dict[str, float | None] | None:
    """Points of score by cause; they add up to 1 - score."""
    if not facts.losses:
        return None
    return {
        cause.value: number(math.fsum(loss.lost for loss in facts.losses if loss.cause is cause))
        for cause in Cause
    }


def _dominant(facts: Facts) -> dict[str, Any]:
    """The mode that costs most: its name, the failed tasks it labels, its share of the loss."""
    found = largest(facts)
    if found is None:
        return dict.fromkeys(("dominant_failure_type", "dominant_failure_count", "dominant_failure_fraction"))
    return {
        "dominant_failure_type": found.name,
        "dominant_failure_count": sum(one.mode == found.name for one in facts.attributions),
        "dominant_failure_fraction": number(found.lost / total(facts.losses)),
    }


def _value(facts: Facts, name: str) -> float | None:
    found = facts.measure(name)
    return number(found.value) if found else None

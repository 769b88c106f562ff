"""Draw up the readiness checklist of a package: one line for each thing it must have."""

from __future__ import annotations

from collections.abc import Sequence

from blade.package.layout import Layout
from blade.package.validate.phases import (
    ANCHORS,
    DRAFT,
    EVIDENCE,
    METRICS,
    RUNS,
    SANITISED,
    SHALLOW,
    SKILL,
    Check,
    plural,
)

LINES = {
    SKILL: "D1 skill has overview, schema, taxonomy, workflow and report template, filled",
    RUNS: "D2 rollouts hold at least two scored, comparable runs",
    EVIDENCE: "D3 golden reports cite task-level evidence, not only aggregates",
    METRICS: "Metrics sidecars parse and match the report",
    ANCHORS: "Concrete anchor facts exist for each golden report",
    SHALLOW: "A shallow baseline exists for each golden report",
    SANITISED: "Sanitised: no private source, endpoints, credentials, user names, unreleased names, "
    "uncleared raw data",
}


def readiness(package: Layout, checks: Sequence[Check]) -> list[Check]:
    """The checklist; a line holds when something was looked at for it and nothing failed."""
    reports = [parts for parts in package.goldens if not parts.is_comparison]
    needed = {SHALLOW: max(1, len(reports))}
    checklist = []
    for about, line in LINES.items():
        looked = [check for check in checks if check.counts_for == about]
        failed = sum(not check.passed for check in looked)
        lacking = needed.get(about, 1) - sum(check.passed for check in looked)
        why = f" ({plural(failed, 'check')} above failed)" if failed else ""
        if not failed and lacking > 0:
            why = f" ({plural(lacking, 'baseline')} missing)" if about == SHALLOW else " (nothing to look at)"
        passed = not failed and lacking <= 0
        checklist.append(Check(passed, line + (why or _excused(about, package)), about))
    drafts = sum(check.counts_for == DRAFT for check in checks)
    if drafts:
        line = f"draft: not reviewed ({plural(drafts, 'golden report')}; see above how to clear the mark)"
        checklist.append(Check(False, line, DRAFT))
    return checklist


def _excused(about: str, package: Layout) -> str:
    """What a line of the checklist does not ask of comparison reports, where one goes without it."""
    places = {METRICS: "metrics", ANCHORS: "anchors", SHALLOW: "shallow"}
    comparisons = [parts for parts in package.goldens if parts.is_comparison and about in places]
    without = [parts for parts in comparisons if not getattr(parts, places[about]).is_file()]
    return " (comparison reports need none)" if without else ""

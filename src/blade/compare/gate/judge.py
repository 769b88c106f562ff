"""Turn a policy and comparisons into one decision: PASS, WARN, FAIL or INCONCLUSIVE, check by check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from blade.compare.gate import text as gate_text
from blade.compare.gate.metrics import RATE, ByTask, Measured, measured
from blade.compare.gate.policy import COMMON, COVERAGE, Limit, Policy, Waiver, bad_policy
from blade.compare.verdict import ALPHA
from blade.errors import EXIT_FAILED_GATE, EXIT_OK
from blade.model import Checked, Comparison, Gate, Side

PASS, WARN, INCONCLUSIVE, FAIL = "PASS", "WARN", "INCONCLUSIVE", "FAIL"
EXIT = {PASS: EXIT_OK, WARN: EXIT_OK, INCONCLUSIVE: EXIT_OK, FAIL: EXIT_FAILED_GATE}
# From the mildest. A critical question without an answer weighs more than one answered with a warning.
ORDER = (PASS, WARN, INCONCLUSIVE, FAIL)
# What a check of each tier can do to the whole; the verdicts not named do nothing.
WEIGHT = {
    "critical": {WARN: WARN, INCONCLUSIVE: INCONCLUSIVE, FAIL: FAIL},
    "supporting": {WARN: WARN, FAIL: WARN},
    "advisory": {},
}
COMPARISON = "comparison"
_SLACK = 1e-9  # sums of floats miss a limit that is met exactly by less


def judge(
    policy: Policy,
    comparisons: Sequence[Comparison],
    coverages: Mapping[str, tuple[int, int]],
    today: date,
    sides: Mapping[str, Side] | None = None,
    by_task: ByTask | None = None,
    remarks: Mapping[str, str] | None = None,
) -> Gate:
    """What the policy says of candidates held against a baseline.

    `coverages` gives rows scored and expected by run; `sides` the runs themselves, from which metrics are
    computed that a comparison does not hold: of a slice, an outcome, a side of the losses, another k.
    `by_task` answers the queries of a policy, and `remarks` says which names in them no row has.
    """
    checks = [
        check
        for comparison in comparisons
        for check in _checks(policy, comparison, coverages, sides or {}, by_task, remarks)
    ]
    in_force = {waiver.label: waiver for waiver in policy.waivers if today <= waiver.expires}
    waived = [_waived(check, in_force.get(check.metric)) for check in checks]
    notes = [note for comparison in comparisons for note in gate_text.cautions(comparison)]
    notes += gate_text.waiver_notes(policy.waivers, waived, today)
    verdict = overall(waived) if waived else FAIL
    if not waived:
        notes.append("Nothing was compared, so nothing can pass.")
    if verdict == INCONCLUSIVE and policy.on_inconclusive == "fail":
        verdict = FAIL
        notes.append('The policy counts an inconclusive comparison as failed (on_inconclusive = "fail").')
    baseline = comparisons[0].baseline if comparisons else ""
    return Gate(policy.path, verdict, tuple(waived), tuple(notes), baseline, policy.question)


def overall(checks: Sequence[Checked]) -> str:
    """The gravest of what the checks can do, each by its tier."""
    return max(
        (WEIGHT[check.tier].get(check.verdict, PASS) for check in checks), key=ORDER.index, default=PASS
    )


def markdown(gate: Gate, command: str = "") -> str:
    """The gate as a comment for a pull request; `command` is what repeats it."""
    return gate_text.markdown(gate, command)


# ---- One candidate --------------------------------------------------------------------------------


def _checks(
    policy: Policy,
    comparison: Comparison,
    coverages: Mapping[str, tuple[int, int]],
    sides: Mapping[str, Side],
    by_task: ByTask | None,
    remarks: Mapping[str, str] | None,
) -> list[Checked]:
    if comparison.refused:
        text = f"the runs cannot be compared: {comparison.refused}"
        return [Checked(comparison.candidate, COMPARISON, "critical", FAIL, text)]
    return [
        _coverage(policy, comparison, coverages),
        _common(policy, comparison),
        *(_metric(policy, limit, comparison, sides, by_task, remarks) for limit in policy.metrics),
    ]


def _coverage(policy: Policy, comparison: Comparison, coverages: Mapping[str, tuple[int, int]]) -> Checked:
    """Rows that vanished must not make a score: of the baseline as little as of the candidate."""
    shares = {}
    for role, run in (("candidate", comparison.candidate), ("baseline", comparison.baseline)):
        scored, expected = coverages[run]
        shares[role] = (scored, expected, scored / expected if expected else 0.0)
    short = [share for _, _, share in shares.values() if share < policy.required_coverage - _SLACK]
    text = gate_text.coverage(shares, policy.required_coverage)
    return Checked(
        comparison.candidate,
        COVERAGE,
        "critical",
        FAIL if short else PASS,
        text,
        value=shares["candidate"][2],
    )


def _common(policy: Policy, comparison: Comparison) -> Checked:
    """A candidate that was evaluated on a part of the baseline's tasks shows nothing about the rest."""
    alignment = comparison.alignment
    common = len(alignment.common)
    total = common + len(alignment.removed) + len(alignment.modified) + len(alignment.missing_candidate)
    share = common / total if total else 0.0
    if share < policy.required_common - _SLACK:
        verdict = FAIL
    else:
        verdict = INCONCLUSIVE if common < policy.min_tasks else PASS
    text = gate_text.common(common, total, share, policy.required_common, policy.min_tasks)
    return Checked(comparison.candidate, COMMON, "critical", verdict, text, value=share, n=common)


def _metric(
    policy: Policy,
    limit: Limit,
    comparison: Comparison,
    sides: Mapping[str, Side],
    by_task: ByTask | None,
    remarks: Mapping[str, str] | None,
) -> Checked:
    found = measured(limit, comparison, sides, policy.question, by_task, remarks)
    if isinstance(found, str):
        text = f"not measured: {found}"
        return Checked(comparison.candidate, limit.label, limit.tier, INCONCLUSIVE, text)
    if found.unit == RATE and limit.absolute is not None and limit.absolute > 1:
        raise bad_policy(
            policy.path, f"the limit of {limit.label} is {limit.absolute:g}", "write 0.02 for two points"
        )
    allowed = _allowed(limit, found.baseline)
    of_change = of_floor = None
    if limit.absolute is not None or limit.relative is not None:
        of_change = _of_change(limit, found, allowed, comparison.identical)
    if limit.floor is not None:
        short = found.own - limit.floor if limit.is_cost else limit.floor - found.own
        of_floor = FAIL if short > _SLACK else PASS
    return Checked(
        candidate=comparison.candidate,
        metric=limit.label,
        tier=limit.tier,
        verdict=max((one for one in (of_change, of_floor) if one is not None), key=ORDER.index),
        text=gate_text.metric(limit, found, allowed, (of_change, of_floor), comparison, policy.question),
        baseline=found.baseline,
        value=found.candidate,
        change=found.change,
        low=found.low,
        high=found.high,
        bound=found.bound,
        allowed=allowed,
        n=found.n,
        remark=found.remark,
    )


def _allowed(limit: Limit, baseline: float) -> float | None:
    """How much worse the metric may be: where two limits are given both hold, so the stricter counts."""
    limits = [] if limit.absolute is None else [limit.absolute]
    if limit.relative is not None and abs(baseline) > 0:
        limits.append(limit.relative * abs(baseline))
    return min(limits, default=None)


def _of_change(limit: Limit, found: Measured, allowed: float | None, is_identical: bool) -> str:
    """PASS: a worse change than allowed is ruled out. FAIL: worse beyond chance, and by more than allowed."""
    if is_identical:
        return PASS
    if allowed is None or found.bound is None or found.low is None or found.high is None:
        return INCONCLUSIVE
    if limit.is_cost:
        is_ruled_out, is_worse, by = found.bound < allowed, found.low > 0, found.change
    else:
        is_ruled_out, is_worse, by = found.bound > -allowed, found.high < 0, -found.change
    if is_ruled_out:
        return PASS
    if is_worse and (found.p is None or found.p <= ALPHA):
        return FAIL if by > allowed + _SLACK else WARN
    return INCONCLUSIVE


def _waived(check: Checked, waiver: Waiver | None) -> Checked:
    """A waiver never makes the whole worse: what a tier does not count needs none."""
    is_grave = check.verdict == FAIL or WEIGHT[check.tier].get(check.verdict) == INCONCLUSIVE
    if waiver is None or not is_grave or check.tier == "advisory" or check.metric == COMPARISON:
        return check
    told = f"{check.verdict} waived until {waiver.expires.isoformat()}: {waiver.reason}"
    return msgspec.structs.replace(check, verdict=WARN, waived=told)

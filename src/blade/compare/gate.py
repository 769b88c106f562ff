"""Judge a candidate by a gate's policy: PASS, WARN, FAIL or INCONCLUSIVE, check by check, and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from statistics import NormalDist

from msgspec.structs import replace

from blade import hostile
from blade.compare.change_verdict import ALPHA, MAX_REPEATS, NEW
from blade.compare.gate_metrics import RATE, Evidence, Measured, measured
from blade.compare.gate_policy import COMMON, COVERAGE, Limit, Policy, Waiver, bad_policy
from blade.model import Checked, Comparison, Gate, Side
from blade.number_format import EXACT, MINUS, count, lost, percent, points

PASS, WARN, INCONCLUSIVE, FAIL = "PASS", "WARN", "INCONCLUSIVE", "FAIL"
# From the mildest. A critical question without an answer weighs more than one answered with a warning.
ORDER = (PASS, WARN, INCONCLUSIVE, FAIL)
# What a check of each tier can do to the whole; the verdicts not named do nothing.
WEIGHT = {
    "critical": {WARN: WARN, INCONCLUSIVE: INCONCLUSIVE, FAIL: FAIL},
    "supporting": {WARN: WARN, FAIL: WARN},
    "advisory": {},
}
# What each verdict means, for those who meet it in a pull request.
MEANING = {
    PASS: "No critical metric is worse than the policy allows, and the data suffice to say so.",
    WARN: "Nothing blocks, but something below is worse or is let pass by a waiver.",
    INCONCLUSIVE: "The data do not suffice to say whether a critical metric is worse than allowed.",
    FAIL: "A critical check failed.",
}
COMPARISON = "comparison"
_SLACK = 1e-9  # sums of floats miss a limit that is met exactly by less
_Z95 = NormalDist().inv_cdf(0.975)
_SEEN = _Z95 + NormalDist().inv_cdf(0.8)  # 5% two-sided, 80% power
_RULED_OUT = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(0.8)  # 5% one-sided, 80% power


def judge(
    policy: Policy, comparisons: Sequence[Comparison], coverages: Mapping[str, tuple[int, int]], today: date,
    sides: Mapping[str, Side] | None = None, by_task: Callable[[str, str], Mapping[str, float]] | None = None,
    remarks: Mapping[str, str] | None = None,
) -> Gate:
    """What the policy says of candidates compared with a baseline; `Evidence` explains the arguments."""
    evidence = Evidence(coverages, sides or {}, by_task, remarks or {})
    in_force = {waiver.label: waiver for waiver in policy.waivers if today <= waiver.expires}
    judged = (check for comparison in comparisons for check in _checks(policy, comparison, evidence))
    checks = [_waived(check, in_force.get(check.metric)) for check in judged]
    notes = list(_notes(comparisons, policy.waivers, checks, today))
    # the gravest of what the checks can do, each by its tier
    effects = (WEIGHT[check.tier].get(check.verdict, PASS) for check in checks)
    verdict = max(effects, key=ORDER.index, default=FAIL)
    if not checks:
        notes.append("Nothing was compared, so nothing can pass.")
    if verdict == INCONCLUSIVE and policy.on_inconclusive == "fail":
        verdict = FAIL
        notes.append('The policy counts an inconclusive comparison as failed (on_inconclusive = "fail").')
    baseline = comparisons[0].baseline if comparisons else ""
    return Gate(policy.path, verdict, tuple(checks), tuple(notes), baseline, policy.question)


# ---- One candidate --------------------------------------------------------------------------------


def _checks(policy: Policy, comparison: Comparison, evidence: Evidence) -> Iterator[Checked]:
    if comparison.refused:
        text = f"the runs cannot be compared: {comparison.refused}"
        yield Checked(comparison.candidate, COMPARISON, "critical", FAIL, text)
        return
    yield _coverage(policy, comparison, evidence.coverages)
    yield _common(policy, comparison)
    for limit in policy.metrics:
        measure = measured(limit, comparison, evidence, policy.question)
        if isinstance(measure, str):
            text = f"not measured: {measure}"
            yield Checked(comparison.candidate, limit.label, limit.tier, INCONCLUSIVE, text)
        else:
            yield _metric(policy, limit, comparison, measure)


def _coverage(policy: Policy, comparison: Comparison, coverages: Mapping[str, tuple[int, int]]) -> Checked:
    """Rows that vanished must not make a score: of the baseline as little as of the candidate."""
    shares, roles = [], []
    for role, run in (("candidate", comparison.candidate), ("baseline", comparison.baseline)):
        scored, expected = coverages[run]
        shares.append(scored / expected if expected else 0.0)
        roles.append(f"{role} {percent(shares[-1])} ({scored:,} of {expected:,} rows)")
    verdict = FAIL if min(shares) < policy.required_coverage - _SLACK else PASS
    text = f"{', '.join(roles)}; required {percent(policy.required_coverage)}"
    return Checked(comparison.candidate, COVERAGE, "critical", verdict, text, value=shares[0])


def _common(policy: Policy, comparison: Comparison) -> Checked:
    """A candidate that was evaluated on a part of the baseline's tasks shows nothing about the rest."""
    alignment = comparison.alignment
    common = len(alignment.common)
    total = common + len(alignment.removed) + len(alignment.modified) + len(alignment.missing_candidate)
    share = common / total if total else 0.0
    verdict = FAIL if share < policy.required_common - _SLACK else INCONCLUSIVE if common < policy.min_tasks else PASS
    text = (
        f"{common:,} of the baseline's {total:,} tasks ({percent(share)}) are compared; "
        f"required {percent(policy.required_common)}, at least {policy.min_tasks:,} tasks"
    )
    return Checked(comparison.candidate, COMMON, "critical", verdict, text, value=share, n=common)


def _metric(policy: Policy, limit: Limit, comparison: Comparison, measure: Measured) -> Checked:
    """What was measured, what is allowed, and why that gives the verdict."""
    if measure.unit == RATE and limit.absolute is not None and limit.absolute > 1:
        raise bad_policy(policy.path, f"the limit of {limit.label} is {limit.absolute:g}", "write 0.02 for two points")
    relative = limit.relative * abs(measure.baseline) if limit.relative is not None and measure.baseline else None
    # Where two limits are given both hold, so the stricter counts.
    allowed = min((part for part in (limit.absolute, relative) if part is not None), default=None)
    verdicts, parts = [], [_measured(measure)]
    if limit.absolute is not None or limit.relative is not None:
        verdict, reason = _of_change(limit, measure, allowed, comparison, policy.question)
        verdicts.append(verdict)
        parts.append(reason)
    if measure.remark:
        parts.append(measure.remark)
    if limit.floor is not None:
        short = measure.own - limit.floor if limit.is_cost else limit.floor - measure.own
        verdicts.append(FAIL if short > _SLACK else PASS)
        bound = f"at {'most' if limit.is_cost else 'least'} {value(limit.floor, measure.unit)}"
        parts.append(f"its own value {value(measure.own, measure.unit)}, {bound}: {'not ' * (short > _SLACK)}met")
    return Checked(
        candidate=comparison.candidate, metric=limit.label, tier=limit.tier,
        verdict=max(verdicts, key=ORDER.index), text="; ".join(parts),
        baseline=measure.baseline, value=measure.candidate, change=measure.change, low=measure.low, high=measure.high,
        bound=measure.bound, allowed=allowed, n=measure.n, remark=measure.remark,
    )  # fmt: skip


def _of_change(
    limit: Limit, measure: Measured, allowed: float | None, comparison: Comparison, question: str
) -> tuple[str, str]:
    """PASS: a worse change than allowed is ruled out. FAIL: worse beyond chance, and by more than allowed. And why."""
    if comparison.identical:
        return PASS, "both runs hold the same rows"
    way, worse = ("rise", 1) if limit.is_cost else ("drop", -1)  # the sign of a change for the worse
    if allowed is None:
        return INCONCLUSIVE, f"a relative {way} is not defined for a baseline of 0"
    most = size(allowed, measure.unit)
    if measure.bound is None or measure.low is None or measure.high is None:
        return INCONCLUSIVE, f"at most {most} of {way} allowed; there is no interval to judge it by"
    if worse * measure.bound < allowed:
        bound = "one-sided 95% bound" if measure.is_exact_bound else "end of the 95% interval"
        return PASS, f"a {way} of more than {most} is ruled out ({bound} {difference(measure.bound, measure.unit)})"
    is_worse = measure.low > 0 if limit.is_cost else measure.high < 0
    if is_worse and (measure.p is None or measure.p <= ALPHA):
        if worse * measure.change > allowed + _SLACK:
            return FAIL, f"the {way} is more than chance and exceeds the {most} allowed"
        return WARN, f"worse than chance explains, by no more than the {most} allowed, but more is not ruled out"
    resolve = _resolve(limit, measure, (measure.high - measure.low) / 2 / _Z95, allowed, comparison, question)
    return INCONCLUSIVE, f"a {way} of more than {most} is neither shown nor ruled out; {resolve}"


def _waived(check: Checked, waiver: Waiver | None) -> Checked:
    """A waiver never makes the whole worse: what a tier does not count needs none."""
    is_grave = check.verdict == FAIL or WEIGHT[check.tier].get(check.verdict) == INCONCLUSIVE
    if waiver is None or not is_grave or check.tier == "advisory" or check.metric == COMPARISON:
        return check
    text = f"{check.verdict} waived until {waiver.expires.isoformat()}: {waiver.reason}"
    return replace(check, verdict=WARN, waived=text)


# ---- In words -------------------------------------------------------------------------------------


def _measured(measure: Measured) -> str:
    before, after = value(measure.baseline, measure.unit), value(measure.candidate, measure.unit)
    ends = [difference(end, measure.unit) for end in (measure.low, measure.high) if end is not None]
    interval = f" [{ends[0].removesuffix(' points')}, {ends[1]}]" if len(ends) == 2 else ""
    return f"{before} → {after}: {difference(measure.change, measure.unit)}{interval} over {count(measure.n, 'task')}"


def _resolve(
    limit: Limit, measure: Measured, se: float, allowed: float, comparison: Comparison, question: str
) -> str:
    """What this comparison can see, and what an unchanged candidate would need to pass."""
    seen = f"changes from {size(_SEEN * se, measure.unit)} on are seen in 80 of 100 such comparisons"
    if allowed <= 0:
        return f"{seen}; with nothing allowed, only a candidate that is shown to be better passes"
    # A t interval and a bootstrap are a little wider than this normal law: a guide, not a promise.
    needed = measure.n * (_RULED_OUT * se / allowed) ** 2
    if needed <= measure.n:
        return f"{seen}; an unchanged candidate would pass in 80 of 100"
    ways = [f"{_about(needed):,} tasks"]
    if limit.name == "score" and limit.slice is None:
        repeats = _repeats(measure.n, allowed, comparison, question)
        ways += [] if repeats is None else [f"{repeats:,} repeats of each run"]
    return f"{seen}; for an unchanged candidate to pass in 80 of 100 it takes about {' or '.join(ways)}"


def _repeats(n: int, allowed: float, comparison: Comparison, question: str) -> int | None:
    """Repeats of each run at which a worse change is ruled out if there is none; None where none suffice."""
    power = comparison.power
    if power is None or power.sigma2_a is None or power.sigma2_b is None or power.omega2 is None:
        return None
    room = n * (allowed / _RULED_OUT) ** 2 - (power.omega2 if question == NEW else 0.0)
    repeats = (power.sigma2_a + power.sigma2_b) / room if room > 0 else math.inf
    return _about(repeats) if 0 < repeats <= MAX_REPEATS else None


def _notes(
    comparisons: Sequence[Comparison], waivers: Sequence[Waiver], checks: Sequence[Checked], today: date
) -> Iterator[str]:
    """What a reader must know beside the verdict."""
    for comparison in comparisons:
        name = hostile.line(comparison.candidate, 80)
        if comparison.identical:
            yield f"{name} holds the same rows as the baseline: nothing was evaluated anew."
        if changed := [hostile.line(s.key, 80) for s in comparison.config_diff if s.mechanical and s.known]:
            yield f"{name} differs from the baseline in what can move the score by itself: {', '.join(changed)}."
    used = {check.metric for check in checks if check.waived}
    for waiver in waivers:
        day = waiver.expires.isoformat()
        if waiver.expires < today:
            yield f"The waiver of {waiver.label} expired on {day} and is ignored: {waiver.reason}"
        elif waiver.label not in used:
            yield f"The waiver of {waiver.label} (until {day}) was not needed."


def markdown(gate: Gate, command: str = "") -> str:
    """A compact summary for a pull request; whatever comes from runs or policy is escaped."""
    say, code = hostile.markdown_inline, hostile.markdown_code
    candidates = list(dict.fromkeys(check.candidate for check in gate.checks))
    judged = ", ".join(code(name) for name in candidates) or "nothing"
    parts = [
        f"## Gate: {say(gate.verdict)}",
        f"{MEANING.get(gate.verdict, '')} {judged} against {code(gate.baseline)}, on {say(gate.question)}.",
        _table(gate, len(candidates) > 1),
    ]
    waived = [f"{check.metric} of {check.candidate}: {check.waived}" for check in gate.checks if check.waived]
    listed = [f"- {hostile.markdown_start(say(text))}" for text in (*waived, *gate.notes)]
    parts += ["\n".join(listed)] if listed else []
    again = command or f"blade compare BASELINE CANDIDATE --gate {hostile.argument(gate.policy) or 'POLICY.toml'}"
    parts.append("To repeat it:\n\n" + hostile.markdown_fence(hostile.line(again), "sh"))
    return "\n\n".join(parts) + "\n"


def _table(gate: Gate, has_many: bool) -> str:
    say = hostile.markdown_inline
    rows = [["Metric", "Tier", "Verdict", "Why"], ["---"] * 4]
    for check in gate.checks:
        verdict = check.verdict if check.verdict == PASS else f"**{check.verdict}**"
        rows.append([say(check.metric), check.tier, verdict, say(check.text)])
    if has_many:
        names = ["Candidate", "---", *(hostile.markdown_code(check.candidate, in_table=True) for check in gate.checks)]
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


# ---- Numbers --------------------------------------------------------------------------------------


def _about(number: float) -> int:
    """A whole number, rounded up to two figures: it rests on an estimate."""
    unit = int(10 ** max(0, math.floor(math.log10(max(number, 1))) - 1))
    return math.ceil(number / unit) * unit


def value(number: float, unit: str) -> str:
    return percent(number) if unit == RATE else _number(number)


def size(number: float, unit: str) -> str:
    """A difference without its sign."""
    return f"{lost(number)} points" if unit == RATE else _number(number)


def difference(number: float, unit: str) -> str:
    """A difference with its sign."""
    return points(number) if unit == RATE else "0" if abs(number) < EXACT else "+" * (number > 0) + _number(number)


def _number(number: float) -> str:
    return f"{number:{',.0f' if abs(number) >= 1000 else '.4g'}}".replace("-", MINUS)

"""Put the checks of a gate into words, and the whole gate into Markdown for a pull request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from statistics import NormalDist

from blade import hostile
from blade.compare.gate.metrics import RATE, Measured
from blade.compare.gate.policy import Limit, Waiver
from blade.compare.verdict import MAX_REPEATS, NEW
from blade.model import Checked, Comparison, Gate

MINUS = "−"
_Z95 = NormalDist().inv_cdf(0.975)
_SEEN = _Z95 + NormalDist().inv_cdf(0.8)  # 5% two-sided, 80% power
_RULED_OUT = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(0.8)  # 5% one-sided, 80% power

# What each verdict means, for those who meet it in a pull request.
MEANING = {
    "PASS": "No critical metric is worse than the policy allows, and the data suffice to say so.",
    "WARN": "Nothing blocks, but something below is worse or is let pass by a waiver.",
    "INCONCLUSIVE": "The data do not suffice to say whether a critical metric is worse than allowed.",
    "FAIL": "A critical check failed.",
}


# ---- One check ------------------------------------------------------------------------------------


def metric(
    limit: Limit,
    found: Measured,
    allowed: float | None,
    verdicts: tuple[str | None, str | None],
    comparison: Comparison,
    question: str,
) -> str:
    """What was measured, what is allowed, and why that gives the verdict."""
    of_change, of_floor = verdicts
    parts = [_measured(found)]
    if of_change is not None:
        parts.append(_reason(limit, found, allowed, of_change, comparison, question))
    parts += [found.remark] if found.remark else []
    if of_floor is not None and limit.floor is not None:
        bound = f"at {'most' if limit.is_cost else 'least'} {value(limit.floor, found.unit)}"
        met = "met" if of_floor == "PASS" else "not met"
        parts.append(f"its own value {value(found.own, found.unit)}, {bound}: {met}")
    return "; ".join(parts)


def _measured(found: Measured) -> str:
    before, after = value(found.baseline, found.unit), value(found.candidate, found.unit)
    interval = ""
    if found.low is not None and found.high is not None:
        low, high = (difference(end, found.unit) for end in (found.low, found.high))
        interval = f" [{low.removesuffix(' points')}, {high}]"
    tasks = f"{found.n:,} task{'s' if found.n != 1 else ''}"
    return f"{before} → {after}: {difference(found.change, found.unit)}{interval} over {tasks}"


def _reason(
    limit: Limit,
    found: Measured,
    allowed: float | None,
    verdict: str,
    comparison: Comparison,
    question: str,
) -> str:
    way = "rise" if limit.is_cost else "drop"
    if comparison.identical:
        return "both runs hold the same rows"
    if allowed is None:
        return f"a relative {way} is not defined for a baseline of 0"
    most = size(allowed, found.unit)
    if found.bound is None:
        return f"at most {most} of {way} allowed; there is no interval to judge it by"
    if verdict == "PASS":
        bound = "one-sided 95% bound" if found.is_exact_bound else "end of the 95% interval"
        return f"a {way} of more than {most} is ruled out ({bound} {difference(found.bound, found.unit)})"
    if verdict == "FAIL":
        return f"the {way} is more than chance and exceeds the {most} allowed"
    if verdict == "WARN":
        return f"worse than chance explains, by no more than the {most} allowed, but more is not ruled out"
    resolve = _resolve(limit, found, allowed, comparison, question)
    return f"a {way} of more than {most} is neither shown nor ruled out; {resolve}"


def _resolve(limit: Limit, found: Measured, allowed: float, comparison: Comparison, question: str) -> str:
    """What this comparison can see, and what an unchanged candidate would need to pass."""
    if found.low is None or found.high is None:
        return "there is no interval to judge it by"
    se = (found.high - found.low) / 2 / _Z95
    seen = f"changes from {size(_SEEN * se, found.unit)} on are seen in 80 of 100 such comparisons"
    if allowed <= 0:
        return f"{seen}; with nothing allowed, only a candidate that is shown to be better passes"
    # A t interval and a bootstrap are a little wider than this normal law: a guide, not a promise.
    needed = found.n * (_RULED_OUT * se / allowed) ** 2
    if needed <= found.n:
        return f"{seen}; an unchanged candidate would pass in 80 of 100"
    ways = [f"{_about(needed):,} tasks"]
    if limit.name == "score" and limit.slice is None:
        repeats = _repeats(found.n, allowed, comparison, question)
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


def coverage(shares: Mapping[str, tuple[int, int, float]], required: float) -> str:
    told = [
        f"{role} {percent(share)} ({scored:,} of {expected:,} rows)"
        for role, (scored, expected, share) in shares.items()
    ]
    return f"{', '.join(told)}; required {percent(required)}"


def common(n: int, total: int, share: float, required: float, least: int) -> str:
    told = f"{n:,} of the baseline's {total:,} tasks ({percent(share)}) are compared"
    return f"{told}; required {percent(required)}, at least {least:,} tasks"


# ---- Notes ----------------------------------------------------------------------------------------


def cautions(comparison: Comparison) -> Iterator[str]:
    """What a reader must know beside the verdict."""
    name = hostile.line(comparison.candidate, 80)
    if comparison.identical:
        yield f"{name} holds the same rows as the baseline: nothing was evaluated anew."
    changed = [setting.key for setting in comparison.config_diff if setting.mechanical and setting.known]
    if changed:
        listed = ", ".join(hostile.line(key, 80) for key in changed)
        yield f"{name} differs from the baseline in what can move the score by itself: {listed}."


def waiver_notes(waivers: Sequence[Waiver], checks: Sequence[Checked], today: date) -> Iterator[str]:
    used = {check.metric for check in checks if check.waived}
    for waiver in waivers:
        day = waiver.expires.isoformat()
        if waiver.expires < today:
            yield f"The waiver of {waiver.label} expired on {day} and is ignored: {waiver.reason}"
        elif waiver.label not in used:
            yield f"The waiver of {waiver.label} (until {day}) was not needed."


# ---- Markdown -------------------------------------------------------------------------------------


def markdown(gate: Gate, command: str = "") -> str:
    """A compact summary; whatever comes from runs or policy is escaped."""
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
    if listed:
        parts.append("\n".join(listed))
    parts.append("To repeat it:\n\n" + hostile.markdown_fence(hostile.line(command or _command(gate)), "sh"))
    return "\n\n".join(parts) + "\n"


def _table(gate: Gate, has_many: bool) -> str:
    say = hostile.markdown_inline
    head = ["Metric", "Tier", "Verdict", "Why"]
    rows = [[say(check.metric), check.tier, _verdict(check), say(check.text)] for check in gate.checks]
    if has_many:
        head = ["Candidate", *head]
        names = [hostile.markdown_code(check.candidate, in_table=True) for check in gate.checks]
        rows = [[name, *row] for name, row in zip(names, rows, strict=True)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def _verdict(check: Checked) -> str:
    return check.verdict if check.verdict == "PASS" else f"**{check.verdict}**"


def _command(gate: Gate) -> str:
    return f"blade compare BASELINE CANDIDATE --gate {hostile.argument(gate.policy) or 'POLICY.toml'}"


# ---- Numbers --------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """A share as percent; 0% and 100% only when exact."""
    if share in (0, 1):
        return f"{share:.0%}"
    if 0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1:
        return ">99.9%"
    return f"{100 * share:.1f}%".replace("-", MINUS)


def _about(number: float) -> int:
    """A whole number, rounded up to two figures: it rests on an estimate."""
    unit = int(10 ** max(0, math.floor(math.log10(max(number, 1))) - 1))
    return math.ceil(number / unit) * unit


def value(number: float, unit: str) -> str:
    return percent(number) if unit == RATE else _number(number)


def size(number: float, unit: str) -> str:
    """A difference without its sign."""
    if unit != RATE:
        return _number(number)
    points = 100 * number
    return f"{points:.1f} points" if points >= 0.05 or points == 0 else "<0.1 points"


def difference(number: float, unit: str) -> str:
    """A difference with its sign."""
    if abs(number) < 1e-12:
        return "0 points" if unit == RATE else "0"
    return ("+" if number > 0 else MINUS) + size(abs(number), unit)


def _number(number: float) -> str:
    if abs(number) >= 1000:
        return f"{number:,.0f}".replace("-", MINUS)
    return f"{number:.4g}".replace("-", MINUS)

"""Turn a run into the numbers of its metrics sidecar, and hold a sidecar against them and its report."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from blade.package import files
from blade.package.validate.phases import METRICS, Check, plural

if TYPE_CHECKING:
    from blade.model import Report
    from blade.report.facts import Facts

IDENTITY = ("model", "model_name", "benchmark", "pass_at_1", "num_tasks", "total_tasks")
RATES = ("pass_at_1", "pass_at_k", "consistency", "coverage", "clean_pass_at_1", "mean_reward")
_NAMED = {  # what a line says that states the number
    "pass_at_1": re.compile(r"pass@1|pass_at_1|pass rate|success rate|accuracy|resolv", re.IGNORECASE),
    "total_tasks": re.compile(r"task|problem|instance|question|item", re.IGNORECASE),
}
TOLERANCE = 0.005  # of a rate that somebody rounded
_ALSO = {  # other keys that sidecars use for the same number
    "n_tasks": "total_tasks",
    "n_rollouts": "total_rollouts",
    "always_pass": "always_pass_tasks",
    "sometimes_pass": "sometimes_pass_tasks",
    "always_fail": "always_fail_tasks",
    "never_pass_tasks": "always_fail_tasks",
}


def sidecar(run: Facts, model: str, benchmark: str) -> dict[str, Any]:
    """The metrics sidecar of a golden report: what tools around such reports read, and the rest of a run."""
    from blade.report.metrics import metrics

    return {**metrics(run), "model": run.run.model or model, "model_name": model, "benchmark": benchmark}


def identity_checks(name: str, told: Any) -> Iterator[Check]:
    """Whether a sidecar is an object that says whose numbers it holds."""
    yield Check(isinstance(told, dict), f"{name}: metrics JSON parses", METRICS)
    if not isinstance(told, dict):
        return
    known = [key for key in IDENTITY if key in told]
    yield Check(len(known) >= 3, f"{name}: contains common metric identity fields", METRICS)
    for what, keys in (("model", ("model_name", "model")), ("benchmark", ("benchmark",))):
        given = [key for key in keys if key in told]
        named = any(isinstance(told[key], str) and told[key].strip() for key in given)
        if not given:
            yield Check(False, f"{name}: names no {what}", METRICS)
        elif not named:
            yield Check(False, f"{name}: {given[0]} is {files.compact(told[given[0]])}, not a name", METRICS)
    for key in RATES:
        wrong = _no_fraction(told[key]) if key in told else ""
        if wrong:
            yield Check(False, f"{name}: {key} is {files.compact(told[key])}, {wrong}", METRICS)


def match_checks(
    name: str, told: Mapping[str, Any], expected: Mapping[str, tuple[float, ...]]
) -> Iterator[Check]:
    """Every number of a sidecar that the rollouts give too; one line for each that they give otherwise."""
    right = 0
    wrong = []
    for key, value in told.items():
        allowed = expected.get(_ALSO.get(key, key))
        if not allowed or value is None or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if key in RATES and _no_fraction(value):
            continue  # told already
        if any(_agrees(value, one, key) for one in allowed):
            right += 1
        else:
            says = " or ".join(dict.fromkeys(_spelled(one) for one in allowed))
            wrong.append(
                Check(False, f"{name}: {key} is {_spelled(value)}, the rollouts say {says}", METRICS)
            )
    yield from wrong
    if not wrong:
        result = (
            f"{plural(right, 'number')} match the rollouts"
            if right
            else "holds no number to hold against the rollouts"
        )
        yield Check(right > 0, f"{name}: {result}", METRICS)


def expected(run: Facts) -> dict[str, tuple[float, ...]]:
    """What the rollouts say under each key of a sidecar; several where honest readings differ."""
    from blade.report.metrics import metrics

    found: dict[str, tuple[float, ...]]
    found = {key: (float(value),) for key, value in metrics(run).items() if _is_number(value)}
    counted = run.run.coverage

    def also(key: str, *values: float | None) -> None:
        found[key] = (*found.get(key, ()), *(float(value) for value in values if value is not None))

    for name in ("pass_at_1_micro", "missing_as_fail"):
        also("pass_at_1", _value(run, name))
    if run.run.score_name != "pass_at_1":
        also("mean_reward", _value(run, "mean_reward"), _value(run, "mean_reward_micro"))
    at_k = [run.measure("pass_at_k", k) for k in run.ks("pass_at_k")]
    also("pass_at_k", _value(run, "solved"), *(one.value for one in at_k if one is not None))
    surplus = counted.duplicates + counted.superseded
    for key in ("total_rollouts", "num_rollouts"):
        also(key, counted.expected, counted.scored, run.run.n_rollouts + surplus)
    for key in ("total_tasks", "num_tasks"):
        also(key, run.run.n_tasks - len(run.buckets.missing))
    for passed in found.get("passed_rollouts", ())[:1]:
        also("failed_rollouts", counted.expected - passed, run.run.n_rollouts - passed)
    return found


def in_report(name: str, told: Mapping[str, Any], text: str) -> Iterator[Check]:
    """Whether the headline numbers of a sidecar stand in its report."""
    from blade.prose.slots import agrees, slots

    absent, looked = [], 0
    for key, named in _NAMED.items():
        value: Any = told.get(key)
        if not _is_number(value) or (key in RATES and _no_fraction(value)):
            continue
        looked += 1
        lines = [line[:20_000] for line in text.splitlines()]
        lines = [line for line in lines if named.search(line)] or lines
        found = [slot for line in lines for slot in slots(line) if slot.value is not None]
        if key in RATES:
            found = [slot for slot in found if slot.unit == "%" or slot.digits]  # `1` is a count
        if not any(agrees(slot, float(value)) or _rounds_to(value, slot.value) for slot in found):
            absent.append(f"{key} {_spelled(value)}")
    wrong = f"{' and '.join(absent)} {'do' if len(absent) > 1 else 'does'} not stand in the report"
    if looked:
        result = wrong if absent else "its headline numbers stand in the report"
        yield Check(not absent, f"{name}: {result}", METRICS)


def facts_of(report: Report) -> Facts:
    """The first run of a report."""
    from blade.report.facts import facts

    return facts(report)[0]


def _value(run: Facts, name: str) -> float | None:
    found = run.measure(name)
    return found.value if found else None


def _agrees(value: float, expected: float, key: str) -> bool:
    if key in RATES:
        return abs(value - expected) <= TOLERANCE
    return math.isclose(value, expected, rel_tol=1e-3, abs_tol=1e-9 if expected == int(expected) else 5e-4)


def _rounds_to(value: float, told: float | None) -> bool:
    """Whether a number of a sidecar is one of its report with fewer decimals, two at least."""
    places = len(repr(value).partition(".")[2])
    return told is not None and places >= 2 and round(told, places) == value


def _no_fraction(value: Any) -> str:
    """What is wrong with a rate; nothing if it is a fraction, or not told."""
    if value is None:
        return ""
    if not _is_number(value):
        return "not a number"
    if 1 < value <= 100:
        return "a percentage; sidecars hold fractions"
    return "" if 0 <= value <= 1 else "not a fraction between 0 and 1"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _spelled(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e12 else f"{value:.4g}"

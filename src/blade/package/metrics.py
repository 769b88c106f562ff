"""Write the metrics sidecar of a report, and compare a sidecar with the rollouts and its report."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from blade.errors import BladeError
from blade.package import files
from blade.package.validate.phases import METRICS, Check, plural

if TYPE_CHECKING:
    from blade.package.worlds import Worlds
    from blade.query.figures import Figure
    from blade.query.ground import Ground
    from blade.report.facts import Facts

IDENTITY = ("model", "model_name", "benchmark", "pass_at_1", "num_tasks", "total_tasks")
RATES = ("pass_at_1", "pass_at_k", "consistency", "coverage", "mean_reward")
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


_COUNTED = ("n_tasks", "n_rollouts", "expected", "scored", "duplicates", "superseded", "repeats")
_QUERIES = {  # by key of a sidecar
    "pass_at_1": (
        "pass_at_1",
        "rate",
        "select count(*) filter (where passed) / max(expected) from rollouts, runs",
    ),
    "score_low": ("pass_at_1.low",),
    "score_high": ("pass_at_1.high",),
    "score": ("select score from runs",),
    "mean_reward": ("select avg(reward) from tasks", "mean(reward)"),
    "pass_at_k": ("pass_at_k({k})", "select avg((passes > 0)::int) from tasks"),
    "consistency": ("pass_hat_k({k})",),
    "total_tasks": ("tasks", "select n_tasks from runs"),
    "num_tasks": ("tasks", "select n_tasks from runs"),
    "passed_rollouts": ("count where passed",),
    "failed_rollouts": ("count where not passed",),
    "always_pass_tasks": ("select count(*) from tasks where bucket = 'always'",),
    "sometimes_pass_tasks": ("select count(*) from tasks where bucket = 'sometimes'",),
    "always_fail_tasks": ("select count(*) from tasks where bucket = 'never'",),
    "missing_tasks": ("select count(*) from tasks where bucket = 'missing'",),
}
MAX_K = 16
_COMMENT = re.compile(r"<!--.*?-->")


def sidecar(run: Facts, model: str, benchmark: str) -> dict[str, Any]:
    """The metrics sidecar of a golden report: what tools around such reports read, and the rest of a run."""
    from blade.report.metrics import metrics

    return {**metrics(run), "model": run.run.model or model, "model_name": model, "benchmark": benchmark}


def identity_checks(name: str, sidecar: Any) -> Iterator[Check]:
    """Whether a sidecar is an object that says whose numbers it holds."""
    yield Check(isinstance(sidecar, dict), f"{name}: metrics JSON parses", METRICS)
    if not isinstance(sidecar, dict):
        return
    known = [key for key in IDENTITY if key in sidecar]
    yield Check(len(known) >= 3, f"{name}: contains common metric identity fields", METRICS)
    for what, keys in (("model", ("model_name", "model")), ("benchmark", ("benchmark",))):
        given = [key for key in keys if key in sidecar]
        named = any(isinstance(sidecar[key], str) and sidecar[key].strip() for key in given)
        if not given:
            yield Check(False, f"{name}: names no {what}", METRICS)
        elif not named:
            wrong = f"{given[0]} is {files.compact(sidecar[given[0]])}, not a name"
            yield Check(False, f"{name}: {wrong}", METRICS)
    for key in RATES:
        wrong = _no_fraction(sidecar[key]) if key in sidecar else ""
        if wrong:
            yield Check(False, f"{name}: {key} is {files.compact(sidecar[key])}, {wrong}", METRICS)


def match_checks(
    name: str, sidecar: Mapping[str, Any], expected: Mapping[str, tuple[float, ...]]
) -> Iterator[Check]:
    """Every number of a sidecar that the rollouts give too; one line for each that they give otherwise."""
    right = others = 0
    wrong = []
    for key, value in sidecar.items():
        allowed = expected.get(_ALSO.get(key, key))
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not allowed:
            others += 1
            continue
        if key in RATES and _no_fraction(value):
            continue  # reported already
        if any(_agrees(value, number, key) for number in allowed):
            right += 1
        else:
            says = " or ".join(dict.fromkeys(_spelled(number) for number in allowed))
            wrong.append(f"{name}: {key} is {_spelled(value)}, the rollouts say {says}")
    yield from (Check(False, text, METRICS) for text in wrong)
    if not wrong:
        verb = "matches" if right == 1 else "match"
        result = f"{plural(right, 'number')} {verb} the rollouts" if right else "no number can be compared"
        result += f", {plural(others, 'other')} could not be compared" if right and others else ""
        yield Check(right > 0, f"{name}: {result}", METRICS)


def expected(worlds: Worlds, keys: Iterable[str]) -> dict[str, tuple[float, ...]]:
    """What the rollouts say under some keys of a sidecar; several where honest readings differ."""
    wanted = {_ALSO.get(key, key) for key in keys} | {"passed_rollouts"}
    counted = dict(zip(_COUNTED, worlds.own(f"select {', '.join(_COUNTED)} from runs")[0], strict=True))
    repeats = max(1, min(int(counted["repeats"] or 1), MAX_K))
    queries = {key: [text.format(k=repeats) for text in _QUERIES[key]] for key in wanted & _QUERIES.keys()}
    if "pass_at_k" in queries:
        queries["pass_at_k"] += [f"pass_at_k({k})" for k in range(1, repeats + 1)]
    values = {key: tuple(_asked(worlds.home.ground, texts)) for key, texts in queries.items()}
    passed = values["passed_rollouts"][:1]
    rollouts = [counted["n_rollouts"], counted["expected"], counted["scored"]]
    rollouts.append(counted["n_rollouts"] + counted["duplicates"] + counted["superseded"])
    values |= dict.fromkeys(("total_rollouts", "num_rollouts"), tuple(map(float, rollouts)))
    values["expected_rollouts"] = (float(counted["expected"]),)
    less = tuple(float(count) - n for n in passed for count in rollouts[:2])
    values["failed_rollouts"] = (*values.get("failed_rollouts", ()), *less)
    values["coverage"] = (counted["scored"] / counted["expected"],) if counted["expected"] else ()
    values["repeats"] = (float(counted["repeats"]),)
    return values


def _asked(ground: Ground, queries: Iterable[str]) -> Iterator[float]:
    from blade.query.ground import value

    for query in queries:
        try:
            number = value(query, ground)
        except BladeError:
            continue
        if _is_number(number):
            yield float(number)


def in_report(name: str, sidecar: Mapping[str, Any], text: str) -> Iterator[Check]:
    """Whether the headline numbers of a sidecar stand in its report."""
    from blade.package.judge.statements import Tasks, figures
    from blade.query.figures import agrees

    absent, looked = [], 0
    for key, named in _NAMED.items():
        value: Any = sidecar.get(key)
        if not _is_number(value) or (key in RATES and _no_fraction(value)):
            continue
        looked += 1
        lines = [line[:20_000] for line in text.splitlines()]
        lines = [line for line in lines if named.search(line)] or lines
        numbers = [figure for line in lines for figure in figures(_COMMENT.sub("", line), Tasks())]
        if key in RATES:
            numbers = [figure for figure in numbers if figure.is_percent or figure.step < 1]  # `1` is a count
        if not any(agrees(figure, float(value)) or _rounds_to(value, _plain(figure)) for figure in numbers):
            absent.append(f"{key} {_spelled(value)}")
    wrong = f"{' and '.join(absent)} {'do' if len(absent) > 1 else 'does'} not stand in the report"
    if looked:
        result = wrong if absent else "its headline numbers stand in the report"
        yield Check(not absent, f"{name}: {result}", METRICS)


def _plain(figure: Figure) -> float:
    return figure.number / 100 if figure.is_percent else figure.number


def _agrees(value: float, expected: float, key: str) -> bool:
    if key in RATES:
        return abs(value - expected) <= TOLERANCE
    return math.isclose(value, expected, rel_tol=1e-3, abs_tol=1e-9 if expected == int(expected) else 5e-4)


def _rounds_to(value: float, printed: float | None) -> bool:
    """Whether a number of a sidecar is one of its report with fewer decimals, two at least."""
    places = len(repr(value).partition(".")[2])
    return printed is not None and places >= 2 and round(printed, places) == value


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

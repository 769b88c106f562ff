"""Read the policy of a gate: what it accepts, key by key."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from blade.compare.change_verdict import NEW, THESE
from blade.compare.change_views import OUTCOMES as FLAGS
from blade.compare.shifts import UNITS
from blade.errors import NothingToRead, Unreadable
from blade.model import SIDES

QUESTIONS = (NEW, THESE)
ON_INCONCLUSIVE = ("pass", "fail")
TIERS = ("critical", "supporting", "advisory")

# What a metric may be called. More is better of the first, less of the others.
GAINS = ("score", "pass_at_1", "mean_reward", "pass_at_k", "pass_hat_k", "solved", "consistency")
# What nothing explains counts for the model, so that the four add up to 1 - score.
LOSSES = {**{f"{side.replace(' ', '_')}_losses": (side,) for side in SIDES[:-2]}, "model_losses": SIDES[-2:]}
OUTCOMES = {name.replace(" ", "_"): name for name in FLAGS}
COSTS = (*UNITS, *OUTCOMES, *LOSSES)
QUERY = "query"  # a metric that is asked of the tables
NEEDS_K = ("pass_at_k", "pass_hat_k")
# Checks that every policy makes; a waiver may name them too.
COVERAGE, COMMON = "coverage", "common tasks"

_KEYS = ("question", "required_coverage", "required_common", "min_tasks", "on_inconclusive", "metric", "waiver")
_DROPS = ("max_drop", "max_relative_drop", "min_value")
_RISES = ("max_rise", "max_relative_rise", "max_value")
_METRIC_KEYS = ("name", "query", "slice", "tier", *_DROPS, *_RISES)
_WAIVER_KEYS = ("metric", "slice", "reason", "expires")
_SHORT = re.compile(r"pass(?P<kind>[@^])(?P<k>[1-9][0-9]*)")


@dataclass(frozen=True)
class Limit:
    """How much worse a candidate may be in one metric."""

    label: str  # as the policy names it
    name: str  # as the comparison names it
    k: int | None
    slice: tuple[str, str] | None  # field, value
    tier: str
    absolute: float | None  # how much worse, in the unit of the metric
    relative: float | None  # how much worse, as a share of the baseline
    floor: float | None  # what its own value must reach; for a cost, what it must not exceed
    is_cost: bool  # less is better
    query: str | None = None  # in the short form, asked of each task


@dataclass(frozen=True)
class Waiver:
    label: str  # of the metric it lets pass
    reason: str
    expires: date  # the last day on which it holds


@dataclass(frozen=True)
class Policy:
    path: str
    metrics: tuple[Limit, ...]
    question: str = NEW
    required_coverage: float = 0.95
    required_common: float = 0.95
    min_tasks: int = 20
    on_inconclusive: str = "pass"
    waivers: tuple[Waiver, ...] = ()


class _Fault(Exception):
    """What is wrong with a policy, and what to do about it where that is not plain."""


def read_policy(path: str | Path) -> Policy:
    """The policy in a TOML file; every fault in it is an error that says what to write instead."""
    try:
        return policy(tomllib.loads(Path(path).read_text(encoding="utf-8")), str(path))
    except FileNotFoundError as error:
        hint = "check the path given with --gate"
        raise NothingToRead(f"there is no policy at {path}", hint, "no-such-path") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        hint = "give a readable TOML file with --gate"
        raise Unreadable(f"cannot read the policy {path}: {reason}", hint, "unreadable-file") from error
    except tomllib.TOMLDecodeError as error:
        raise bad_policy(path, f"it is not valid TOML: {error}", "put texts in quotes, dates without") from error
    except _Fault as fault:
        raise bad_policy(path, *fault.args) from fault


def bad_policy(path: str | Path, message: str, hint: str = "") -> Unreadable:
    """The error for a policy that is there and says what it cannot mean."""
    return Unreadable(f"the policy {path} cannot be used: {message}", hint or "docs/gate.md explains every key", "bad-policy")


def policy(data: Mapping[str, Any], path: str) -> Policy:
    """What the keys of a policy say."""
    _known(data, _KEYS, "the policy")
    metrics = [_limit(entry, f"metric {i}") for i, entry in enumerate(_tables(data, "metric"), 1)]
    if not metrics:
        raise _Fault("it names no metric", 'add a [[metric]] table with a name, such as "score", and max_drop')
    labels = [limit.label for limit in metrics]
    for label in labels:
        if labels.count(label) > 1:
            raise _Fault(f"the metric {label} is given twice", "keep one table for each metric and slice")
    waivers = [_waiver(entry, f"waiver {i}", labels) for i, entry in enumerate(_tables(data, "waiver"), 1)]
    min_tasks = data.get("min_tasks", 20)
    if type(min_tasks) is not int or min_tasks < 2:
        raise _Fault(f"min_tasks must be a whole number from 2, and is {min_tasks!r}")
    question = _choice(data, "question", QUESTIONS)
    on_inconclusive = _choice(data, "on_inconclusive", ON_INCONCLUSIVE)
    coverage, common = _share(data, "required_coverage"), _share(data, "required_common")
    return Policy(path, tuple(metrics), question, coverage, common, min_tasks, on_inconclusive, tuple(waivers))


# ---- Metrics and waivers --------------------------------------------------------------------------


def _limit(entry: Mapping[str, Any], where: str) -> Limit:
    _known(entry, _METRIC_KEYS, where)
    query = _text(entry, "query", where) if "query" in entry else None
    if query is not None and "name" in entry:
        raise _Fault(f"{where} has a name and a query", "give one of them")
    label = query if query is not None else _text(entry, "name", where)
    name, k = (QUERY, None) if query is not None else _metric(label)
    where = f"metric {label}"
    is_cost = name in COSTS or (query is not None and any(key in entry for key in _RISES))
    wrong, right = (_DROPS, _RISES) if is_cost else (_RISES, _DROPS)
    for bad, good in zip(wrong, right, strict=True):
        if bad in entry:
            better = "less is better" if is_cost else "more is better"
            raise _Fault(f"{where} has {bad}, but {better} of it", f"write {good} instead")
    absolute, relative, floor = (_number(entry, key, where) for key in right)
    if absolute is None and relative is None and floor is None:
        raise _Fault(f"{where} sets no limit", f"give {right[0]}, {right[1]} or {right[2]}")
    for key, value in zip(right[:2], (absolute, relative), strict=True):
        if value is not None and value < 0:
            raise _Fault(f"{where}: {key} must not be negative", "write 0.02 for two points")
    if relative is not None and relative > 1 and not is_cost:
        raise _Fault(f"{where}: {right[1]} is a share of the baseline", "write 0.05 for five percent")
    is_rate = name in (*OUTCOMES, *LOSSES) or not (is_cost or name in ("score", "mean_reward", QUERY))
    if is_rate and absolute is not None and absolute > 1:
        raise _Fault(f"{where}: {right[0]} is in points of a rate", "write 0.02 for two points")
    part = _slice(entry, where)
    if part is not None and name != "score":
        raise _Fault(f"{where}: only the score is judged by slice", 'write name = "score"')
    tier = _choice(entry, "tier", TIERS)
    return Limit(_label(label, part), name, k, part, tier, absolute, relative, floor, is_cost, query)


def _metric(label: str) -> tuple[str, int | None]:
    """The name of a metric as a comparison knows it, and its k."""
    short = _SHORT.fullmatch(label.strip())
    if short is not None:
        k = int(short["k"])
        return ("pass_at_1", None) if k == 1 else ("pass_at_k" if short["kind"] == "@" else "pass_hat_k", k)
    name = label.strip().lower().replace(" ", "_")
    if name in NEEDS_K:
        raise _Fault(f"metric {label} needs its k", 'write "pass@4" or "pass^4"')
    if name not in (*GAINS, *COSTS):
        shown = [*(word for word in (*GAINS, *COSTS) if word not in NEEDS_K), "pass@4", "pass^4"]
        raise _Fault(f"there is no metric {label!r}", _meant(name, shown))
    return name, None


def _slice(entry: Mapping[str, Any], where: str) -> tuple[str, str] | None:
    if "slice" not in entry:
        return None
    field, equals, value = _text(entry, "slice", where).partition("=")
    if not (field.strip() and equals and value.strip()):
        raise _Fault(f"{where}: slice must name a field and its value", 'write slice = "category=hard"')
    return field.strip(), value.strip()


def _label(name: str, part: tuple[str, str] | None) -> str:
    return name.strip() if part is None else f"{name.strip()} where {part[0]}={part[1]}"


def _waiver(entry: Mapping[str, Any], where: str, labels: list[str]) -> Waiver:
    _known(entry, _WAIVER_KEYS, where)
    label = _label(_text(entry, "metric", where), _slice(entry, where))
    allowed = [*labels, COVERAGE, COMMON]
    if label not in allowed:
        raise _Fault(f"{where} is for {label!r}, which the policy does not check", _meant(label, allowed))
    reason = _text(entry, "reason", where)
    expires = entry.get("expires")
    if type(expires) is not date:  # a time of day is a date to Python too
        raise _Fault(f"{where} needs the day on which it expires", "write expires = 2026-12-31, without quotes")
    return Waiver(label, reason, expires)


# ---- Keys and values ------------------------------------------------------------------------------


def _known(data: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in data:
        if key not in keys:
            raise _Fault(f"{where} has no key {key!r}", _meant(key, list(keys)))


def _meant(word: str, known: list[str]) -> str:
    near = get_close_matches(word, known, 1, 0.6)
    return f"did you mean {near[0]}?" if near else f"it may be one of {', '.join(known)}"


def _tables(data: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    tables = data.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(entry, dict) for entry in tables):
        raise _Fault(f"{key} must be a list of tables", f"head each of them with [[{key}]], in two brackets")
    return tables


def _text(data: Mapping[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if value is None:
        raise _Fault(f"{where} needs a {key}")
    if not isinstance(value, str) or not value.strip():
        raise _Fault(f"{where}: {key} must be a text with words in it")
    return value


def _choice(data: Mapping[str, Any], key: str, choices: tuple[str, ...]) -> str:
    value = data.get(key, choices[0])
    if value not in choices:
        raise _Fault(f"{key} must be one of {', '.join(choices)}, and is {value!r}")
    return str(value)


def _number(data: Mapping[str, Any], key: str, where: str) -> float | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise _Fault(f"{where}: {key} must be a number, and is {value!r}")
    return float(value)


def _share(data: Mapping[str, Any], key: str) -> float:
    value = _number(data, key, "the policy")
    if value is not None and not 0 <= value <= 1:
        raise _Fault(f"{key} must be from 0 to 1, and is {value:g}", "write 0.95 for 95%")
    return 0.95 if value is None else value

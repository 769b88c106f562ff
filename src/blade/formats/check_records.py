"""Decide what a value, a record or a list says of a check: its status, its name, and whether it failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from blade.formats.rollout_steps import quotable

MAX_CHECKS = 500  # of one value of one row
MAX_TEXT = 200
PASSED, FAILED, OTHER = "passed", "failed", "other"
# Few general words: a status that is none of them is `other`, and is told as it stands.
_GOOD = "passed pass ok okay success succeeded successful true yes correct met satisfied resolved accepted ac"
_BAD = "failed fail failure error errored false no incorrect wrong unmet timeout xfail wa tle mle re ce rte"
_NEITHER = "skipped skip xpass pending unknown ignored"
KINDS = frozenset("error errored timeout tle mle re ce rte".split())  # bad words that say in which way
WORDS = dict.fromkeys(_GOOD.split(), PASSED) | dict.fromkeys(_BAD.split(), FAILED)
WORDS |= dict.fromkeys(_NEITHER.split(), OTHER)
_SHORT = 3  # letters of a word that means anything, unless its field is a status
# What the name of a field says of the truth in it: that a check was met, that something went wrong, that something is judged.
_MET = re.compile(r"(?:^|_)(?:met|pass|passed|match|matched|success|succeeded|satisfied|correct|ok|valid|resolved|solved)$")
_BAD_IF_TRUE = re.compile(r"error|fail|timed?_?out|truncat|crash|invalid|incomplete|violat", re.IGNORECASE)
_JUDGES = re.compile(
    r"verif|check|test|judge|assert|rubric|grade|criteri|match|pass|correct|success|valid|(?:\b|_)(?:met|ok)$|resolved"
    r"|satisf|solved|follow|verdict",
    re.IGNORECASE,
)
_STATUS = re.compile(r"verdict|status|outcome|result", re.IGNORECASE)
_PLACES = 20  # of a list of truths


def status_of(value: Any) -> str | None:
    """What a value says of a check: a truth, a word for one, or a score at either end of 0 to 1."""
    if isinstance(value, bool):
        return PASSED if value else FAILED
    if isinstance(value, str):
        return WORDS.get(value.strip().lower()) if len(value) <= 12 else None
    if isinstance(value, int | float):
        return PASSED if value == 1 else FAILED if value == 0 else None
    return None


def is_failed(path: str, value: Any) -> bool:
    """Decide whether a value says that a check failed: a word for it, or a truth by the name of its field."""
    word = value.strip().lower() if isinstance(value, str) else ""
    truth = {"true": True, "yes": True, "false": False, "no": False}.get(word, value)
    if isinstance(truth, bool):
        return truth if _is_bad_if_true(path.rpartition(".")[2]) else not truth and bool(_JUDGES.search(path))
    is_word = bool(word) and status_of(value) == FAILED
    return is_word and (len(word) > _SHORT or _STATUS.search(path) is not None)


def _is_bad_if_true(name: str) -> bool:
    return _BAD_IF_TRUE.search(name) is not None and _MET.search(name) is None


def of_list(records: list[Any]) -> Iterable[tuple[str, str, Any]]:
    """Name, status and value of each check in a list of records."""
    # members whose numbers go beyond 0 and 1 in some record: a place, a count or an amount, and no status in any
    members = [member for record in records if isinstance(record, dict) for member in record.items()]
    counted = {key for key, value in members if type(value) in (int, float) and not 0 <= value <= 1}
    for number, record in enumerate(records):
        if isinstance(record, dict):
            if hit := status_in({key: record[key] for key in record if key not in counted}):
                key, status = hit
                yield name_of(record, key) or str(number), status, record[key]
        elif isinstance(record, bool):
            yield str(number), PASSED if record else FAILED, record


def status_in(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """The member of a record that is its status: a truth that says so by name, else any, else a word, else a score of 0 or 1."""
    statuses = [
        (key, value, status_of(value != _is_bad_if_true(key) if isinstance(value, bool) else value))
        for key, value in record.items()
    ]
    statuses.sort(key=lambda member: not (isinstance(member[1], bool) and _MET.search(member[0])))
    for kind in (bool, str, int, float):
        for key, value, status in statuses:
            if status is not None and type(value) is kind:
                return key, status
    return None


def name_of(record: Mapping[str, Any], status_key: str) -> str | None:
    """What a record calls its check, or what it asks: a text beside the status, else in an object there."""
    beside = {key: value for key, value in record.items() if key != status_key}
    inner = (value for value in beside.values() if isinstance(value, Mapping))
    for members in (beside, *inner):
        texts = {key: value.strip() for key, value in members.items() if isinstance(value, str)}
        named = sorted(texts, key=lambda key: not key.lower().endswith("name"))
        if name := next((texts[key] for key in named if texts[key]), None):
            return name[:MAX_TEXT]
    return None


def of_object(members: Mapping[str, Any]) -> Iterable[tuple[str, str, Any]]:
    """Name, status and value of each check in an object of statuses, or of records."""
    statuses = {key: status_of(value) for key, value in members.items() if not isinstance(value, Mapping)}
    if statuses and sum(status is not None for status in statuses.values()) >= 0.8 * len(statuses):
        for key, status in statuses.items():
            yield key[:MAX_TEXT], status or OTHER, members[key]
    for key, value in members.items():
        if isinstance(value, Mapping) and (hit := status_in(value)) is not None:
            yield key[:MAX_TEXT], hit[1], value[hit[0]]


class Failed(NamedTuple):
    """A check that failed."""

    path: str  # of the value, or of the list of records it stands in
    name: str
    text: str  # its own words


def failed_checks(path: str, value: Any) -> list[Failed]:
    """The checks inside a field that failed, among its first 5000 values of the first 8 levels."""
    return list(_failed(path, value, iter(range(5000)), 8))


def _failed(path: str, value: Any, nodes: Iterator[int], depth: int) -> Iterator[Failed]:
    if next(nodes, None) is None or not depth:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _failed(f"{path}.{key}", inner, nodes, depth - 1)
    elif isinstance(value, list):
        yield from _failed_in_list(path, value, nodes, depth)
    elif is_failed(path, value):
        name = path.rpartition(".")[2]  # a single word, such as passed, says too little
        yield Failed(path, name if "_" in name else path.partition(".")[2] or path, f"{path} = {quotable(value)}")


def _failed_in_list(path: str, values: list[Any], nodes: Iterator[int], depth: int) -> Iterator[Failed]:
    if values and all(isinstance(value, bool) for value in values):
        places = [str(place) for place, value in enumerate(values) if not value]
        if places and _JUDGES.search(path):
            more = " …" if len(places) > _PLACES else ""
            text = f"{len(places)} of {len(values)} false, at {', '.join(places[:_PLACES])}{more}"
            yield Failed("", text, f"{path}: {text}")
        return
    if values and isinstance(values[0], Mapping) and {"role", "content"} <= values[0].keys():
        return  # a conversation, not a list of checks
    for place, record in enumerate(values):
        if next(nodes, None) is None:
            return
        if not isinstance(record, Mapping):
            continue
        # beside a truth that says by its name whether the check was met, others must say so by their own names
        is_named = any(isinstance(member, bool) and _MET.search(key) for key, member in record.items())
        around = "" if is_named else f"{path}."
        key = next((key for key, member in record.items() if is_failed(f"{around}{key}", member)), None)
        if key is not None:
            text = f"{path}[{place}] {key} = {quotable(record[key])}: {quotable(record)}"
            yield Failed(path, f"{name_of(record, key) or place} ({key})", text)
            continue
        for key, inner in record.items():
            if isinstance(inner, Mapping | list):
                yield from _failed(f"{path}[{place}].{key}", inner, nodes, depth - 1)

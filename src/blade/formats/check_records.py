"""Find the checks that a verifier left inside lists and wide objects: a name, a status, a value."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

MAX_BYTES = 1 << 20  # of a list or object that is looked into
MAX_CHECKS = 500  # of one value of one row
MAX_TEXT = 200
MAX_KNOWN = 10_000
PASSED, FAILED, OTHER = "passed", "failed", "other"
# Few general words: a status that is none of them is `other`, and is told as it stands.
_GOOD = "passed pass ok okay success succeeded successful true yes correct met satisfied resolved accepted ac"
_BAD = "failed fail failure error errored false no incorrect wrong unmet timeout xfail wa tle mle re ce rte"
_NEITHER = "skipped skip xpass pending unknown ignored"
KINDS = frozenset("error errored timeout tle mle re ce rte".split())  # bad words that say in which way
WORDS = {
    word: status
    for words, status in ((_GOOD, PASSED), (_BAD, FAILED), (_NEITHER, OTHER))
    for word in words.split()
}
_HINT = re.compile(
    rb'[:\[,]\s*(?:true|false|"(?:' + "|".join(WORDS).encode() + rb')"|[01](?:\.0)?[,}\]\s])', re.IGNORECASE
)
_TURN = (b'"role"', b'"content"')  # a list of messages holds no checks


def status_of(value: Any) -> str | None:
    """What a value says of a check: a truth, a word for one, or a score at either end of 0 to 1."""
    if isinstance(value, bool):
        return PASSED if value else FAILED
    if isinstance(value, str):
        return WORDS.get(value.strip().lower()) if len(value) <= 12 else None
    if isinstance(value, int | float):
        return PASSED if value == 1 else FAILED if value == 0 else None
    return None


def checks_in(raw: msgspec.Raw) -> Iterator[tuple[str, str, str]]:
    """Name, status and value of each check in a list of records, or in an object of statuses."""
    view = memoryview(raw)
    if len(view) > MAX_BYTES or not _HINT.search(view):
        return
    if view[0] == ord("[") and any(mark in bytes(view[:4000]) for mark in _TURN):
        return
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return
    yield from islice(_of_list(value) if isinstance(value, list) else _of_object(value), MAX_CHECKS)


def _of_list(records: list[Any]) -> Iterable[tuple[str, str, str]]:
    counted = _counting(records)
    for number, record in enumerate(records):
        if isinstance(record, dict):
            if hit := _status_in({key: record[key] for key in record if key not in counted}):
                key, status = hit
                yield _name(record, key) or str(number), status, spelled(record[key])
        elif isinstance(record, bool):
            yield str(number), PASSED if record else FAILED, spelled(record)


def _counting(records: list[Any]) -> set[str]:
    """Members whose numbers go beyond 0 and 1 in some record: a place, a count or an amount, and no status in any."""
    return {
        key
        for record in records
        if isinstance(record, dict)
        for key, value in record.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and not 0 <= value <= 1
    }


def _status_in(record: Mapping[str, Any]) -> tuple[str, str] | None:
    """The member of a record that is its status: a truth, else a word, else a score of 0 or 1."""
    statuses = [(key, value, status_of(value)) for key, value in record.items()]
    for kind in (bool, str, int, float):
        for key, value, status in statuses:
            if status is not None and type(value) is kind:
                return key, status
    return None


def _name(record: Mapping[str, Any], status_key: str) -> str | None:
    """What a record calls its check, or what it asks: a text beside the status, else in an object there."""
    beside = {key: value for key, value in record.items() if key != status_key}
    inner = (value for value in beside.values() if isinstance(value, Mapping))
    for members in (beside, *inner):
        texts = {key: value.strip() for key, value in members.items() if isinstance(value, str)}
        named = sorted(texts, key=lambda key: not key.lower().endswith("name"))
        if name := next((texts[key] for key in named if texts[key]), None):
            return name[:MAX_TEXT]
    return None


def _of_object(members: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    statuses = {key: status_of(value) for key, value in members.items() if not isinstance(value, Mapping)}
    if statuses and sum(status is not None for status in statuses.values()) >= 0.8 * len(statuses):
        for key, status in statuses.items():
            yield key[:MAX_TEXT], status or OTHER, spelled(members[key])
    for key, value in members.items():
        if isinstance(value, Mapping) and (hit := _status_in(value)) is not None:
            yield key[:MAX_TEXT], hit[1], spelled(value[hit[0]])


def spelled(value: Any) -> str:
    """A value as short text."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:MAX_TEXT]


class CheckColumns:
    """The checks of a part: row by row, with texts kept once."""

    def __init__(self) -> None:
        self.rows: array[int] = array("q")
        self.codes: dict[str, array[int]] = {name: array("i") for name in ("path", "name", "status", "value")}
        self.texts: dict[str, dict[str, int]] = {name: {} for name in self.codes}
        self._known: dict[int, list[tuple[str, str, str]]] = {}  # what equal values hold: repeats share much

    def add(self, row: int, path: str, raw: msgspec.Raw) -> None:
        """Keep the checks that a value of a row holds."""
        digest = xxh3_64_intdigest(raw)
        checks = self._known[digest] if digest in self._known else list(checks_in(raw))
        if len(self._known) < MAX_KNOWN:
            self._known[digest] = checks
        for check in checks:
            self.rows.append(row)
            for name, text in zip(self.codes, (path, *check), strict=True):
                self.codes[name].append(self.texts[name].setdefault(text, len(self.texts[name])))

    def arrays(self) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]]]:
        """What was collected, under the names of its columns."""
        columns: dict[str, NDArray[Any]] = {"c.row": np.frombuffer(self.rows, "<i8")} if self.rows else {}
        texts: dict[str, list[str]] = {}
        for name, codes in self.codes.items():
            if codes:
                columns[f"c.{name}:code"] = np.frombuffer(codes, "<i4")
                texts[f"c.{name}"] = list(self.texts[name])
        return columns, texts

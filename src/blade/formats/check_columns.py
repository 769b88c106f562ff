"""Keep the checks that a verifier left inside lists and wide objects as columns: a name, a status, a value."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from blade.formats import check_records
from blade.formats.check_records import MAX_CHECKS, MAX_TEXT, WORDS

MAX_BYTES = 1 << 20  # of a list or object that is looked into
MAX_KNOWN = 10_000
_HINT = re.compile(
    rb'[:\[,]\s*(?:true|false|"(?:' + "|".join(WORDS).encode() + rb')"|[01](?:\.0)?[,}\]\s])', re.IGNORECASE
)
_TURN = (b'"role"', b'"content"')  # a list of messages holds no checks


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
    checks = check_records.of_list(value) if isinstance(value, list) else check_records.of_object(value)
    for name, status, member in islice(checks, MAX_CHECKS):
        yield name, status, spelled(member)


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

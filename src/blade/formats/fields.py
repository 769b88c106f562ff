"""Turn the values of one top-level field into a compact column."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

# What a value is; the codes of `Column.kind`.
ABSENT, NULL, BOOL, NUMBER, TEXT, LIST, OBJECT = range(7)
SHORT_TEXT = 100  # longer texts are known by their hash, and by how they begin
MAX_WHOLE = 1 << 53
HEAD = 200  # characters that are kept of a longer text

# Objects whose scalars are worth columns of their own, as `parent.key`.
PARENTS = frozenset(
    "metadata verifier_metadata info config reward_components ng_perf reward_info problem_metadata".split()
)
_NESTED_BYTES = 8192
_CONTAINER = {ord("["): LIST, ord("{"): OBJECT}
_MEMBERS = dict[str, msgspec.Raw]
_nan = math.nan


class _Codes(dict[str, int]):
    """Numbers texts as they come; a look-up that misses is the only one that runs Python."""

    def __missing__(self, text: str) -> int:
        code = self[text] = len(self)
        return code


class FieldColumn:
    """Grows by values; `arrays` hands over what was collected."""

    __slots__ = ("codes", "hashes", "head_codes", "heads", "kinds", "longest", "numbers", "seen")

    def __init__(self, longest: int = SHORT_TEXT) -> None:
        self.longest = longest  # texts beyond it are known by their hash only
        self.kinds = array("B")
        self.numbers: array[float] = array("d")  # left empty until the first number
        self.codes: array[int] = array("i")  # likewise
        self.hashes: array[int] = array("Q")  # of lists, objects and long texts only
        self.seen = _Codes()
        self.head_codes: array[int] = array("i")  # of longer texts only
        self.heads = _Codes()

    def extend(self, values: Sequence[Any], first: int) -> None:
        """Add `values` for the rows from `first` on; blocks of one type take a quick way."""
        self._pad(first)
        types = set(map(type, values))
        if len(types) == 1 and len(values) > 8 and _is_constant(values, types):
            self._extend_constant(values[0], len(values))
        elif types == {str}:
            self._extend_texts(values)
        elif types <= {float, int} and (int not in types or (_fits(min(values)) and _fits(max(values)))):
            self._extend_numbers(values, NUMBER)
        elif types == {bool}:
            self._extend_numbers(values, BOOL)
        elif types == {msgspec.UnsetType}:
            self.kinds.frombytes(bytes(len(values)))
        elif types == {type(None)}:
            self.kinds.frombytes(bytes([NULL]) * len(values))
        elif types == {str, type(None)} and max([len(v) for v in values if v is not None]) <= self.longest:
            self._align(self.codes, -1)
            seen = self.seen
            self.codes.fromlist([-1 if value is None else seen[value] for value in values])
            self.kinds.frombytes(bytes([NULL if value is None else TEXT for value in values]))
        else:
            for value in values:
                self._put(value)

    def _extend_constant(self, value: Any, n: int) -> None:
        """Add one value for many rows: what the first of them becomes is repeated."""
        self._put(value)
        self.kinds.extend(self.kinds[-1:] * (n - 1))
        columns: tuple[array[Any], ...] = (self.numbers, self.codes, self.hashes, self.head_codes)
        for column in columns:
            if len(column) == len(self.kinds) - n + 1:
                column.extend([column[-1]] * (n - 1))

    def put(self, value: Any, row: int) -> None:
        """Set the value of one row; rows before it that have none are absent."""
        self._pad(row)
        self._put(value)

    def _pad(self, length: int) -> None:
        self.kinds.frombytes(bytes(length - len(self.kinds)))

    def _align(self, column: array[Any], fill: Any) -> None:
        """Bring a lazily kept column up to the length of `kinds`."""
        missing = len(self.kinds) - len(column)
        if missing:
            column.extend([fill] * missing)

    def _extend_numbers(self, values: Sequence[Any], kind: int) -> None:
        self._align(self.numbers, _nan)
        try:
            self.numbers.fromlist(list(values))
        except OverflowError:  # an integer beyond a double
            self.numbers.fromlist([_float(value) for value in values])
        self.kinds.frombytes(bytes([kind]) * len(values))

    def _extend_texts(self, values: Sequence[str]) -> None:
        seen = self.seen
        self._align(self.codes, -1)
        lengths, longest = list(map(len, values)), self.longest
        if max(lengths) <= longest:
            self.codes.fromlist(list(map(seen.__getitem__, values)))
        else:
            self._align(self.hashes, 0)
            self._align(self.head_codes, -1)
            if min(lengths) > longest:
                self.codes.fromlist([-1] * len(values))
                self.hashes.fromlist(list(map(_hash_text, values)))
                self.head_codes.fromlist([self.heads[head(value)] for value in values])
            else:
                self.codes.fromlist([seen[value] if len(value) <= longest else -1 for value in values])
                self.hashes.fromlist([0 if len(value) <= longest else _hash_text(value) for value in values])
                self.head_codes.fromlist([-1 if len(v) <= longest else self.heads[head(v)] for v in values])
        self.kinds.frombytes(bytes([TEXT]) * len(values))

    def _put(self, value: Any) -> None:
        kind = ABSENT
        if isinstance(value, str):
            kind = TEXT
            if len(value) <= self.longest:
                self._align(self.codes, -1)
                self.codes.append(self.seen[value])
            else:
                self._align(self.hashes, 0)
                self.hashes.append(_hash_text(value))
                self._align(self.head_codes, -1)
                self.head_codes.append(self.heads[head(value)])
        elif value is None:
            kind = NULL
        elif type(value) is int and not _fits(value):
            self._put(str(value))
            return
        elif isinstance(value, bool | int | float):
            kind = BOOL if isinstance(value, bool) else NUMBER
            self._align(self.numbers, _nan)
            self.numbers.append(_float(value))
        elif isinstance(value, msgspec.Raw):
            self._put_raw(value)
            return
        self.kinds.append(kind)

    def _put_raw(self, value: msgspec.Raw) -> None:
        view = memoryview(value)
        kind = _CONTAINER.get(view[0])
        if kind is None:  # a scalar in a field that mostly holds more
            self._put(_scalar(value))
            return
        self._align(self.hashes, 0)
        self.hashes.append(xxh3_64_intdigest(view))
        self.kinds.append(kind)

    def arrays(self, n_rows: int) -> dict[str, NDArray[Any]]:
        """What was collected, padded to `n_rows`; columns nothing was put in are left out."""
        self._pad(n_rows)
        found: dict[str, NDArray[Any]] = {"kind": np.frombuffer(self.kinds, np.uint8)}
        for name, column, fill in (
            ("number", self.numbers, _nan),
            ("code", self.codes, -1),
            ("hash", self.hashes, 0),
            ("head:code", self.head_codes, -1),
        ):
            if column:
                self._align(column, fill)
                found[name] = np.frombuffer(column, {"d": "<f8", "i": "<i4", "Q": "<u8"}[column.typecode])
        return found


def _fits(value: float) -> bool:
    """Whether a whole number keeps all its digits as a double; one that does not is kept as text."""
    return -MAX_WHOLE < value < MAX_WHOLE


def _is_constant(values: Sequence[Any], types: set[type]) -> bool:
    """Whether all values, which are of one type, are equal: as most settings of a run are."""
    first = values[0]
    if not types <= {str, int, float, bool} or values[-1] != first or values[len(values) // 2] != first:
        return False
    return values.count(first) == len(values)


def head(text: str, most: int = HEAD) -> str:
    """How a text begins, with a mark where it is cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def nested_scalars(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The scalars of a small object, named `key.inner`."""
    if not isinstance(value, msgspec.Raw):
        return
    view = memoryview(value)
    if view[0] != ord("{") or len(view) > _NESTED_BYTES:
        return
    try:
        members = msgspec.json.decode(value)
    except msgspec.DecodeError:  # a number beyond a double
        members = {name: _scalar(inner) for name, inner in msgspec.json.decode(value, type=_MEMBERS).items()}
    for name, inner in members.items():
        if inner is None or isinstance(inner, bool | int | float | str):
            yield f"{key}.{name}", inner


def _scalar(value: msgspec.Raw) -> Any:
    """The value, or None for a number that no double can hold."""
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return None


def _hash_text(value: str) -> int:
    return xxh3_64_intdigest(value.encode("utf-8", "surrogatepass"))


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf

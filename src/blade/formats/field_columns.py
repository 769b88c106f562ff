"""Collect the fields of rows as compact columns: scalars by dotted path, objects flattened, lists handed on."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

# -- what fields are called ----------------------------------------------------------------------

# The task as the dataset states it: its id, its question, its gold.
_TASK = re.compile(
    r"^(task|problem|instance|question|sample|example|row|doc|document|bunsen|scenario)_?(id|idx|index|name)?$"
    r"|^(verifier_metadata|metadata)(\.task_id)?$"
    r"|instruction|question|problem(_statement)?$|^prompt$|^options$|^choices$|unit_tests|^tests$"
    r"|expected|gold|ground_truth|^gt_|reference|^target|^label$|^answer$|^answers$|seed$"
)
# What an agent or a verifier made of it, however task-like the rest of the name sounds.
_MADE = re.compile(
    r"extracted|predicted|parsed|model_|generated|judge|rollout|reward|score|match|follow|verdict|_ms$|_s$"
)
# Wall time in the words of several environments, with what turns it into seconds; the first one wins.
SECONDS = {
    "ng_perf.total_latency_ms": 1e-3, "duration_s": 1.0, "total_run_time": 1.0, "agent_run_time": 1.0, "wall_s": 1.0,
    "duration_seconds": 1.0, "elapsed_s": 1.0, "generation_ms": 1e-3, "duration_ms": 1e-3, "gen_seconds": 1.0,
}  # fmt: skip
COST = ("agent_cost", "cost_usd", "total_cost", "cost")
# A row says that something broke around the model when one of these holds a text, a code or a yes.
ERRORS = tuple(
    "error exception_type exception failure_kind agent_error_kind error_kind verifier_error judge_error "
    "evaluation_error osworld_error segale_error memory_limit_exceeded_error context_length_exceeded_error".split()
)
BROKEN_WHEN_FALSE = ("evaluation_completed",)
TIMEOUTS = ("timed_out", "agent_timed_out", "eval_timed_out", "container_timed_out", "agent_timeout_error")
SAYS_NOTHING = frozenset(("", "none", "null", "no_error", "ok", "success"))
# Objects whose scalars are worth columns of their own, as `parent.key`.
PARENTS = frozenset(
    "metadata verifier_metadata info config reward_components ng_perf reward_info problem_metadata".split()
)
_OTHERS = "id uuid name result trajectory messages delegated_response subagent_trajectories info config ng_perf".split()
_USED = frozenset((*ERRORS, *TIMEOUTS, *BROKEN_WHEN_FALSE, *COST, *SECONDS, *_OTHERS))
MAX_NAME = 200  # characters of a key that becomes a column
_UNNAMEABLE = frozenset('"\\' + "".join(map(chr, range(32))))  # a struct cannot have a field of such a name


@lru_cache(maxsize=10_000)
def rank(name: str) -> tuple[bool, str]:
    """Which fields become columns when there are too many: those we use first, then by spelling."""
    return name not in _USED and not is_task_field(name), name


def is_task_field(name: str) -> bool:
    """Does the field belong to the task rather than to what was made of it."""
    return bool(_TASK.search(name)) and not _MADE.search(name)


def can_be_column(name: str) -> bool:
    return len(name) <= MAX_NAME and not _UNNAMEABLE.intersection(name)


# -- one column -----------------------------------------------------------------------------------

# What a value is; the codes of `Column.kind`.
ABSENT, NULL, BOOL, NUMBER, TEXT, LIST, OBJECT = range(7)
SHORT_TEXT = 100  # longer texts are known by their hash, and by how they begin
MAX_WHOLE = 1 << 53
HEAD = 200  # characters that are kept of a longer text
_BRACE, _BRACKET = ord("{"), ord("[")
_CONTAINER = {_BRACKET: LIST, _BRACE: OBJECT}
_TYPES = {"d": "<f8", "i": "<i4", "Q": "<u8"}

Scalar = bool | int | float | str | None
_NUMBERS, _TEXTS, _UNSET = {float, int}, {str, type(None)}, {msgspec.UnsetType}


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
        elif types == _UNSET:
            self.kinds.frombytes(bytes(len(values)))
        elif types <= _NUMBERS and (int not in types or (_fits(min(values)) and _fits(max(values)))):
            self._extend_numbers(values, NUMBER)
        elif types == {bool}:
            self._extend_numbers(values, BOOL)
        elif types == {type(None)}:
            self.kinds.frombytes(bytes([NULL]) * len(values))
        elif types <= _TEXTS:
            self._extend_texts(values)
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

    def _extend_numbers(self, values: Sequence[Any], kind: int) -> None:
        self._align(self.numbers, math.nan)
        try:
            self.numbers.fromlist(list(values))
        except OverflowError:  # an integer beyond a double
            self.numbers.fromlist([_float(value) for value in values])
        self.kinds.frombytes(bytes([kind]) * len(values))

    def _extend_texts(self, values: Sequence[str | None]) -> None:
        seen, longest = self.seen, self.longest
        self._align(self.codes, -1)
        if None not in values and max(map(len, values)) <= longest:  # type: ignore[arg-type]
            self.codes.fromlist(list(map(seen.__getitem__, values)))  # type: ignore[arg-type]
            self.kinds.frombytes(bytes([TEXT]) * len(values))
            return
        if max([0 if value is None else len(value) for value in values]) <= longest:
            self.codes.fromlist([-1 if value is None else seen[value] for value in values])
        else:
            self._align(self.hashes, 0)
            self._align(self.head_codes, -1)
            longs = [value if value is not None and len(value) > longest else None for value in values]
            pairs = zip(values, longs, strict=True)
            self.codes.fromlist([-1 if value is None or long is not None else seen[value] for value, long in pairs])
            self.hashes.fromlist([0 if long is None else _hash_text(long) for long in longs])
            self.head_codes.fromlist([-1 if long is None else self.heads[head(long)] for long in longs])
        self.kinds.frombytes(bytes([NULL if value is None else TEXT for value in values]))

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

    def _append(self, column: array[Any], fill: Any, value: Any) -> None:
        self._align(column, fill)
        column.append(value)

    def _put(self, value: Any) -> None:
        kind = ABSENT
        if isinstance(value, msgspec.Raw):
            view = memoryview(value)
            kind = _CONTAINER.get(view[0], ABSENT)
            if kind:
                self._append(self.hashes, 0, xxh3_64_intdigest(view))
            else:  # a scalar in a field that mostly holds more
                value = scalar_of(value)
        if type(value) is int and not _fits(value):
            value = str(value)
        if isinstance(value, str):
            kind = TEXT
            if len(value) <= self.longest:
                self._append(self.codes, -1, self.seen[value])
            else:
                self._append(self.hashes, 0, _hash_text(value))
                self._append(self.head_codes, -1, self.heads[head(value)])
        elif value is None:
            kind = NULL
        elif isinstance(value, bool | int | float):
            kind = BOOL if isinstance(value, bool) else NUMBER
            self._append(self.numbers, math.nan, _float(value))
        self.kinds.append(kind)

    def arrays(self, n_rows: int) -> dict[str, NDArray[Any]]:
        """What was collected, padded to `n_rows`; columns nothing was put in are left out."""
        self._pad(n_rows)
        collected: dict[str, NDArray[Any]] = {"kind": np.frombuffer(self.kinds, np.uint8)}
        columns: list[tuple[str, array[Any], Any]] = [
            ("number", self.numbers, math.nan), ("code", self.codes, -1), ("hash", self.hashes, 0),
            ("head:code", self.head_codes, -1),
        ]  # fmt: skip
        for name, column, fill in columns:
            if column:
                self._align(column, fill)
                collected[name] = np.frombuffer(column, _TYPES[column.typecode])
        return collected


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


def scalar_of(value: msgspec.Raw) -> Any:
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


# -- objects --------------------------------------------------------------------------------------

MAX_KEYS = 256  # of one object; one with more is a table of its own, told by `fields` and `checks` alone
MAX_DEPTH = 6
_NESTED_BYTES = 8192
_MEMBERS = dict[str, msgspec.Raw]

Put = Callable[[str, Sequence[Any]], None]  # a path and its value in each row of a block
PutRaw = Callable[[str, int, msgspec.Raw], None]  # a path, a row of the block, and its list or object


def nested_scalars(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The scalars of a small object, named `key.inner`."""
    if not isinstance(value, msgspec.Raw):
        return
    view = memoryview(value)
    if view[0] != _BRACE or len(view) > _NESTED_BYTES:
        return
    try:
        members = msgspec.json.decode(value)
    except msgspec.DecodeError:  # a number beyond a double
        members = {name: scalar_of(inner) for name, inner in msgspec.json.decode(value, type=_MEMBERS).items()}
    for name, inner in members.items():
        if inner is None or isinstance(inner, bool | int | float | str):
            yield f"{key}.{name}", inner


def transposed(rows: Sequence[msgspec.Struct]) -> dict[str, tuple[Any, ...]]:
    """Structs of one shape as columns by attribute, without a Python step per value."""
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    return dict(zip(rows[0].__struct_fields__, columns, strict=True))


class Shape:
    """What is known of the objects at one path: their keys and what each holds; grows as rows show more."""

    SCALAR, RAW, NULL = "scalar", "raw", "null"

    def __init__(self, depth: int = 1, base: type[msgspec.Struct] | None = None) -> None:
        self.keys: dict[str, str | Shape] = {}
        self.depth = depth
        self.base = base  # the struct of the keys that have attributes of their own
        self.is_open = False  # too many keys, or keys that no column can have
        self._type: Any = None  # made of the keys so far

    @property
    def type(self) -> Any:
        """A struct for such objects; it refuses keys that it does not know."""
        if self._type is None:
            self._type = self.struct()
        return self._type

    def struct(self, *others: tuple[str, Any, Any]) -> Any:
        """The same with further attributes, which stand for keys of their own name."""
        plain = {Shape.RAW: msgspec.Raw, Shape.SCALAR: Scalar, Shape.NULL: None}
        kinds = [kind.type | None if isinstance(kind, Shape) else plain[kind] for kind in self.keys.values()]
        columns = [(f"f{number}", kind | msgspec.UnsetType, msgspec.UNSET) for number, kind in enumerate(kinds)]
        rename = {f"f{number}": key for number, key in enumerate(self.keys)}
        return msgspec.defstruct(
            "Inner", [*columns, *others], bases=(self.base,) if self.base else None, rename=rename,
            forbid_unknown_fields=not self.is_open, gc=False,
        )  # fmt: skip

    def learn(self, members: Iterable[tuple[str, Any]]) -> bool:
        """Make room for the keys of one more object; True if it changed what is known."""
        before = self._type
        for key, value in members:
            if key not in self.keys and (len(self.keys) >= MAX_KEYS or not can_be_column(key)):
                self._type = self._type if self.is_open else None
                self.is_open = True
                continue
            kind = self._kind(self.keys.get(key), value)
            if kind is not self.keys.get(key):
                self.keys[key] = kind
                self._type = None
        return before is not self._type or self._type is None

    def _kind(self, known: str | Shape | None, value: Any) -> str | Shape:
        if isinstance(value, dict) and known in (None, self.NULL) and self.depth < MAX_DEPTH:
            known = Shape(self.depth + 1)
        if isinstance(known, Shape):
            if value is None:
                return known
            if not isinstance(value, dict):
                return self.RAW
            if known.learn(value.items()):
                self._type = None
            return known if not known.is_open else self.RAW
        if known == self.RAW or isinstance(value, dict | list):
            return self.RAW
        return self.SCALAR if value is not None else known or self.NULL

    def leaves(
        self, path: str, columns: dict[str, tuple[Any, ...]], put: Put, put_raw: PutRaw | None
    ) -> None:
        """Hand over what the objects of a block hold: scalars to `put`, the rest to `put_raw`."""
        for number, (key, kind) in enumerate(self.keys.items()):
            values, inner = columns[f"f{number}"], f"{path}.{key}"
            if isinstance(kind, Shape):
                if any(isinstance(value, msgspec.Struct) for value in values):
                    empty = kind.type()
                    filled = [value if isinstance(value, msgspec.Struct) else empty for value in values]
                    kind.leaves(inner, transposed(filled), put, put_raw)
            elif kind == self.RAW:
                _raw_leaves(inner, values, put, put_raw)
            else:
                put(inner, values)


def _raw_leaves(path: str, values: Sequence[Any], put: Put, put_raw: PutRaw | None) -> None:
    firsts = {memoryview(value)[0] for value in values if value is not msgspec.UNSET}
    if put_raw is None and firsts <= _CONTAINER.keys():
        return
    scalars: list[Any] = [msgspec.UNSET] * len(values)
    for position, value in enumerate(values):
        if isinstance(value, msgspec.Raw):
            if memoryview(value)[0] not in _CONTAINER:
                scalars[position] = scalar_of(value)
            elif put_raw is not None:
                put_raw(path, position, value)
    if any(scalar is not msgspec.UNSET for scalar in scalars):
        put(path, scalars)


class Nest:
    """The objects that one top-level key holds as raw JSON."""

    def __init__(self) -> None:
        self.shape = Shape()
        self._decoder: msgspec.json.Decoder[Any] | None = None

    def add(self, path: str, values: Sequence[Any], put: Put, put_raw: PutRaw) -> None:
        """Hand over the scalars inside the objects of a block, and what else stands there as JSON."""
        raws = [
            (position, value)
            for position, value in enumerate(values)
            if isinstance(value, msgspec.Raw) and memoryview(value)[0] in _CONTAINER
        ]
        structs = self._structs(raws)
        for position, value in raws:
            if position not in structs:
                put_raw(path, position, value)
        if structs:
            empty = self.shape.type()
            rows = [structs.get(position, empty) for position in range(len(values))]
            self.shape.leaves(path, transposed(rows), put, put_raw)

    def _structs(self, raws: list[tuple[int, msgspec.Raw]]) -> dict[int, Any]:
        """The objects of a block as structs of one type: from the start again where the type had to grow."""
        while not self.shape.is_open:
            before = self._decoder
            decoded = {
                position: struct
                for position, value in raws
                if memoryview(value)[0] == _BRACE and (struct := self._decoded(value)) is not None
            }
            if self._decoder is before and not self.shape.is_open:
                return decoded
        return {}

    def _decoded(self, value: msgspec.Raw) -> Any:
        """The object as a struct; None for one that is left as it stands."""
        for _ in range(2):
            if self.shape.is_open:
                return None
            if self._decoder is not None:
                try:
                    return self._decoder.decode(value)
                except (msgspec.DecodeError, RecursionError):
                    pass
            try:
                members = msgspec.json.decode(value)
            except (msgspec.DecodeError, RecursionError):  # a number beyond a double
                return None
            self.shape.learn(members.items())
            self._decoder = msgspec.json.Decoder(self.shape.type)
        return None

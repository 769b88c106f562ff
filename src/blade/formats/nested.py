"""Flatten the objects inside rows: scalars to columns under dotted paths, lists handed on as they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

MAX_KEYS = 256  # of one object; one with more is a table of its own, told by `fields` and `checks` alone
MAX_DEPTH = 6
MAX_NAME = 200  # characters of a key that becomes a column
_UNNAMEABLE = frozenset('"\\' + "".join(map(chr, range(32))))  # a struct cannot have a field of such a name
_BRACE, _BRACKET = ord("{"), ord("[")

Scalar = bool | int | float | str | None
Put = Callable[[str, Sequence[Any]], None]  # a path and its value in each row of a block
PutRaw = Callable[[str, int, msgspec.Raw], None]  # a path, a row of the block, and its list or object


class Shape:
    """What is known of the objects at one path: their keys and what each holds; grows as rows show more."""

    SCALAR, RAW, NULL = "scalar", "raw", "null"

    def __init__(self, depth: int = 1, base: type[msgspec.Struct] | None = None) -> None:
        self.keys: dict[str, str | Shape] = {}
        self.depth = depth
        self.base = base  # the struct of the keys that have attributes of their own
        self.is_open = False  # too many keys, or keys that no column can have
        self.changed()

    def changed(self) -> None:
        """Forget the types that were made of the keys so far."""
        self._type: Any = None
        self._empty: Any = None

    @property
    def type(self) -> Any:
        """A struct for such objects; it refuses keys that it does not know."""
        if self._type is None:
            self._type = self.struct()
            self._empty = self._type()
        return self._type

    def struct(self, *others: tuple[str, Any, Any]) -> Any:
        """The same with further attributes, which stand for keys of their own name."""
        columns = [(f"f{at}", _type_of(kind), msgspec.UNSET) for at, kind in enumerate(self.keys.values())]
        rename = {f"f{at}": key for at, key in enumerate(self.keys)}
        return msgspec.defstruct(
            "Inner", [*columns, *others], bases=(self.base,) if self.base else None, rename=rename,
            forbid_unknown_fields=not self.is_open, gc=False,
        )  # fmt: skip

    @property
    def empty(self) -> Any:
        """Such an object without any key."""
        return self._empty if self.type is not None else None

    def learn(self, members: Iterable[tuple[str, Any]]) -> bool:
        """Make room for the keys of one more object; True if it changed what is known."""
        before = self._type
        for key, value in members:
            if key not in self.keys and (len(self.keys) >= MAX_KEYS or not can_be_column(key)):
                if not self.is_open:
                    self.is_open = True
                    self.changed()
                continue
            kind = self._kind(self.keys.get(key), value)
            if kind is not self.keys.get(key):
                self.keys[key] = kind
                self.changed()
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
                self.changed()
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
                    empty = kind.empty
                    filled = [value if isinstance(value, msgspec.Struct) else empty for value in values]
                    kind.leaves(inner, transposed(filled), put, put_raw)
            elif kind == self.RAW:
                _raw_leaves(inner, values, put, put_raw)
            else:
                put(inner, values)


class Nest:
    """The objects that one top-level key holds as raw JSON."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.shape = Shape()
        self._decoder: msgspec.json.Decoder[Any] | None = None

    def add(self, values: Sequence[Any], put: Put, put_raw: PutRaw) -> None:
        """Take in the values of a block."""
        raws = [
            (position, value)
            for position, value in enumerate(values)
            if isinstance(value, msgspec.Raw) and memoryview(value)[0] in (_BRACE, _BRACKET)
        ]
        structs = self._structs(raws)
        for position, value in raws:
            if position not in structs:
                put_raw(self.path, position, value)
        if structs:
            empty = self.shape.empty
            rows = [structs.get(position, empty) for position in range(len(values))]
            self.shape.leaves(self.path, transposed(rows), put, put_raw)

    def _structs(self, raws: list[tuple[int, msgspec.Raw]]) -> dict[int, Any]:
        """The objects of a block as structs of one type: from the start again where the type had to grow."""
        while True:
            before = self._decoder
            decoded = {
                position: struct
                for position, value in raws
                if memoryview(value)[0] == _BRACE and (struct := self._decoded(value)) is not None
            }
            if self._decoder is before or self.shape.is_open:
                return {} if self.shape.is_open else decoded

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


def can_be_column(name: str) -> bool:
    """Is it a name that a column can have."""
    return len(name) <= MAX_NAME and not _UNNAMEABLE.intersection(name)


def transposed(rows: Sequence[msgspec.Struct]) -> dict[str, tuple[Any, ...]]:
    """Structs of one shape as columns by attribute, without a Python step per value."""
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    return dict(zip(rows[0].__struct_fields__, columns, strict=True))


def scalar_of(value: msgspec.Raw) -> Any:
    """The value, or None for a number that no double can hold."""
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return None


def _type_of(kind: str | Shape) -> Any:
    if isinstance(kind, Shape):
        return kind.type | None | msgspec.UnsetType
    if kind == Shape.RAW:
        return msgspec.Raw | msgspec.UnsetType
    return Scalar | msgspec.UnsetType if kind == Shape.SCALAR else None | msgspec.UnsetType


def _raw_leaves(path: str, values: Sequence[Any], put: Put, put_raw: PutRaw | None) -> None:
    firsts = {memoryview(value)[0] for value in values if value is not msgspec.UNSET}
    if put_raw is None and firsts <= {_BRACE, _BRACKET}:
        return
    scalars: list[Any] = [msgspec.UNSET] * len(values)
    for position, value in enumerate(values):
        if isinstance(value, msgspec.Raw):
            if memoryview(value)[0] not in (_BRACE, _BRACKET):
                scalars[position] = scalar_of(value)
            elif put_raw is not None:
                put_raw(path, position, value)
    if any(scalar is not msgspec.UNSET for scalar in scalars):
        put(path, scalars)

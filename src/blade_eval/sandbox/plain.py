"""Plain data as JSON and back: all that may cross between a program under test and whoever judges it.

Nothing that carries behaviour crosses: an object whose equality says yes to everything stays where it is,
and at most its number goes over, where both sides agree on numbers.
The file also lies in the box, beside `inside.py`, so it imports the standard library alone, and numpy only
where an array is to cross.
"""

from __future__ import annotations

import datetime
import json
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

LONGEST = 100_000  # of what an iterator gives
SMALL = 1 << 53  # beyond, readers of JSON differ
FACTORIES = {kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple)}

HANDLES: dict[str, type] = {"thing": int, "coroutine": int, "name": str}  # only tests send names, and only solutions hear them

Number = Callable[[Any], dict[str, Any] | None]  # what stands for a value that is not plain


class NotPlain(Exception):
    """The value is of a kind that does not cross."""


class TooMuch(NotPlain):
    """The value is of a kind that crosses, but too deep or too long."""


def encoded(value: Any, number: Number | None = None) -> str:
    """One line of JSON."""
    try:
        return json.dumps(_packed(value, number), separators=(",", ":"))
    except RecursionError as fault:
        raise TooMuch("a value that is nested too deeply or contains itself") from fault


def decoded(text: str | bytes, thing: Callable[[str, Any], Any] | None = None) -> Any:
    """The value that was encoded; ValueError when the text is nothing that `encoded` writes."""
    try:
        return _unpacked(json.loads(text), thing)
    except Exception as fault:  # names of fields and types of arrays fail in more ways than can be listed
        raise ValueError(f"not plain data: {type(fault).__name__}") from fault


def _packed(value: Any, number: Number | None) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        whole = int.__index__(value)
        return whole if -SMALL < whole < SMALL else {"int": hex(whole)}
    if isinstance(value, float):
        return {"float": float.hex(value)}
    if isinstance(value, list):
        return [_packed(item, number) for item in list.__iter__(value)]
    try:
        kind = _kind(value)
    except NotPlain:
        numbered = number(value) if number else None
        if numbered is None:
            raise
        return numbered
    return {kind: _content(kind, value, number)}


def _kind(value: Any) -> str:
    for kind, types_ in (
        ("tuple", (tuple,)), ("counter", (Counter,)), ("defaultdict", (defaultdict,)),
        ("ordered", (OrderedDict,)), ("dict", (dict,)), ("set", (set,)), ("frozenset", (frozenset,)),
        ("bytes", (bytes, bytearray)), ("complex", (complex,)), ("range", (range,)), ("deque", (deque,)),
        ("decimal", (Decimal,)), ("fraction", (Fraction,)), ("datetime", (datetime.datetime,)),
        ("date", (datetime.date,)), ("timedelta", (datetime.timedelta,)), ("ellipsis", (types.EllipsisType,)),
        ("iterator", (Iterator, KeysView, ValuesView, ItemsView)),
    ):  # fmt: skip
        if isinstance(value, types_):
            has_names = kind == "tuple" and isinstance(getattr(type(value), "_fields", None), tuple)
            return "namedtuple" if has_names else kind
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        is_array = type(value).__name__ == "ndarray" and value.dtype.kind in "biufc"
        return "array" if is_array else "same"
    raise NotPlain(f"a {type(value).__qualname__}")


def _content(kind: str, value: Any, number: Number | None) -> Any:
    if kind in ("dict", "counter", "ordered"):
        return _pairs(value, number)
    if kind == "defaultdict":
        factory = value.default_factory
        return [getattr(factory, "__name__", "") if isinstance(factory, type) else "", _pairs(value, number)]
    if kind == "namedtuple":
        items = [_packed(item, number) for item in tuple.__iter__(value)]
        return [type(value).__name__, [str(name) for name in type(value)._fields], items]
    if kind in ("tuple", "set", "frozenset", "deque"):
        return [_packed(item, number) for item in value]
    if kind == "iterator":
        items = []
        for item in value:
            items.append(_packed(item, number))
            if len(items) > LONGEST:
                raise TooMuch(f"an iterator of more than {LONGEST:,} items")
        return items
    simple: dict[str, Callable[[], Any]] = {
        "bytes": lambda: bytes(value).hex(),
        "complex": lambda: [float.hex(value.real), float.hex(value.imag)],
        "range": lambda: [_packed(part, None) for part in (value.start, value.stop, value.step)],
        "decimal": lambda: str(value),
        "fraction": lambda: [_packed(value.numerator, None), _packed(value.denominator, None)],
        "datetime": lambda: value.isoformat(),
        "date": lambda: value.isoformat(),
        "timedelta": lambda: [value.days, value.seconds, value.microseconds],
        "ellipsis": lambda: None,
        "array": lambda: [value.dtype.str, _packed(value.tolist(), None)],
        "same": lambda: _packed(value.tolist(), number),
    }
    return simple[kind]()


def _pairs(value: dict[Any, Any], number: Number | None) -> list[Any]:
    return [[_packed(key, number), _packed(item, number)] for key, item in dict.items(value)]


def _unpacked(value: Any, thing: Callable[[str, Any], Any] | None) -> Any:
    """A value of what JSON gave."""

    def unpacked(inner: Any) -> Any:
        return _unpacked(inner, thing)

    def pairs(inner: Any) -> dict[Any, Any]:
        return {unpacked(key): unpacked(item) for key, item in inner}

    if isinstance(value, list):
        return [unpacked(item) for item in value]
    if not isinstance(value, dict):
        if isinstance(value, float):
            raise ValueError("a bare float")
        return value
    ((kind, content),) = value.items()
    if thing is not None and kind in HANDLES:
        if type(content) is not HANDLES[kind]:
            raise ValueError("a handle of another type")
        return thing(kind, content)
    makers: dict[str, Callable[[], Any]] = {
        "int": lambda: int(content, 16),
        "float": lambda: float.fromhex(content),
        "tuple": lambda: tuple(unpacked(content)),
        "namedtuple": lambda: namedtuple(content[0], content[1])(*unpacked(content[2])),
        "dict": lambda: pairs(content),
        "counter": lambda: Counter(pairs(content)),
        "ordered": lambda: OrderedDict(pairs(content)),
        "defaultdict": lambda: defaultdict(FACTORIES.get(content[0]), pairs(content[1])),
        "set": lambda: set(unpacked(content)),
        "frozenset": lambda: frozenset(unpacked(content)),
        "bytes": lambda: bytes.fromhex(content),
        "complex": lambda: complex(float.fromhex(content[0]), float.fromhex(content[1])),
        "range": lambda: range(*unpacked(content)),
        "deque": lambda: deque(unpacked(content)),
        "decimal": lambda: Decimal(content),
        "fraction": lambda: Fraction(*unpacked(content)),
        "datetime": lambda: datetime.datetime.fromisoformat(content),
        "date": lambda: datetime.date.fromisoformat(content),
        "timedelta": lambda: datetime.timedelta(*content),
        "ellipsis": lambda: ...,
        "iterator": lambda: iter(unpacked(content)),
        "array": lambda: _array(content[0], unpacked(content[1])),
        "same": lambda: unpacked(content),
    }
    return makers[kind]()


def _array(kind: str, content: Any) -> Any:
    import numpy

    dtype = numpy.dtype(kind)
    if dtype.kind not in "biufc":
        raise ValueError("an array of something else than numbers")
    return numpy.array(content, dtype=dtype)

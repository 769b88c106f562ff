"""Plain data as JSON and back: all that may cross between a program under test and whoever judges it.

Nothing that carries behaviour crosses: an object whose equality says yes to everything stays where it is.
The file also lies in the box, beside `inside.py`, so it imports the standard library alone.
"""

from __future__ import annotations

import datetime
import json
import types
from collections import deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

LONGEST = 100_000  # of what an iterator gives
SMALL = 1 << 53  # beyond, readers of JSON differ


class NotPlain(Exception):
    """The value is of a kind that does not cross."""


class TooMuch(NotPlain):
    """The value is of a kind that crosses, but too deep or too long."""


def encoded(value: Any) -> str:
    """One line of JSON."""
    try:
        return json.dumps(_packed(value), separators=(",", ":"))
    except RecursionError as fault:
        raise TooMuch("a value that is nested too deeply or contains itself") from fault


def decoded(text: str | bytes) -> Any:
    """The value that was encoded; ValueError when the text is nothing that `encoded` writes."""
    try:
        return unpacked(json.loads(text))
    except (TypeError, KeyError, IndexError, RecursionError, ArithmeticError, UnicodeError) as fault:
        raise ValueError(f"not plain data: {fault!r}") from fault


def _packed(value: Any) -> Any:
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
        return [_packed(item) for item in list.__iter__(value)]
    return {_kind(value): _content(value)}


def _kind(value: Any) -> str:
    for kind, types_ in (
        ("tuple", (tuple,)), ("dict", (dict,)), ("set", (set,)), ("frozenset", (frozenset,)),
        ("bytes", (bytes, bytearray)), ("complex", (complex,)), ("range", (range,)), ("deque", (deque,)),
        ("decimal", (Decimal,)), ("fraction", (Fraction,)), ("datetime", (datetime.datetime,)),
        ("date", (datetime.date,)), ("timedelta", (datetime.timedelta,)), ("ellipsis", (types.EllipsisType,)),
        ("iterator", (Iterator, KeysView, ValuesView, ItemsView)),
    ):  # fmt: skip
        if isinstance(value, types_):
            return kind
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return "same"
    raise NotPlain(f"a {type(value).__qualname__}")


def _content(value: Any) -> Any:
    kind = _kind(value)
    if kind == "dict":
        return [[_packed(key), _packed(item)] for key, item in dict.items(value)]
    if kind in ("tuple", "set", "frozenset", "deque"):
        return [_packed(item) for item in value]
    if kind == "iterator":
        items = []
        for item in value:
            items.append(_packed(item))
            if len(items) > LONGEST:
                raise TooMuch(f"an iterator of more than {LONGEST:,} items")
        return items
    simple: dict[str, Callable[[], Any]] = {
        "bytes": lambda: bytes(value).hex(),
        "complex": lambda: [float.hex(value.real), float.hex(value.imag)],
        "range": lambda: [_packed(value.start), _packed(value.stop), _packed(value.step)],
        "decimal": lambda: str(value),
        "fraction": lambda: [_packed(value.numerator), _packed(value.denominator)],
        "datetime": lambda: value.isoformat(),
        "date": lambda: value.isoformat(),
        "timedelta": lambda: [value.days, value.seconds, value.microseconds],
        "ellipsis": lambda: None,
        "same": lambda: _packed(value.tolist()),
    }
    return simple[kind]()


def unpacked(value: Any) -> Any:
    """A value of what JSON gave."""
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    if not isinstance(value, dict):
        if isinstance(value, float):
            raise ValueError("a bare float")
        return value
    ((kind, content),) = value.items()
    makers: dict[str, Callable[[], Any]] = {
        "int": lambda: int(content, 16),
        "float": lambda: float.fromhex(content),
        "tuple": lambda: tuple(unpacked(content)),
        "dict": lambda: {unpacked(key): unpacked(item) for key, item in content},
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
        "same": lambda: unpacked(content),
    }
    return makers[kind]()

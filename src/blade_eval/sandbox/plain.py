"""Encode plain data as JSON and decode it: all that may cross between a program under test and its judge.

Nothing that carries behaviour crosses: an object whose equality says yes to everything stays where it is,
and at most its number goes over, where both sides agree on numbers. The file also lies in the box, so it
imports the standard library alone, and numpy only where an array is to cross.
"""

from __future__ import annotations

import datetime
import json
import types
from array import array
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

from blade_eval.sandbox.names import PLAIN

LONGEST = 100_000  # of what an iterator gives
SHOWN = 2000  # characters of a value
SMALL = 1 << 53  # beyond, readers of JSON differ
BUILTIN = {kind.__name__: kind for kind in (int, float, str, bool, list, dict, set, tuple, bytes, complex, frozenset)}
NAMES = {id(kind): name for name, kind in BUILTIN.items()}  # by identity: a hash may be somebody's own
BROKEN = "Runtime error: something else was written where the answer belongs"

Pack = Callable[[Any, Callable[[Any], Any]], Any]
Number = Callable[[Any], dict[str, Any] | None]  # what stands for a value that is not plain
Handles = Mapping[str, Callable[[Any], Any]]  # what this side hears besides plain data: things by number


class NotPlain(Exception):
    """The value is of a kind that does not cross."""


class TooMuch(NotPlain):
    """The value is of a kind that crosses, but too deep or too long."""


def encoded(value: Any, number: Number | None = None, exact: bool = False) -> str:
    """One line of JSON. A list of a class of its own is a list, or, where types are exact, a thing by number."""
    try:
        return json.dumps(_packed(value, number, exact), separators=(",", ":"))
    except RecursionError as fault:
        raise TooMuch("a value that is nested too deeply or contains itself") from fault


def decoded(text: str | bytes, handles: Handles | None = None) -> Any:
    """The value that was encoded; ValueError when the text is nothing that `encoded` writes."""
    try:
        return _unpacked(json.loads(text), handles or {})
    except Exception as fault:  # names of fields and types of arrays fail in more ways than can be listed
        raise ValueError(f"not plain data: {type(fault).__name__}") from fault


def _packed(value: Any, number: Number | None, exact: bool) -> Any:
    if value is None or isinstance(value, bool):
        return value
    kind = kind_of(value)
    if number and (kind in (None, "iterator") or (exact and _has_own_class(value, kind))):
        numbered = number(value)
        if numbered is not None:
            return numbered
    if kind is None:
        raise NotPlain(f"a {type(value).__qualname__}")
    content = KINDS[kind][1](value, lambda inner: _packed(inner, number, exact))
    return content if kind in ("text", "list") or type(content) is int else {kind: content}


BARE = {"__annotations__", "__orig_bases__", "__doc__", "__module__"}


def kind_of(value: Any) -> str | None:
    """The kind of plain data that a value is, itself or by its base class; None when it is none."""
    if id(value) in NAMES:
        return "builtin"
    kind = next((kind for kind, (types_, _, _) in KINDS.items() if isinstance(value, types_)), None)
    if kind == "tuple" and isinstance(getattr(type(value), "_fields", None), tuple):
        return "namedtuple"
    if kind or type(value).__module__.partition(".")[0] != "numpy" or not hasattr(value, "tolist"):
        return kind
    is_array = type(value).__name__ == "ndarray" and value.dtype.kind in "biufc"
    return "array" if is_array else "same"


def _has_own_class(value: Any, kind: str | None) -> bool:
    """Is there more to ask of a value than of plain data of its kind? Not of a tuple that has but names."""
    if kind == "namedtuple":
        return bool(vars(type(value)).keys() - vars(namedtuple("T", type(value)._fields)).keys() - BARE)
    return type(value) not in EXACT and kind not in ("array", "same", "keys", "values", "items", "ellipsis", "builtin")


def _items(values: Any, pack: Callable[[Any], Any]) -> list[Any]:
    items = []
    for item in values:
        items.append(pack(item))
        if len(items) > LONGEST:
            raise TooMuch(f"an iterator of more than {LONGEST:,} items")
    return items


def _each(kind: Any) -> Pack:
    return lambda value, pack: [pack(item) for item in kind.__iter__(value)]


def _made(kind: Any, spread: bool = False) -> Pack:
    return lambda content, unpack: kind(*unpack(content)) if spread else kind(unpack(content))


def _from_hex(kind: Any) -> Pack:
    return lambda content, unpack: kind.fromhex(content)


def _from_iso(kind: Any) -> Pack:
    return lambda content, unpack: kind.fromisoformat(content)


def _fields(value: Any, pack: Callable[[Any], Any]) -> list[Any]:
    return [type(value).__name__, [str(name) for name in type(value)._fields], [pack(item) for item in tuple.__iter__(value)]]


def _pairs(value: dict[Any, Any], pack: Callable[[Any], Any]) -> list[Any]:
    return [[pack(key), pack(item)] for key, item in dict.items(value if isinstance(value, dict) else dict(value))]


def _whole(value: int, _: Callable[[Any], Any]) -> Any:
    whole = int.__index__(value)
    return whole if -SMALL < whole < SMALL else hex(whole)


def _factory(factory: Any, pack: Callable[[Any], Any]) -> Any:
    """What makes the items that are missing: a type by its name, else a thing that is asked, if there are any."""
    try:
        return pack(factory)
    except NotPlain:
        return None


def _unpacked(value: Any, handles: Handles) -> Any:
    """A value of what JSON gave."""
    if isinstance(value, list):
        return [_unpacked(item, handles) for item in value]
    if isinstance(value, float):
        raise ValueError("a bare float")
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind in handles:
        if type(content) is not int and kind != "name":
            raise ValueError("a handle that is no number")
        return handles[kind](content)
    return KINDS[kind][2](content, lambda inner: _unpacked(inner, handles))


def _dict(content: Any, unpack: Callable[[Any], Any]) -> dict[Any, Any]:
    return {unpack(key): unpack(item) for key, item in content}


def _named_tuple(content: Any, unpack: Callable[[Any], Any]) -> Any:
    name, fields, items = content
    value = namedtuple(name, fields)(*unpack(items))
    if any(field in PLAIN and callable(item) for field, item in zip(fields, value, strict=True)):
        raise ValueError("what can be called in the place of a method")
    return value


def _array(content: Any, unpack: Callable[[Any], Any]) -> Any:
    import numpy

    dtype = numpy.dtype(content[0])
    if dtype.kind not in "biufc":
        raise ValueError("an array of something else than numbers")
    return numpy.array(unpack(content[1]), dtype=dtype)


# Of each kind its types, how a value is packed, and how it is unpacked; of a value's kinds the first counts.
KINDS: dict[str, tuple[tuple[type, ...], Pack, Pack]] = {
    "text": ((str,), lambda value, pack: str.__str__(value), lambda content, unpack: content),
    "int": ((int,), _whole, lambda content, unpack: int(content, 16)),
    "float": ((float,), lambda value, pack: float.hex(value), lambda content, unpack: float.fromhex(content)),
    **{kind.__name__: ((kind,), _each(kind), _made(kind)) for kind in (list, tuple)},
    "counter": ((Counter,), _pairs, lambda content, unpack: Counter(_dict(content, unpack))),
    "defaultdict": (
        (defaultdict,), lambda value, pack: [_factory(value.default_factory, pack), _pairs(value, pack)],
        lambda content, unpack: defaultdict(unpack(content[0]), _dict(content[1], unpack)),
    ),
    "ordered": ((OrderedDict,), _pairs, lambda content, unpack: OrderedDict(_dict(content, unpack))),
    "dict": ((dict, types.MappingProxyType), _pairs, _dict),
    **{kind.__name__: ((kind,), _each(kind), _made(kind)) for kind in (set, frozenset, deque)},
    **{kind.__name__: ((kind,), lambda value, pack: bytes(value).hex(), _from_hex(kind)) for kind in (bytes, bytearray)},
    "typed": (
        (array,), lambda value, pack: [value.typecode, [pack(item) for item in value]],
        lambda content, unpack: array(content[0], unpack(content[1])),
    ),
    "complex": (
        (complex,), lambda value, pack: [float.hex(value.real), float.hex(value.imag)],
        lambda content, unpack: complex(float.fromhex(content[0]), float.fromhex(content[1])),
    ),
    **{
        kind.__name__: ((kind,), lambda value, pack: [pack(value.start), pack(value.stop), pack(value.step)], _made(kind, spread=True))
        for kind in (range, slice)
    },
    "decimal": ((Decimal,), lambda value, pack: str(value), lambda content, unpack: Decimal(content)),
    "fraction": ((Fraction,), lambda value, pack: [pack(value.numerator), pack(value.denominator)], _made(Fraction, spread=True)),
    **{
        kind.__name__: ((kind,), lambda value, pack: value.isoformat(), _from_iso(kind))
        for kind in (datetime.datetime, datetime.date, datetime.time)
    },
    "timedelta": (
        (datetime.timedelta,), lambda value, pack: [value.days, value.seconds, value.microseconds], _made(datetime.timedelta, spread=True)
    ),
    "ellipsis": ((types.EllipsisType,), lambda value, pack: None, lambda content, unpack: ...),
    "keys": ((KeysView,), _items, lambda content, unpack: dict.fromkeys(unpack(content)).keys()),
    "values": ((ValuesView,), _items, lambda content, unpack: dict(enumerate(unpack(content))).values()),
    "items": ((ItemsView,), _items, lambda content, unpack: dict(unpack(content)).items()),
    "iterator": ((Iterator,), _items, lambda content, unpack: iter(unpack(content))),
    "namedtuple": ((), _fields, _named_tuple),
    "builtin": ((), lambda value, pack: NAMES[id(value)], lambda content, unpack: BUILTIN[content]),
    "array": ((), lambda value, pack: [value.dtype.str, pack(value.tolist())], _array),
    "same": ((), lambda value, pack: pack(value.tolist()), lambda content, unpack: unpack(content)),
}  # fmt: skip
EXACT = {type_ for types_, _, _ in KINDS.values() for type_ in types_}


def unequal(answer: str, wanted: str) -> dict[str, str | bool] | None:
    """None when an answer is what is expected; else what is wrong and what was returned, as texts.

    It runs in a worker that may be ended. Whatever fails while the answer is read is the answer's fault.
    """
    if answer.startswith(('{"thing":', '{"coroutine":', '{"stream":')):
        return {"wrong": False, "message": "Runtime error: what was returned is no plain data", "got": ""}
    expected = _listed(decoded(wanted))
    try:
        value = decoded(answer)
        if _listed(value) == expected:
            return None
        shown = _shown(value)
    except Exception:  # such as Decimal("sNaN"), which equals nothing and says so loudly
        return {"wrong": False, "message": BROKEN, "got": ""}
    message = f"Wrong answer: {shown[:80]} where {_shown(expected)[:80]} is expected"
    return {"wrong": True, "message": message, "got": shown[:SHOWN]}


def _shown(value: Any) -> str:
    if isinstance(value, Iterator):
        return "an iterator"
    try:
        return repr(value).encode("utf-8", "replace").decode("utf-8")
    except (ValueError, RecursionError):  # a number of too many digits to be written
        return f"a {type(value).__name__} too large to be shown"


def _listed(value: Any) -> Any:
    """Expected values come from JSON, which has no tuples, at any depth."""
    if isinstance(value, list | tuple | deque):
        return [_listed(item) for item in value]
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return _listed(value.tolist()) if hasattr(value, "tolist") else value
